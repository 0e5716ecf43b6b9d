import {
  abortAllDurableObjects,
  createExecutionContext,
  createScheduledController,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
  waitOnExecutionContext,
} from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import {
  createPublicClient,
  createTestClient,
  erc20Abi,
  getAbiItem,
  type Hex,
  http,
  toFunctionSelector,
  toHex,
} from 'viem'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createChain, type TradingChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import worker from '../../src/index.ts'
import { simulateExits } from '../../src/keeper/exit-sender.ts'
import { chain, FRONTIER, GENESIS, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper, runCycle, runCycleAt } from '../support/keeper-cycles.ts'
import { isSend, waitForFlag } from '../support/lanes.ts'
import { loseAlarm } from '../support/lose-alarm.ts'
import { appWith, call, deployment } from '../support/surfaces.ts'
import { allowCost } from '../support/thin-pool.ts'

const keeperNamed = (name: string) => env.KEEPER.get(env.KEEPER.idFromName(name))
/** Returns a new stub each time, because a stub stays broken after its object was aborted. */
const keeper = () => keeperNamed(`${deployment.chainId}:${deployment.contracts.TradeRouter}`)
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const MAX_PRICE_AGE = 86_400n

/** Runs the alarm and a whole cycle. */
async function runAlarm() {
  await keeper().changed()
  await runDurableObjectAlarm(keeper())
  await runCycle(keeper())
}
const alarmOf = () => runInDurableObject(keeper(), (_, state) => state.storage.getAlarm())

/** Records how many milliseconds ahead the alarm is armed each time. */
async function recordAlarms(): Promise<number[]> {
  const aheads: number[] = []
  await runInDurableObject(keeper(), (_, { storage }) => {
    const setAlarm = storage.setAlarm.bind(storage)
    vi.spyOn(storage, 'setAlarm').mockImplementation(time => {
      aheads.push(Number(time) - Date.now())
      return setAlarm(time)
    })
  })
  return aheads
}

const disarm = () => disarmKeeper(keeper())
/** Stops the keeper, so that it does not exit positions of later tests. */
afterAll(disarm)
afterEach(() => vi.restoreAllMocks())

const position = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await call('getPosition', { agentId, positionId })).body.position
const automation = async ({ agentId }: Trader, positionId: string): Promise<Body> => {
  const { status, body } = await call('getPositionAutomation', { agentId, positionId })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const usd = (entryPriceUsdc: string, factor: number) => ((Number(entryPriceUsdc) / 1e6) * factor).toFixed(2)

const ofFrontier = ['NVDA', 'META', 'TSLA', 'COIN', 'PLTR', 'HOOD']

/**
 * Moves a price and its pool while the keeper is stopped: a cycle between the two finds the pool's price wrong, and
 * puts the exit off for two seconds.
 */
async function setPrice(symbol: string, usd: string) {
  await disarm()
  return chain.setPrice(symbol, usd)
}

async function bought(symbol: string, input = {}) {
  const trader = await newTrader({ vault: ofFrontier.includes(symbol) ? FRONTIER : GENESIS })
  const positionId = await openPosition(trader, { symbol, usdcAmount: '100', ...input })
  const { entryPriceUsdc } = await position(trader, positionId)
  const moveTo = (factor: number) => setPrice(symbol, usd(entryPriceUsdc, factor))
  return { trader, positionId, entryPriceUsdc, moveTo }
}

const config = parseConfig(workerVars(deployment))
const onChain = createChain(config.chain as NonNullable<typeof config.chain>, config.trading) as TradingChain
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })

/** Returns how many rules of the position have fired, independent of who fired them. */
const exitsOf = async (positionId: string): Promise<number> => (await routerEvents('ExitExecuted', positionId)).length

const routerEvents = <const name extends 'ExitExecuted' | 'ExitPartlyExecuted' | 'ExitDeferred'>(
  eventName: name,
  positionId: string,
) =>
  client.getContractEvents({
    address: onChain.trading.TradeRouter,
    abi: tradeRouterAbi,
    eventName,
    args: { positionId: BigInt(positionId) } as never,
    fromBlock: 0n,
    strict: true,
  })

const testClient = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) })

type Rpc = { method: string; params?: [Record<string, string> | string, string?, object?] }
const original = globalThis.fetch.bind(globalThis)
/** Lets a test observe or intercept requests to the node. */
function onRequest(answer: (request: Rpc, forward: () => Promise<Response>) => Promise<Response>) {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const request = new Request(input as RequestInfo, init as RequestInit)
    const body = [await request.clone().json()].flat()[0] as Rpc
    return answer(body, () => original(request))
  })
}
const isRowClosed = (positionId: string): Promise<boolean> =>
  runInDurableObject(keeper(), (_, { storage }) => {
    const { closed_at } = storage.sql.exec('SELECT closed_at FROM position WHERE id = ?', Number(positionId)).one()
    return closed_at !== null
  })
/** Methods that a lane calls in the background. */
const WATCH = new Set([
  'eth_chainId',
  'eth_getTransactionCount',
  'eth_getBalance',
  'eth_getBlockByNumber',
  // After the reorgs of earlier tests, and for receipts that a send did not wait for.
  'eth_getTransactionReceipt',
  'eth_getBlockReceipts',
])
const exitSelectors = (['executeExit', 'executeExits'] as const).map(name =>
  toFunctionSelector(getAbiItem({ abi: tradeRouterAbi, name })).slice(2),
)
/**
 * Whether a call or a raw transaction is about exits. The indexer and the event streams read the chain in the
 * background too.
 */
const isAboutExits = ({ params: [call] = [''] }: Rpc) =>
  exitSelectors.some(selector => (typeof call === 'object' ? call.data : call)?.includes(selector))
