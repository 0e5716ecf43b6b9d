import { env } from 'cloudflare:workers'
import { encodeFunctionData } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { chain, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listen, type StreamListener } from '../support/event-stream.ts'
import { node } from '../support/history-oracle.ts'
import { reorgChain, resumeMining, rewindChain } from '../support/reorg-chain.ts'
import { call, deployment, request } from '../support/surfaces.ts'

// Event streams of a chain with reorgs, and the events that do not come from a log.

const { accounts, contracts, tokens } = deployment
const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
const anvil = (method: string, params: unknown[]) => node.request({ method, params } as never)
/** How many blocks before the trade are replaced too: fewer than are mined before it. */
const EXTRA_DEPTH = 32
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)

/** A lane takes no intent while an older transaction of it is pending again. */
const untilNothingIsPending = () =>
  expect
    .poll(async () => {
      const body = (await (await request('/health/ready')).json()) as Body
      const { executor } = body.details ?? body // not ready while prices are stale
      return executor.lanes.map(({ pending }: Body) => pending)
    })
    .toEqual([0])

const open: StreamListener[] = []
async function connect(path: string, headers: Record<string, string> = {}): Promise<StreamListener> {
  const listener = listen(await request(path, { headers }))
  open.push(listener)
  await listener.open()
  return listener
}
afterEach(async () => {
  await Promise.all(open.splice(0).map(listener => listener.leave()))
})

/** The prices before they were moved, by token. */
const initialPrices = new Map<`0x${string}`, bigint>()
const forcePrice = (token: `0x${string}`, price: bigint) =>
  chain.send(accounts.admin, { ...oracle, functionName: 'forcePrice', args: [token, price] })
/** Forces a price to a percentage of the current one. The pools do not follow. */
async function movePrice(symbol: string, percent: bigint) {
  const token = tokens[symbol] as `0x${string}`
  const [price] = await node.readContract({ ...oracle, functionName: 'peekPrice', args: [token] })
  if (!initialPrices.has(token)) initialPrices.set(token, price)
  await forcePrice(token, (price * percent) / 100n)
  await indexer().catchUp()
}
// The other files of the chain trade too.
afterAll(async () => {
  for (const [token, price] of initialPrices) await forcePrice(token, price)
})

let trader: Trader
let path: string
beforeAll(async () => {
  trader = await newTrader()
  path = `/agents/${trader.agentId}/events`
  await anvil('anvil_mine', ['0x8', '0x0']) // no reorg of this file is deep enough to withdraw the registration
})