/** Whether a cycle always makes a request. For a minute after an exit, its events are read again every few seconds. */
const isOfEveryCycle = (method: string) => method !== 'eth_getLogs'
/** Whether a request reads the events of single positions: the index reads those of whole contracts. */
const isAboutPositions = ({ params: [filter] = [''] }: Rpc) =>
  typeof filter === 'object' && (filter.topics?.length ?? 0) > 1
function isOfKeeper(request: Rpc): boolean {
  if (request.method === 'eth_call') return isAboutExits(request)
  if (request.method === 'eth_getLogs') return isAboutPositions(request)
  return !WATCH.has(request.method)
}
/** Returns a list that collects the methods of the keeper's requests to the node from now on. */
function countRequests(): string[] {
  const requests: string[] = []
  onRequest((request, forward) => {
    if (isOfKeeper(request)) requests.push(request.method)
    return forward()
  })
  return requests
}
const exitsInFlight = () =>
  runInDurableObject(keeper(), (_, { storage }) => storage.sql.exec('SELECT digest FROM exit_batch').toArray().length)
const isSimulationOfLane = ({ method, params: [call] = [''] }: Rpc) =>
  method === 'eth_call' &&
  typeof call === 'object' &&
  call.from?.toLowerCase() === deployment.accounts.keeper.address.toLowerCase()
const POSITION_COUNT = toFunctionSelector(getAbiItem({ abi: positionManagerAbi, name: 'positionCount' })).slice(2)
/** Whether a request simulates exits for a cycle. The cycle's first read asks the router whether it takes batches. */
const isSimulationOfKeeper = (request: Rpc) =>
  request.method === 'eth_call' &&
  isAboutExits(request) &&
  !isSimulationOfLane(request) &&
  !JSON.stringify(request.params).includes(POSITION_COUNT)

describe('the keeper', () => {
  it('starts when a position opens and fires its stop-loss when the price falls', async () => {
    const { trader, positionId, entryPriceUsdc, moveTo } = await bought('NVDA', { exits: '-800:10000,1500:10000' })
    await vi.waitFor(async () => expect(await alarmOf()).not.toBeNull(), { timeout: 120_000 })
    await runAlarm()
    const before = await automation(trader, positionId)
    expect(before).toMatchObject({
      symbol: 'NVDA',
      status: 'Open',
      keeperEnabled: true,
      pendingRules: [
        { ruleIndex: 0, triggerType: 'StopLoss', triggerBps: -800, exitBps: 10_000 },
        { ruleIndex: 1, triggerType: 'TakeProfit', triggerBps: 1500, exitBps: 10_000 },
      ],
      lastEvaluation: { priceUsd: before.price.priceUsd },
      lastOutcome: { outcome: 'notReached' },
    })
    const [stop, take] = before.pendingRules
    expect(Number(stop.triggerPriceUsd)).toBeCloseTo((Number(entryPriceUsdc) / 1e6) * 0.92, 4)
    expect(Number(take.triggerPriceUsd)).toBeCloseTo((Number(entryPriceUsdc) / 1e6) * 1.15, 4)
    expect(stop.distanceBps).toBeLessThan(-700)
    expect(take.distanceBps).toBeGreaterThan(1400)
    const { tokenAmount } = await position(trader, positionId)
    expect([stop.tokenAmount, take.tokenAmount]).toEqual([tokenAmount, tokenAmount])
    // The exit slippage of the trade policy, whatever was signed.
    expect(Number(stop.minUsdcOut)).toBeCloseTo(92_000_000 * 0.97, -5)

    await moveTo(0.9)
    await runAlarm()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed', nextRuleIndex: 1 })
    const after = await automation(trader, positionId)
    expect(after).toMatchObject({
      status: 'Closed',
      pendingRules: [],
      lastEvaluation: { priceUsd: String(Number(usd(entryPriceUsdc, 0.9))) },
      lastOutcome: { outcome: 'executed', firedBy: 'keeper', ruleIndex: 0, usdcOut: expect.stringMatching(/^8\d{7}$/) },
    })
    const { body } = await call('getTransaction', { txHash: after.lastOutcome.transactionHash })
    expect(body).toMatchObject({ status: 'success', from: deployment.accounts.keeper.address })
    await moveTo(1)
  })

  it('fires only the rules of a ladder whose triggers are met', async () => {
    const { trader, positionId, moveTo } = await bought('AAPL', { exits: '-600:5000,-900:10000,700:4000,1500:10000' })
    await moveTo(1.08)
    await runAlarm()
    expect(await position(trader, positionId)).toMatchObject({
      status: 'Open',
      nextRuleIndex: 1,
      exitRules: [{ triggerBps: 700 }, { triggerBps: -600 }, { triggerBps: -900 }, { triggerBps: 1500 }],
    })
    await runAlarm()
    const { lastOutcome, pendingRules } = await automation(trader, positionId)
    expect(lastOutcome).toMatchObject({ outcome: 'executed', ruleIndex: 0 })
    expect(pendingRules.map(({ ruleIndex, triggerBps }: Body) => [ruleIndex, triggerBps])).toEqual([
      [1, -600],
      [2, -900],
      [3, 1500],
    ])
    await moveTo(0.93)
    await runAlarm()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Open', nextRuleIndex: 2 })
    await moveTo(0.85)
    await runAlarm()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed', nextRuleIndex: 3 })
    await moveTo(1)
  })

  it('counts the gas of an exit as that of its agent, and fires it although the agent has none left', async () => {
    const { trader, positionId, moveTo } = await bought('COST', { exits: '-600:5000,-900:10000' })
    const { agentId } = trader
    const hour = async () => (await call('getGasQuota', { agentId })).body.budgets[0].hour
    const usedGas = async () => (await hour()).limitGas - (await hour()).leftGas
    const firesAt = async (factor: number, expected: Body) => {
      await moveTo(factor)
      await vi.waitFor(
        async () => {
          await runAlarm()
          expect(await position(trader, positionId)).toMatchObject(expected)
        },
        { timeout: 120_000 },
      )
    }
    await firesAt(0.93, { nextRuleIndex: 1 })
    // The purchase used less than 400,000.
    await expect.poll(usedGas).toBeGreaterThan(500_000)

    const lane = env.EXECUTOR_LANE.getByName(deployment.accounts.executor.address)
    const use = { kind: 'exit', by: { as: 'keeper', agent: { id: BigInt(agentId) } } } as const
    await lane.spendGas([{ use, gas: 1_000_000_000 }])
    expect(await hour()).toMatchObject({ leftGas: 0 })
    await firesAt(0.85, { status: 'Closed' })
    await moveTo(1)
  })

  it('defers an exit while trading is paused and fires it afterwards', async () => {
    const { trader, positionId, moveTo } = await bought('MSFT')
    await chain.pauseTrading('genesis', true)
    await moveTo(0.9)
    await runAlarm()
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
      outcome: 'deferred',
      reason: 'tradingPaused',
    })
    expect((await automation(trader, positionId)).pendingRules[0]).toMatchObject({ distanceBps: 0 })
    await chain.pauseTrading('genesis', false)
    await runAlarm()
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed' })
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' })
    await moveTo(1)
  })

  it('defers an exit while the price is stale and fires it on the next fresh price', async () => {
    const { trader, positionId, moveTo } = await bought('GOOGL')
    const setMaxPriceAge = (seconds: bigint) =>
      chain.administer({
        address: GENESIS,
        abi: mandateVaultAbi,
        functionName: 'setMaxPriceAge',
        args: [seconds],
      })
    await setMaxPriceAge(10n)
    await chain.increaseTime(11)
    await runAlarm()
    expect(await automation(trader, positionId)).toMatchObject({
      price: { stale: true },
      lastOutcome: { outcome: 'deferred', reason: 'priceStale' },
    })
    await setMaxPriceAge(MAX_PRICE_AGE)
    await runAlarm()
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'notReached' })
    await moveTo(0.9)
    await runAlarm()
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' })
    await moveTo(1)
  })
})

describe('a crash', () => {
  const crashes: [string, (request: Rpc) => boolean][] = [
    ['before the lane has signed', isSimulationOfLane],
    ['before the lane has a response', ({ method }) => method.startsWith('eth_sendRawTransaction')],
  ]
  it.each(crashes)('%s loses no exit and repeats none', async (_, isCut) => {
    const { trader, positionId, moveTo } = await bought('AMZN', { exits: '-500:5000,-900:10000' })
    await runAlarm()
    await disarm()
    await moveTo(0.94)
    let cut = false
    onRequest((request, forward) => {
      if (!isCut(request)) return forward()
      cut = true
      void forward()
      return new Promise(() => {})
    })
    void keeper()
      .runCycle()
      .catch(() => {})
    await vi.waitFor(() => expect(cut).toBe(true), { timeout: 120_000 })
    expect(await keeper().status()).toMatchObject({ pendingExits: 1 })
    await abortAllDurableObjects()
    vi.restoreAllMocks()

    await runCycle(keeper())
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed', ruleIndex: 0 })
    expect(await keeper().status()).toMatchObject({ pendingExits: 0 })
    await runCycle(keeper())
    expect(await position(trader, positionId)).toMatchObject({ status: 'Open', nextRuleIndex: 1 })
    expect(await exitsOf(positionId)).toBe(1)
    await moveTo(1)
  })

  it('of an idle keeper keeps its alarm and its records', async () => {
    const { trader, positionId } = await bought('AMZN')
    await runAlarm()
    await evictDurableObject(keeper())
    expect(await alarmOf()).not.toBeNull()
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'notReached' })
  })
})