describe('a reorg', () => {
  it('a reorg withdraws the events of its blocks, and the events of the new blocks follow', async () => {
    const stream = await connect(path)
    const other = await connect(`/agents/${(await newTrader()).agentId}/events`)
    const start = stream.lastEventId()
    await anvil('anvil_mine', ['0x40', '0x0'])
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
    const trade = await stream.next('trade')
    await reorgChain(Number(trade.data.blockNumber) - EXTRA_DEPTH)
    await indexer().catchUp()
    const reorg = await stream.next('reorg')
    const { commonAncestor, ...facts } = reorg.data
    expect(facts).toEqual({
      fromBlock: `${Number(commonAncestor) + 1}`,
      toBlock: expect.stringMatching(/^\d+$/),
      withdrawn: [trade.id],
    })
    expect(Number(commonAncestor)).toBeLessThan(Number(trade.data.blockNumber))
    expect((await other.next('reorg')).data).toEqual({ ...reorg.data, withdrawn: [] })

    // The lane notices that its transaction is gone and sends it again.
    const again = await stream.next('trade')
    expect(again.data).toMatchObject({ type: 'PositionOpened', symbol: 'NVDA', positionId })
    expect(again.id).not.toBe(trade.id)
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    expect(again.data).toMatchObject(body.trades[0])

    const last = stream.events.at(-1)?.id
    for (const id of [start, trade.id, reorg.id]) {
      const resumed = await connect(`${path}?lastEventId=${id}`)
      await resumed.until(() => resumed.events.some(event => event.id === last))
      const seen = stream.events.slice(stream.events.findIndex(event => event.id === id) + 1)
      expect(resumed.events.slice(0, seen.length)).toEqual(seen)
    }
    const ids = stream.events.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describe('a rewind', () => {
  it('a rewind leaves no intent `mined`, sends its transaction again once the index has noticed, and lets reads go on', async () => {
    await untilNothingIsPending()
    const fresh = await newTrader()
    await anvil('anvil_mine', ['0x8', '0x0']) // nothing older is lost
    const stream = await connect(`/agents/${fresh.agentId}/events`)
    const { cursor = 0 } = await indexer().catchUp() // the index finds a reorg at a block at which it has stopped
    await anvil('anvil_mine', ['0x8', '0x0'])
    const opened = await submit(fresh, 'submitTradeIntent', { symbol: 'AMZN', usdcAmount: '100' })
    expect(opened.status).toBe(201)
    const { transactionHash: hash } = opened.body
    const { data } = await stream.next('trade')
    const isOfIntent = ({ event, data }: Body) => event === 'intent' && data.transactionHash === hash
    const { digest } = (await stream.until(() => stream.events.find(isOfIntent))).data
    await rewindChain(cursor - 2)
    try {
      await indexer().catchUp()
      await stream.next('reorg')
      const noticedAt = Date.now()
      const isInPool = async () => (await anvil('eth_getTransactionByHash', [hash])) !== null
      await vi.waitUntil(isInPool, { timeout: 120_000, interval: 20 })
      expect(Date.now() - noticedAt).toBeLessThan(5_000) // sooner than the lane looks by itself
      expect((await call('getIntent', { digest })).body).toMatchObject({ state: 'sent' })
      const agent = await call('getAgent', { agentId: fresh.agentId })
      expect(agent).toMatchObject({ status: 200, body: { asOf: { blockNumber: `${cursor + 2}` } } })

      expect(Number(data.blockNumber)).toBeGreaterThan(cursor + 2)
    } finally {
      await resumeMining()
    }
    const again = await stream.next('trade')
    expect(again.data).toMatchObject({ transactionHash: hash })
    // The index may see the block before the lane does.
    await expect
      .poll(async () => (await call('getIntent', { digest })).body)
      .toMatchObject({ state: 'mined', transactionHash: hash, blockNumber: again.data.blockNumber })
  })
})

describe('a cursor of the history that was dropped', () => {
  it('a cursor of the history that was dropped withdraws every event, and the streams go on once the index is there again', async () => {
    await untilNothingIsPending() // of the reorg before
    const stream = await connect(path)
    await openPosition(trader, { symbol: 'MSFT', usdcAmount: '100' })
    const { id } = await stream.next('trade')
    await anvil('anvil_mine', ['0x8', '0x0'])
    await indexer().catchUp()
    // As the indexer leaves it after its first ranges of blocks.
    const [trade = ''] = id.split('-')
    const { hash, timestamp } = await node.getBlock({ blockNumber: BigInt(trade) - 2n })
    await env.HISTORY.prepare('UPDATE cursor SET block = ?1, hash = ?2, timestamp = ?3')
      .bind(Number(trade) - 2, hash, Number(timestamp))
      .run()
    const streams = env.EVENT_STREAMS.getByName(`${deployment.chainId}`)
    for (let times = 0; times < 3; times++) await streams.advance()
    await env.HISTORY.prepare('DELETE FROM cursor').run()
    await vi.waitFor(async () => void (await indexer().catchUp()), { timeout: 120_000, interval: 200 })
    const positionId = (await call('listPositions', { agentId: trader.agentId })).body.positions[0].positionId
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 1000 })
    await stream.until(() => stream.events.some(({ data }) => data.type === 'PositionReduced'))
    const { body } = await call('getTradeHistory', { agentId: trader.agentId })
    const ids = body.trades.map(({ id }: { id: string }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describe('an event without a log', () => {
  it('an event without a log reports a limit that is breached, and one that no longer is, once each', async () => {
    const fresh = await newTrader()
    const stream = await connect(`/agents/${fresh.agentId}/events`)
    await openPosition(fresh, { symbol: 'AAPL', usdcAmount: '5000' })
    await stream.next('trade')
    await movePrice('AAPL', 70n)
    const reached = await stream.next('risk')
    expect(reached.data).toMatchObject({
      agentId: fresh.agentId,
      rule: 'drawdown',
      breached: true,
      maxDrawdownBps: 1000,
    })
    const { body } = await call('getRiskState', { agentId: fresh.agentId })
    expect(body).toMatchObject({
      breaches: { drawdown: true, dailyLoss: false },
      equity: { currentDrawdownBps: reached.data.currentDrawdownBps },
      derived: { maxDailyLossUsdc: reached.data.maxDailyLossUsdc },
    })
    await movePrice('AAPL', 99n)
    await movePrice('AAPL', 150n)
    expect((await stream.next('risk')).data).toMatchObject({ rule: 'drawdown', breached: false })
    expect(stream.events.filter(({ event }) => event === 'risk')).toHaveLength(2)
  })

  it('an event without a log reports a limit that is breached because its track was given another one', async () => {
    const fresh = await newTrader()
    const stream = await connect(`/agents/${fresh.agentId}/events`)
    await openPosition(fresh, { symbol: 'AMZN', usdcAmount: '5000' })
    await stream.next('trade')
    await movePrice('AMZN', 95n)
    const registry = { address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
    const vault = deployment.vaults.genesis as `0x${string}`
    const config = await node.readContract({ ...registry, functionName: 'getVaultTrackConfig', args: [vault, 0n] })
    const setLimit = (maxDrawdownBps: bigint) =>
      chain.administer({
        ...registry,
        functionName: 'setVaultTrackConfig',
        args: [vault, 0n, { ...config, maxDrawdownBps }],
      })
    await setLimit(10n)
    const since = Date.now()
    expect((await stream.next('risk')).data).toMatchObject({ rule: 'drawdown', breached: true, maxDrawdownBps: 10 })
    expect(Date.now() - since).toBeLessThan(15_000)
    await setLimit(config.maxDrawdownBps)
    expect((await stream.next('risk')).data).toMatchObject({ rule: 'drawdown', breached: false })
    await movePrice('AMZN', 105n)
  })

  it('an event without a log reports a limit that is breached because its track or the allocation of the agent was changed', async () => {
    const fresh = await newTrader()
    const stream = await connect(`/agents/${fresh.agentId}/events`)
    const positionId = await openPosition(fresh, { symbol: 'GOOGL', usdcAmount: '4000' })
    expect((await submit(fresh, 'submitReduceIntent', { positionId, exitBps: 10_000 })).status).toBe(201)
    await stream.until(() => stream.events.some(({ data }) => data.type === 'PositionReduced'))
    const before = await call('getRiskState', { agentId: fresh.agentId })
    expect(BigInt(before.body.pnl.dailyRealizedUsdc)).toBeLessThan(0n)
    const registry = { address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
    const vault = deployment.vaults.genesis as `0x${string}`
    const config = await node.readContract({ ...registry, functionName: 'getVaultTrackConfig', args: [vault, 0n] })
    const setTrack = (changes: Partial<typeof config>) =>
      chain.administer({
        ...registry,
        functionName: 'setVaultTrackConfig',
        args: [vault, 0n, { ...config, ...changes }],
      })
    await setTrack({ maxDailyLossBps: 1n })
    const since = Date.now()
    expect((await stream.next('risk')).data).toMatchObject({ rule: 'dailyLoss', breached: true })
    expect(Date.now() - since).toBeLessThan(15_000)
    await setTrack({ initialAllocation: 1_000_000n })
    expect((await stream.next('risk')).data).toMatchObject({ rule: 'dailyLoss', breached: false })
    // The registry gives the agent its track again, with the allocation that the operator has set.
    await anvil('anvil_impersonateAccount', [contracts.AgentRegistry])
    await anvil('anvil_setBalance', [contracts.AgentRegistry, '0xde0b6b3a7640000'])
    await anvil('eth_sendTransaction', [
      {
        from: contracts.AgentRegistry,
        to: contracts.AllocationManager,
        data: encodeFunctionData({
          abi: allocationManagerAbi,
          functionName: 'onAgentPromoted',
          args: [BigInt(fresh.agentId), vault, 0n, 0n],
        }),
      },
    ])
    await anvil('anvil_stopImpersonatingAccount', [contracts.AgentRegistry])
    expect((await stream.next('risk')).data).toMatchObject({ rule: 'dailyLoss', breached: true })
    await setTrack({})
  })

  it('an event without a log reports a price that became stale, and one that is fresh again', async () => {
    const stream = await connect(path)
    await chain.increaseTime(2 * 86_400)
    const quoted = tokens.MSFT as `0x${string}`
    const [price] = await node.readContract({ ...oracle, functionName: 'peekPrice', args: [quoted] })
    const update = { ...oracle, functionName: 'setPrice', args: [quoted, price] } as const
    const { blockNumber } = await chain.send(accounts.priceSetter, update)
    await indexer().catchUp()
    const priceEvents = () => stream.events.filter(({ event }) => event.startsWith('price'))
    const ofNvda = () => priceEvents().filter(({ data }) => data.symbol === 'NVDA')
    const stale = await stream.until(() => ofNvda()[0])
    const { market } = (await call('getPrices', { symbols: 'NVDA' })).body.prices.NVDA
    expect(stale).toMatchObject({ event: 'price-stale', data: { agentId: trader.agentId, token: tokens.NVDA, market } })
    expect((await call('getRiskState', { agentId: trader.agentId })).body.staleSymbols).toEqual(['NVDA'])
    await chain.refreshPrices()
    await indexer().catchUp()
    const fresh = await stream.until(() => ofNvda()[1])
    expect(fresh).toMatchObject({ event: 'price-fresh', data: { agentId: trader.agentId } })
    expect(ofNvda()).toHaveLength(2)
    // MSFT was stale until its price was posted, and may have been reported then.
    const staleLater = priceEvents().filter(
      ({ event, data }) => event === 'price-stale' && BigInt(data.asOf.blockNumber) >= blockNumber,
    )
    expect(staleLater.filter(({ data }) => data.symbol !== 'NVDA')).toEqual([])
  })

  it('an event without a log is numbered above every log of its block, and ids only grow', async () => {
    const stream = await connect(path)
    const positionId = (await call('listPositions', { agentId: trader.agentId })).body.positions[0].positionId
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 1000 })
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: 1000 })
    await stream.next('trade')
    await stream.next('trade')
    const places = stream.events.map(({ id }) => id.split(/[-.]/).map(Number))
    expect(places).toEqual([...places].sort(([a = 0, i = 0], [b = 0, j = 0]) => a - b || i - j))
    for (const [index, { event }] of stream.events.entries())
      expect((places[index]?.[1] ?? 0) >= 1_000_000).toBe(event === 'intent')
  })
})