describe('several keepers', () => {
  it('and an outsider that fire at the same time execute the exit once', async () => {
    const { trader, positionId, moveTo } = await bought('META', { exits: '-500:5000,-900:10000' })
    await runAlarm()
    await disarm()
    const other = keeperNamed('another')
    await runCycle(other)
    await moveTo(0.94)
    const outsider = chain
      .send(deployment.accounts.depositor, {
        address: deployment.contracts.TradeRouter,
        abi: tradeRouterAbi,
        functionName: 'executeExit',
        args: [BigInt(positionId)],
      })
      .catch(() => undefined)
    await Promise.all([runAlarm(), runCycle(other), runCycle(keeper()), outsider])
    await Promise.all([runCycle(keeper()), runCycle(other)])
    expect(await position(trader, positionId)).toMatchObject({ status: 'Open', nextRuleIndex: 1 })
    expect(await exitsOf(positionId)).toBe(1)
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed', ruleIndex: 0 })
    await moveTo(1)
  })

  it('report an exit that someone else fired, and no outcome for a close without an exit', async () => {
    const { trader, positionId, moveTo } = await bought('META', { exits: '-500:5000,-900:10000' })
    const left = await bought('TSLA')
    await runAlarm()
    await disarm()
    await moveTo(0.94)
    const fire = () =>
      chain.send(deployment.accounts.depositor, {
        address: deployment.contracts.TradeRouter,
        abi: tradeRouterAbi,
        functionName: 'executeExit',
        args: [BigInt(positionId)],
      })
    const partial = await fire()
    await runCycle(keeper())
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
      outcome: 'executed',
      firedBy: 'others',
      ruleIndex: 0,
      transactionHash: partial.transactionHash,
      usdcOut: expect.stringMatching(/^\d+$/),
    })
    await moveTo(0.89)
    const last = await fire()
    await submit(left.trader, 'submitReduceIntent', { positionId: left.positionId, exitBps: 10_000 })
    const requests = countRequests()
    await runCycle(keeper())
    expect(requests.filter(method => method === 'eth_getLogs')).toHaveLength(1)
    expect(await automation(trader, positionId)).toMatchObject({
      status: 'Closed',
      lastOutcome: { outcome: 'executed', firedBy: 'others', ruleIndex: 1, transactionHash: last.transactionHash },
    })
    expect(await automation(left.trader, left.positionId)).toMatchObject({ status: 'Closed', lastOutcome: null })
    await moveTo(1)
  })

  it('report no exit that a reorg took back', async () => {
    const { trader, positionId, moveTo } = await bought('META', { exits: '-500:5000,-900:10000' })
    await runAlarm()
    await disarm()
    await chain.reorg(async () => {
      await moveTo(0.94)
      await runCycle(keeper())
      expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
        outcome: 'executed',
        firedBy: 'keeper',
      })
    })
    await runCycle(keeper())
    // Until the new branch is as long as the old one, the service returns NODES_BEHIND.
    const read = () => call('getPositionAutomation', { agentId: trader.agentId, positionId })
    await expect.poll(async () => (await read()).status).toBe(200)
    expect((await automation(trader, positionId)).lastOutcome?.outcome).not.toBe('executed')
    await disarm()
  })

  it('watch a position again that a reorg opened minutes after its exit', async () => {
    const { trader, positionId, moveTo } = await bought('META', { exits: '-500:10000' })
    await runAlarm()
    await disarm()
    await chain.reorg(async () => {
      await moveTo(0.94)
      await runCycle(keeper())
      await runCycle(keeper())
      expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
        outcome: 'executed',
        firedBy: 'keeper',
      })
      await indexer().catchUp()
      // Minutes later, cycles do not read it any more.
      await runInDurableObject(keeper(), (_, { storage }) =>
        storage.sql.exec('UPDATE position SET waits = 0, watched_until = 0').toArray(),
      )
      expect(await isRowClosed(positionId)).toBe(true)
    })
    await vi.waitFor(
      async () => {
        await indexer().catchUp() // an index that nobody listens to looks twice a minute
        await runCycle(keeper())
        expect(await isRowClosed(positionId)).toBe(false)
      },
      { timeout: 120_000, interval: 200 },
    )
    // Until the shorter chain has grown again, reads are refused.
    const { lastOutcome } = await vi.waitFor(() => automation(trader, positionId), { timeout: 120_000, interval: 200 })
    expect(lastOutcome?.outcome).not.toBe('executed')
    await disarm()
  })

  it('watch a position that the first node they read did not know yet', async () => {
    await runAlarm()
    await disarm()
    const before = await client.getBlockNumber({ cacheTime: 0 })
    const { positionId } = await bought('META', { exits: '-500:10000' })
    await disarm()
    // The first request reads others; the second one reads the position.
    await runInDurableObject(keeper(), (_, { storage }) => {
      storage.sql.exec('DELETE FROM position WHERE id = ?', Number(positionId))
      storage.sql.exec(`UPDATE keeper SET value = ? WHERE name = 'cursor'`, `${Number(positionId) - 1}`)
      storage.sql.exec(
        `WITH RECURSIVE filler (id) AS (SELECT 1000001 UNION ALL SELECT id + 1 FROM filler WHERE id < 1000300)
         INSERT INTO position SELECT id, 0, ?2, ?1, NULL, NULL, 1, 0, 0, NULL, '{}' FROM filler`,
        deployment.tokens.META as string,
        FRONTIER,
      )
    })
    await evictDurableObject(keeper())
    let calls = 0
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const request = new Request(input as RequestInfo, init as RequestInit)
      const body = (await request.clone().json()) as Rpc
      if (Array.isArray(body) || body.method !== 'eth_call' || !isAboutExits(body) || ++calls === 1)
        return original(request)
      const [transaction, , ...overrides] = body.params ?? []
      const behind = { ...body, params: [transaction, toHex(before), ...overrides] }
      return original(request.url, { method: 'POST', headers: request.headers, body: JSON.stringify(behind) })
    })
    await runCycle(keeper())
    expect(calls).toBeGreaterThan(1)
    expect(await keeper().find(BigInt(positionId))).toBeUndefined()
    vi.restoreAllMocks()
    await runCycle(keeper())
    expect(await keeper().find(BigInt(positionId))).toBeDefined()
    await runInDurableObject(
      keeper(),
      (_, { storage }) => void storage.sql.exec('DELETE FROM position WHERE id > 1000000'),
    )
  })

  it('report who fired an exit after a reorg took back the first one', async () => {
    const { trader, positionId, moveTo } = await bought('META', { exits: '-500:5000,-900:10000' })
    await runAlarm()
    await disarm()
    await moveTo(0.94)
    let before: Body
    await chain.reorg(async () => {
      await untilExecuted({ trader, positionId }) // the lane is busy while it replaces what an earlier reorg took back
      before = (await automation(trader, positionId)).lastOutcome
      expect(before).toMatchObject({ outcome: 'executed', firedBy: 'keeper' })
    })
    const { transactionHash } = await chain.send(deployment.accounts.depositor, {
      address: deployment.contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'executeExit',
      args: [BigInt(positionId)],
    })
    await vi.waitFor(
      async () => {
        await runCycle(keeper())
        expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
          outcome: 'executed',
          firedBy: 'others',
          ruleIndex: 0,
          transactionHash,
        })
      },
      { timeout: 120_000, interval: 200 },
    )
    expect(transactionHash).not.toBe(before?.transactionHash)
    await disarm()
    await moveTo(1)
  })

  it('leave no outcome if the agent closes the position while the exit is on its way', async () => {
    const { trader, positionId, moveTo } = await bought('META', { exits: '-500:10000' })
    await runAlarm()
    await disarm()
    await moveTo(0.94)
    let isSent = false
    let isSold = false
    onRequest(async (request, forward) => {
      if (!isSend(request.method) || !isAboutExits(request)) return forward()
      isSent = true
      await waitForFlag(() => isSold)
      return forward()
    })
    await keeper().runCycle()
    await waitForFlag(() => isSent)
    expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10_000 })).toMatchObject({ status: 201 })
    await keeper().runCycle() // while the exit is in flight
    expect(await automation(trader, positionId)).toMatchObject({ status: 'Closed', lastOutcome: null })
    isSold = true
    await vi.waitUntil(async () => (await exitsInFlight()) === 0, { timeout: 120_000 })
    expect(await automation(trader, positionId)).toMatchObject({ status: 'Closed', lastOutcome: null })
    await moveTo(1)
  })

  it('are tried once although the next cycle begins before they are sent', async () => {
    const { trader, positionId, moveTo } = await bought('META', { exits: '-500:10000' })
    await runAlarm()
    await disarm()
    await moveTo(0.94)
    let tries = 0
    let isRead = false
    onRequest(async (request, forward) => {
      const response = await forward()
      if (!isSimulationOfKeeper(request)) return response
      tries++
      await waitForFlag(() => isRead)
      return response
    })
    await keeper().changed()
    await runDurableObjectAlarm(keeper())
    await waitForFlag(() => tries > 0)
    await keeper().changed()
    await runDurableObjectAlarm(keeper())
    isRead = true
    await runCycle(keeper())
    expect(await automation(trader, positionId)).toMatchObject({
      status: 'Closed',
      lastOutcome: { outcome: 'executed', firedBy: 'keeper' },
    })
    expect(tries).toBe(1)
    await moveTo(1)
  })

  it('read prices every KEEPER_INTERVAL_SECONDS, and start at once when new ones are posted', async () => {
    const { positionId, trader, moveTo, entryPriceUsdc } = await bought('GOOGL', { exits: '-500:10000' })
    await runAlarm()
    await keeper().changed()
    await runDurableObjectAlarm(keeper())
    await vi.waitFor(async () => expect((await alarmOf()) ?? 0).toBeGreaterThan(Date.now() + 2_000), {
      timeout: 120_000,
    })
    expect(await alarmOf()).toBeLessThanOrEqual(Date.now() + 5_000)
    await chain.setPrice('GOOGL', ((entryPriceUsdc / 1e6) * 0.9).toFixed(2))
    await indexer().catchUp()
    await vi.waitFor(
      async () => expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' }),
      { timeout: 120_000, interval: 200 },
    )
    await moveTo(1)
    await disarm()
  })

  it('read prices again within a second if new ones are posted during a cycle', async () => {
    const { positionId, trader, moveTo, entryPriceUsdc } = await bought('GOOGL', { exits: '-500:10000' })
    await runAlarm()
    await disarm()
    await keeper().changed()
    let isRead = false
    let isPosted = false
    onRequest(async (request, forward) => {
      const response = await forward()
      if (!isAboutExits(request) || isRead) return response
      isRead = true
      await waitForFlag(() => isPosted)
      return response
    })
    const alarms = await recordAlarms()
    const cycle = runDurableObjectAlarm(keeper())
    await waitForFlag(() => isRead)
    await chain.setPrice('GOOGL', usd(entryPriceUsdc, 0.9))
    await keeper().changed({ isUrgent: true }) // as the index does
    isPosted = true
    await cycle
    expect(alarms[0]).toBeLessThanOrEqual(1_000)
    await vi.waitFor(
      async () => expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' }),
      { timeout: 120_000, interval: 200 },
    )
    await moveTo(1)
  })

  it('fire the next rule of a ladder a second later if the price has passed it too', async () => {
    const { positionId, trader, moveTo } = await bought('GOOGL', { exits: '-500:5000,-900:10000' })
    await runAlarm()
    await moveTo(0.85)
    await keeper().changed()
    const alarms = await recordAlarms()
    await runDurableObjectAlarm(keeper())
    expect(alarms[0]).toBeLessThanOrEqual(1_000)
    await vi.waitFor(async () => expect(await position(trader, positionId)).toMatchObject({ status: 'Closed' }), {
      timeout: 120_000,
      interval: 200,
    })
    await moveTo(1)
  })

  it('read prices at most five seconds after a node is back, however long it was away', async () => {
    const { moveTo } = await bought('GOOGL', { exits: '-500:10000' })
    await runAlarm()
    await disarm()
    onRequest((request, forward) => (isAboutExits(request) ? Promise.reject(new Error('no node')) : forward()))
    const alarms = await recordAlarms()
    for (let cycles = 0; cycles < 6; cycles++) {
      await runInDurableObject(keeper(), (_, { storage }) => storage.deleteAlarm())
      await runInDurableObject(keeper(), object => object.alarm())
    }
    expect(Math.max(...alarms)).toBeLessThanOrEqual(5_000)
    vi.restoreAllMocks()
    await moveTo(1)
  })

  const runCron = async () => {
    const execution = createExecutionContext()
    await (worker as ExportedHandler<Env>).scheduled?.(createScheduledController(), env, execution)
    await waitOnExecutionContext(execution)
  }

  it('are woken by the cron trigger', async () => {
    await disarm()
    expect(await alarmOf()).toBeNull()
    await runCron()
    await vi.waitFor(async () => expect(await alarmOf()).not.toBeNull(), { timeout: 120_000 })
  })

  it('fire a stop although their alarm was lost: a post of prices and the cron trigger each arm it again', async () => {
    const { positionId, trader, moveTo } = await bought('GOOGL', { exits: '-500:10000' })
    const isFired = async () =>
      expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' })
    await runAlarm()
    await disarm()
    await loseAlarm(keeper())
    await keeper().changed({ isUrgent: true }) // as the index does
    expect(await alarmOf()).toBeGreaterThan(Date.now() - 10_000)
    await moveTo(0.9)
    await loseAlarm(keeper())
    await runCron()
    await vi.waitFor(isFired, { timeout: 120_000, interval: 200 })
    await moveTo(1)
  })

  it('are told of trades by an indexer whose alarm was lost, once the cron trigger arms it again', async () => {
    await loseAlarm(indexer())
    await runCron()
    const armed = () => runInDurableObject(indexer(), (_, { storage }) => storage.getAlarm())
    await vi.waitFor(async () => expect((await armed()) ?? Date.now()).toBeGreaterThan(Date.now() - 10_000), {
      timeout: 120_000,
    })
  })
})

/** A token that reverts in `transfer` without a reason, and has of everything what a sale asks for. */
const TOKEN_THAT_REVERTS =
  '0x5f3560e01c8063a9059cbb14602957806370a0823114602d5763a60bf13d146036575f5f5260205ff35b5f5ffd5b5f195f5260205ff35b670de0b6b3a76400005f5260205ff3'

describe('many positions', () => {
  it('cost one request per cycle', async () => {
    await Promise.all(
      Array.from({ length: 3 }, async () => {
        const trader = await newTrader({ vault: FRONTIER })
        for (const symbol of ofFrontier) await openPosition(trader, { symbol, usdcAmount: '5' })
      }),
    )
    await runAlarm()
    await disarm()
    const { openPositions } = await keeper().status()
    expect(openPositions).toBeGreaterThanOrEqual(18)
    const requests = countRequests()
    await runCycle(keeper())
    await runCycle(keeper())
    expect(requests.filter(isOfEveryCycle)).toEqual(['eth_call', 'eth_call'])
  })

  it('are exited in batches', async () => {
    const traders = await Promise.all(Array.from({ length: 5 }, () => newTrader({ vault: FRONTIER })))
    const ids = await Promise.all(traders.map(trader => openPosition(trader, { symbol: 'PLTR', usdcAmount: '20' })))
    await disarm()
    const { priceUsd } = (await call('getPrices', { symbols: 'PLTR' })).body.prices.PLTR
    await setPrice('PLTR', (Number(priceUsd) * 0.9).toFixed(2))
    const requests = countRequests()
    await runCycle(keeper())
    expect(requests.filter(method => method === 'eth_sendRawTransactionSync')).toHaveLength(1)
    const outcomes = await Promise.all(ids.map((id, index) => automation(traders[index] as Trader, id)))
    expect(new Set(outcomes.map(({ lastOutcome }) => lastOutcome.transactionHash)).size).toBe(1)
    for (const { lastOutcome } of outcomes) expect(lastOutcome).toMatchObject({ outcome: 'executed' })
    await setPrice('PLTR', priceUsd)
  })

  it('do not wait for one that fails; it reports why and is tried again', async () => {
    const broken = await bought('HOOD', { exits: '-500:10000' })
    const sound = await bought('TSLA', { exits: '-500:10000' })
    await runAlarm()
    await disarm()
    await Promise.all([broken.moveTo(0.9), sound.moveTo(0.9)])
    const address = deployment.tokens.HOOD as Hex
    const code = (await client.getCode({ address })) ?? '0x'
    await testClient.setCode({ address, bytecode: TOKEN_THAT_REVERTS })
    try {
      const firstTryAt = Date.now()
      await runCycle(keeper())
      expect(await position(sound.trader, sound.positionId)).toMatchObject({ status: 'Closed' })
      const { lastOutcome, lastEvaluation } = await automation(broken.trader, broken.positionId)
      expect(lastOutcome).toMatchObject({
        outcome: 'failed',
        code: 'INTENT_REFUSED',
        message: expect.stringMatching(/./),
      })
      expect(Number(lastOutcome.nextTryAt)).toBe(Number(lastEvaluation.at) + 2)
      const requests = countRequests()
      await runCycleAt(keeper(), firstTryAt)
      expect(requests.filter(isOfEveryCycle)).toEqual(['eth_call']) // the next try is not due yet
    } finally {
      vi.restoreAllMocks()
      await testClient.setCode({ address, bytecode: code })
    }
    await untilExecuted(broken)
    await Promise.all([broken.moveTo(1), sound.moveTo(1)])
  })
})

const untilExecuted = ({ trader, positionId }: { trader: Trader; positionId: string }) =>
  vi.waitFor(
    async () => {
      await runCycle(keeper())
      expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'executed' })
    },
    { timeout: 120_000, interval: 500 },
  )

describe('a thin pool', () => {
  it('takes an exit in parts; the rest stays due at any price, and is sold and charged once', async () => {
    await allowCost(true)
    const trader = await newTrader({ vault: FRONTIER })
    const positionId = await openPosition(trader, { symbol: 'COST', usdcAmount: '90', exits: '-500:10000' })
    const { tokenAmount } = await position(trader, positionId)
    await runAlarm()
    await disarm()
    const keeperUsdc = () =>
      client.readContract({
        address: deployment.contracts.USDC,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [deployment.accounts.keeper.address],
      })
    const before = await keeperUsdc()

    await setPrice('COST', '829')
    const firstTryAt = Date.now()
    await runCycle(keeper())
    const { lastOutcome, lastEvaluation, pendingRules } = await automation(trader, positionId)
    const rest = await position(trader, positionId)
    expect(rest).toMatchObject({ status: 'Open', nextRuleIndex: 0 })
    expect(BigInt(rest.tokenAmount)).toBeLessThan(BigInt(tokenAmount))
    const [part] = await routerEvents('ExitPartlyExecuted', positionId)
    expect(lastOutcome).toEqual({
      outcome: 'partlyExecuted',
      at: lastEvaluation.at,
      ruleIndex: 0,
      transactionHash: part?.transactionHash,
      usdcOut: `${part?.args.usdcOut}`,
      tokensLeft: rest.tokenAmount,
      nextTryAt: `${Number(lastEvaluation.at) + 2}`,
    })
    expect(pendingRules).toMatchObject([{ ruleIndex: 0, distanceBps: 0, tokenAmount: rest.tokenAmount }])
    const requests = countRequests()
    await runCycleAt(keeper(), firstTryAt)
    expect(requests.filter(isOfEveryCycle)).toEqual(['eth_call']) // the next try is not due yet
    vi.restoreAllMocks()

    await setPrice('COST', '921.5')
    await untilExecuted({ trader, positionId })
    expect(await position(trader, positionId)).toMatchObject({ status: 'Closed', nextRuleIndex: 1 })
    const sales = [
      ...(await routerEvents('ExitPartlyExecuted', positionId)),
      ...(await routerEvents('ExitExecuted', positionId)),
    ].map(({ args }) => args)
    const bounties = sales.reduce((sum, { keeperBounty }) => sum + keeperBounty, 0n)
    const proceeds = sales.reduce((sum, { usdcOut, keeperBounty }) => sum + usdcOut + keeperBounty, 0n)
    expect(await exitsOf(positionId)).toBe(1)
    expect((await keeperUsdc()) - before).toBe(bounties)
    expect(bounties).toBeLessThanOrEqual(proceeds / 1_000n) // 10 bps, as for one sale
    await allowCost(false)
  })

  it('leaves no outcome if the agent sells the rest of an exit itself', async () => {
    const { trader, positionId, moveTo } = await bought('COST', { usdcAmount: '90', exits: '-500:10000' })
    await runAlarm()
    await disarm()
    await moveTo(0.9)
    await runCycle(keeper())
    expect((await automation(trader, positionId)).lastOutcome).toMatchObject({ outcome: 'partlyExecuted' })
    expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10_000 })).toMatchObject({ status: 201 })
    await runCycle(keeper())
    expect(await automation(trader, positionId)).toMatchObject({ status: 'Closed', lastOutcome: null })
    await moveTo(1)
  })

  it('that takes nothing defers an exit, which is recorded once and tried until the floor is low enough', async () => {
    const { trader, positionId, moveTo } = await bought('HOOD', { exits: '-500:10000' })
    const policy = { address: deployment.contracts.TradePolicy as Hex, abi: tradePolicyAbi } as const
    const limits = await client.readContract({ ...policy, functionName: 'limitsOf', args: [FRONTIER, 0n] })
    const setLimits = (changes: Partial<typeof limits>) =>
      chain.administer({ ...policy, functionName: 'setLimits', args: [FRONTIER, 0n, { ...limits, ...changes }] })
    await runAlarm()
    await disarm()
    // The pool's fee alone is 0.3 %.
    await setLimits({ exitSlippageStartBps: 10, maxExitSlippageBps: 40, exitWideningSeconds: 3_600 })
    try {
      await moveTo(0.9)
      const dueAt = Date.now()
      await runCycle(keeper())
      const first = await automation(trader, positionId)
      expect(first.lastOutcome).toEqual({
        outcome: 'deferred',
        reason: 'poolPrice',
        at: first.lastEvaluation.at,
        nextTryAt: `${Number(first.lastEvaluation.at) + 2}`,
      })
      expect(first.pendingRules).toMatchObject([{ ruleIndex: 0, distanceBps: 0 }])

      // Nothing is sent again, neither while the router refuses to record nor when it would record once more.
      const requests = countRequests()
      await runCycleAt(keeper(), dueAt + 5_000)
      await chain.increaseTime(61)
      await runCycleAt(keeper(), dueAt + 15_000)
      expect(requests.filter(method => method.startsWith('eth_send'))).toEqual([])
      vi.restoreAllMocks()
      expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
        outcome: 'deferred',
        reason: 'poolPrice',
        at: first.lastEvaluation.at,
      })

      await chain.increaseTime(600)
      await runCycleAt(keeper(), dueAt + 60_000)
      expect(await routerEvents('ExitDeferred', positionId)).toHaveLength(2) // before the record expires
      await setLimits({})
      await chain.increaseTime(60) // longer than the delay until the next try
      await runCycle(keeper())
      expect((await automation(trader, positionId)).lastOutcome).toMatchObject({
        outcome: 'executed',
        firedBy: 'keeper',
      })
    } finally {
      await setLimits({})
    }
    await moveTo(1)
  })
})

describe('the keeper respects', () => {
  it('market hours, if they are enforced', async () => {
    const { trader, positionId, moveTo } = await bought('COIN', { exits: '-500:10000' })
    await disarm()
    const enforcing = keeperNamed('enforcing')
    await runInDurableObject(enforcing, instance => {
      Object.assign(instance, { env: { ...env, MARKET_SESSIONS: 'enforced' } })
    })
    await moveTo(0.9)
    await runCycle(enforcing)
    const { timestamp } = await client.getBlock()
    const isClosed = marketHours('us-equity-24-5', Number(timestamp)).session === 'closed'
    expect((await enforcing.find(BigInt(positionId)))?.outcome).toMatchObject(
      isClosed ? { kind: 'deferred', reason: 'marketClosed' } : { kind: 'executed' },
    )
    expect((await position(trader, positionId)).status).toBe(isClosed ? 'Open' : 'Closed')
    await runCycle(keeper())
    expect((await position(trader, positionId)).status).toBe('Closed')
    await moveTo(1)
  })
})

describe('a halt', () => {
  it('a price that stands still in an open market fires no stop, and the reason is that the market is halted', async () => {
    const { trader, positionId, moveTo } = await bought('COIN', { exits: '-500:10000' })
    await disarm()
    const enforcing = keeperNamed('enforcing')
    await runInDurableObject(enforcing, instance => {
      Object.assign(instance, { env: { ...env, MARKET_SESSIONS: 'enforced' } })
    })
    await moveTo(0.9)
    const { timestamp } = await client.getBlock()
    let open = Number(timestamp) + 86_400
    while (marketHours('us-equity-24-5', open).session !== 'regular') open += 60
    await chain.increaseTime(open + 600 - Number(timestamp))
    await runCycle(enforcing)
    expect((await enforcing.find(BigInt(positionId)))?.outcome).toMatchObject({
      kind: 'deferred',
      reason: 'marketHalted',
    })
    const enforced = appWith({ MARKET_SESSIONS: 'enforced' })
    const { body } = await call('getReduceIntentQuote', { agentId: trader.agentId, positionId }, enforced)
    expect(body.checks.find(({ rule }: Body) => rule === 'freshPrice')).toMatchObject({
      pass: false,
      remedy: expect.stringContaining('open, but its price stands still: trading in it is halted'),
    })

    await chain.refreshPrices()
    await runCycle(enforcing)
    expect((await position(trader, positionId)).status).toBe('Closed')
    await moveTo(1)
  })
})

describe('a router without batches', () => {
  it('simulates each exit separately, in one request', async () => {
    const rest = await bought('MSFT')
    const due = await bought('HOOD', { exits: '-500:10000' })
    await disarm()
    await due.moveTo(0.9)
    const count = await client.readContract({
      address: onChain.trading.PositionManager,
      abi: positionManagerAbi,
      functionName: 'positionCount',
    })
    const requests = countRequests()
    const ids = [BigInt(due.positionId), BigInt(rest.positionId), count + 1n]
    const { statuses } = await simulateExits(onChain, ids, false)
    expect(statuses.map(({ status }) => status)).toEqual(['executed', 'notDue', 'notOpen'])
    expect(requests).toEqual(['eth_call'])
    await due.moveTo(1)
  })

  it('gets one transaction per exit', async () => {
    const { TradeRouter: address } = onChain.trading
    const code = (await client.getCode({ address })) ?? '0x'
    // PUSH4 selector EQ: replaces the dispatcher's entry for executeExits by one that no call matches.
    const selector = toFunctionSelector(getAbiItem({ abi: tradeRouterAbi, name: 'executeExits' })).slice(2)
    const without = code.replace(`63${selector}14`, '63ffffffff14') as `0x${string}`
    expect(without).not.toBe(code)
    await testClient.setCode({ address, bytecode: without })
    try {
      const one = await bought('HOOD', { exits: '-500:10000' })
      const two = await bought('HOOD', { exits: '-500:10000' })
      await one.moveTo(0.9)
      await runAlarm()
      const hashes = await Promise.all(
        [one, two].map(async ({ trader, positionId }) => {
          const { status, lastOutcome } = await automation(trader, positionId)
          expect({ status, lastOutcome }).toMatchObject({ status: 'Closed', lastOutcome: { outcome: 'executed' } })
          return lastOutcome.transactionHash
        }),
      )
      expect(new Set(hashes).size).toBe(2)
      await one.moveTo(1)
    } finally {
      await testClient.setCode({ address, bytecode: code })
    }
  })
})

describe('the service', () => {
  it('reports the keeper in its readiness', async () => {
    await runAlarm()
    const { body } = await call('getReadiness')
    expect(body).toMatchObject({
      status: 'ready',
      keeper: {
        configured: true,
        lastEvaluation: { blockNumber: expect.stringMatching(/^\d+$/), at: expect.stringMatching(/^\d+$/) },
        openPositions: expect.any(Number),
        pendingExits: 0,
        lanes: [{ address: deployment.accounts.keeper.address, paused: false }],
      },
    })
    expect(body.problems.join()).not.toContain('keeper')
    const without = await call('getReadiness', {}, appWith({ KEEPER_ENABLED: 'false' }))
    expect(without.body).toMatchObject({ keeper: { configured: false, lastEvaluation: null } })
    expect(without.body.problems).toContain('no keeper is configured')
  })

  it('shows pending rules without a keeper too', async () => {
    const { trader, positionId } = await bought('NVDA')
    const { body, headers } = await call(
      'getPositionAutomation',
      { agentId: trader.agentId, positionId },
      appWith({ KEEPER_ENABLED: 'false' }),
    )
    expect(body).toMatchObject({ keeperEnabled: false, lastEvaluation: null, lastOutcome: null })
    expect(body.pendingRules.length).toBeGreaterThan(0)
    expect(headers.get('cache-control')).toBe('no-store') // the keeper's record may change within a block
  })

  it('notifies MCP subscribers of an agent when the keeper fires', async () => {
    const { trader, moveTo } = await bought('GOOGL', { exits: '-500:10000' })
    await indexer().catchUp() // the event log starts once the index has reached the head
    const client = new Client({ name: 'test', version: '1' })
    const listening = Promise.withResolvers<void>()
    const fetchWorker = (async (input, init) => {
      const response = await exports.default.fetch(new Request(input as string, init))
      if (init?.method === 'GET' && response.ok) listening.resolve()
      return response
    }) as typeof fetch
    await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: fetchWorker }))
    const uri = `svc://agents/${trader.agentId}/risk-state`
    const updated = new Promise<string>(resolve =>
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri)),
    )
    await client.subscribeResource({ uri })
    await listening.promise // a notification before that is lost
    await moveTo(0.9)
    await runAlarm()
    expect(await updated).toBe(uri)
    await client.close()
    await moveTo(1)
  })

  it('returns an error for unknown agents and positions', async () => {
    const { trader, positionId } = await bought('NVDA')
    const other = await newTrader()
    const codeOf = async (agentId: string, positionId: string) =>
      (await call('getPositionAutomation', { agentId, positionId })).body.code
    expect(await codeOf(trader.agentId, '999999')).toBe('POSITION_NOT_FOUND')
    expect(await codeOf(other.agentId, positionId)).toBe('POSITION_NOT_FOUND')
    expect(await codeOf('999999', positionId)).toBe('AGENT_NOT_FOUND')
  })

  it('shows the market session with prices', async () => {
    const { body } = await call('getPrices', { symbols: 'NVDA' })
    const { session, nextOpen } = marketHours('us-equity-24-5', Number(body.asOf.blockTimestamp))
    expect(body.prices.NVDA.market).toEqual({ session, nextOpen: nextOpen === undefined ? null : `${nextOpen}` })
    const { body: tokens } = await call('listVaultTokens', { id: 'genesis' })
    for (const token of tokens.tokens) expect(token.market.session).toBe(session)
  })
})
