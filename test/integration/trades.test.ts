import { env } from 'cloudflare:workers'
import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { createPublicClient, erc20Abi, type Hex, http, parseEventLogs } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, FRONTIER, newTrader, openPosition, sign, signedIntent, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listen } from '../support/event-stream.ts'
import { closeAll, ownerOf, setMandate } from '../support/owner-calls.ts'
import { appWith, call, callOverHttp, deployment, type Fetch, type Input, request } from '../support/surfaces.ts'

const { accounts, contracts, tokens } = deployment
const router = { address: contracts.TradeRouter, abi: tradeRouterAbi } as const
const node = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })

const history = async (agentId: string, input: Input = {}, fetch?: Fetch): Promise<Body> => {
  const { status, body } = await call('getTradeHistory', { agentId, ...input }, fetch)
  expect({ status, body }).toMatchObject({ status: 200, body: { agentId } })
  return body
}

/** Reads all pages of a list of trades. Returns the trades and the length of each page. */
async function readPages(agentId: string, input: Input, fetch?: Fetch) {
  const pages: Body[][] = []
  let cursor: string | null | undefined
  do {
    const body = await history(agentId, { ...input, ...(cursor && { cursor }) }, fetch)
    pages.push(body.trades)
    cursor = body.nextCursor
  } while (cursor !== null)
  return { trades: pages.flat(), lengths: pages.map(({ length }) => length) }
}

const position = async (agentId: string, positionId: string): Promise<Body> =>
  (await call('getPosition', { agentId, positionId })).body.position

const act = async (trader: Trader, ...[submission, input]: [Parameters<typeof submit>[1], Input]) => {
  const { status, body } = await submit(trader, submission, input)
  expect({ status, body }).toMatchObject({ status: 201 })
  return body.transactionHash as Hex
}

/** Returns the USDC that the vault received in a transaction, less what it paid. */
async function usdcIntoVault(hash: Hex): Promise<bigint> {
  const { logs } = await node.getTransactionReceipt({ hash })
  return parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs })
    .filter(({ address }) => address.toLowerCase() === contracts.USDC.toLowerCase())
    .reduce((sum, { args: { from, to, value } }) => {
      if (from === FRONTIER) return sum - value
      return to === FRONTIER ? sum + value : sum
    }, 0n)
}

const sum = (trades: Body[], field: string) => trades.reduce((total, trade) => total + BigInt(trade[field] ?? 0), 0n)
const DIGITS = expect.stringMatching(/^[1-9]\d*$/)
const SALES = ['PositionReduced', 'ExitExecuted', 'PositionForceClosed']

let trader: Trader
let agentId: string
/** Three positions: partly stopped out and then closed by the agent, force-closed, and stopped out completely. */
let traded: string
let forced: string
let stopped: string
let transactions: Record<'open' | 'add' | 'ladder' | 'exit' | 'reduce' | 'close' | 'force' | 'batch', Hex>

beforeAll(async () => {
  // Real capital, so that the trades of these positions move USDC.
  trader = await newTrader({ vault: FRONTIER })
  agentId = trader.agentId

  const opening = await submit(trader, 'submitTradeIntent', { symbol: 'HOOD', usdcAmount: '500' })
  traded = opening.body.positionId
  const add = await act(trader, 'submitAddIntent', { positionId: traded, usdcAmount: '100.5' })
  const ladder = await act(trader, 'submitExitLadderIntent', {
    positionId: traded,
    exits: '2000:1000,-700:5000,-900:10000',
  })
  const entry = Number((await position(agentId, traded)).entryPriceUsdc) / 1e6
  await chain.setPrice('HOOD', (entry * 0.92).toFixed(2))
  const exit = await chain.send(accounts.keeper, { ...router, functionName: 'executeExit', args: [BigInt(traded)] })
  const reduce = await act(trader, 'submitReduceIntent', { positionId: traded, exitBps: 4000 })
  const close = await act(trader, 'submitReduceIntent', { positionId: traded, exitBps: 10000 })
  await chain.setPrice('HOOD', '138.6')

  forced = await openPosition(trader, { symbol: 'PLTR', usdcAmount: '200' })
  await chain.setAgentStatus(BigInt(agentId), AgentStatus.Suspended)
  const force = await chain.send(accounts.operator, { ...router, functionName: 'forceClose', args: [BigInt(forced)] })
  await chain.setAgentStatus(BigInt(agentId), AgentStatus.Active)

  stopped = await openPosition(trader, { symbol: 'HOOD', usdcAmount: '300', exits: '-500:2500,-700:10000' })
  const entered = Number((await position(agentId, stopped)).entryPriceUsdc) / 1e6
  await chain.setPrice('HOOD', (entered * 0.91).toFixed(2))
  const twice = [BigInt(stopped), BigInt(stopped)]
  const batch = await chain.send(accounts.keeper, { ...router, functionName: 'executeExits', args: [twice] })
  await chain.setPrice('HOOD', '138.6')

  transactions = {
    ...{ add, ladder, reduce, close },
    open: opening.body.transactionHash,
    exit: exit.transactionHash,
    force: force.transactionHash,
    batch: batch.transactionHash,
  }
})

describe('the trades of a position', () => {
  it('the trades of a position are one record for each change, newest first', async () => {
    const { trades, nextCursor, asOf } = await history(agentId, { positionId: traded })
    expect(trades.map(({ type, source, transactionHash }: Body) => [type, source, transactionHash])).toEqual([
      ['PositionReduced', 'intent', transactions.close],
      ['PositionReduced', 'intent', transactions.reduce],
      ['ExitExecuted', 'automation', transactions.exit],
      ['ExitLadderUpdated', 'intent', transactions.ladder],
      ['PositionIncreased', 'intent', transactions.add],
      ['PositionOpened', 'intent', transactions.open],
    ])
    expect(nextCursor).toBe(null)
    for (const trade of trades) {
      expect(trade).toMatchObject({ positionId: traded, symbol: 'HOOD', token: tokens.HOOD, vault: FRONTIER })
      expect(trade.id).toBe(`${trade.transactionHash}-${trade.logIndex}`)
      const block = await node.getBlock({ blockNumber: BigInt(trade.blockNumber) })
      expect(trade.timestamp).toBe(`${block.timestamp}`)
      expect(BigInt(trade.blockNumber)).toBeLessThanOrEqual(BigInt(asOf.blockNumber))
    }
  })

  it('the trades of a position have the facts of their events, and null for the others', async () => {
    const { trades } = await history(agentId, { positionId: traded })
    const [closed, reduced, exited, ladder, increased, opened] = trades
    const nothing = {
      ...{ usdcAmount: null, tokenAmount: null, priceUsdc: null, realizedPnlUsdc: null, exitBps: null },
      positionPnlUsdc: null,
      ...{ ruleIndex: null, triggerType: null, triggerBps: null },
    }
    expect(ladder).toMatchObject(nothing)
    expect(closed).toMatchObject({ exitBps: 10_000, positionPnlUsdc: expect.stringMatching(/^-?\d+$/) })
    const bought = { ...nothing, tokenAmount: DIGITS, priceUsdc: DIGITS }
    expect(opened).toMatchObject({ ...bought, usdcAmount: '500000000' })
    expect(increased).toMatchObject({ ...bought, usdcAmount: '100500000' })
    expect(reduced).toMatchObject({ ruleIndex: null, triggerType: null, triggerBps: null, exitBps: 4000 })
    // The take-profit was first in the ladder; the rule that fired has moved before it.
    expect(exited).toMatchObject({ ruleIndex: 0, triggerType: 'StopLoss', triggerBps: -700, exitBps: 5000 })
  })

  it('the trades of a position add up to the PnL of the position and to the USDC that moved', async () => {
    const { trades } = await history(agentId)
    for (const positionId of [traded, forced, stopped]) {
      const own = trades.filter((trade: Body) => trade.positionId === positionId)
      const sales = own.filter(({ type }: Body) => SALES.includes(type))
      const buys = own.filter(({ type }: Body) => ['PositionOpened', 'PositionIncreased'].includes(type))
      const { realizedPnlUsdc } = await position(agentId, positionId)
      const closed = own.filter(({ positionPnlUsdc }: Body) => positionPnlUsdc !== null)
      expect(closed).toEqual([own[0]])
      expect(closed[0].positionPnlUsdc).toBe(realizedPnlUsdc)
      const withPnl = own.filter((trade: Body) => trade.realizedPnlUsdc !== null)
      expect(`${sum(withPnl, 'realizedPnlUsdc')}`).toBe(realizedPnlUsdc)
      expect(`${sum(sales, 'usdcAmount') - sum(buys, 'usdcAmount')}`).toBe(realizedPnlUsdc)
      expect(sum(sales, 'tokenAmount')).toBe(sum(buys, 'tokenAmount'))
      for (const { usdcAmount, tokenAmount, priceUsdc } of [...sales, ...buys])
        expect(BigInt(priceUsdc)).toBe((BigInt(usdcAmount) * 10n ** 18n) / BigInt(tokenAmount))
    }
    for (const hash of new Set<Hex>(trades.map(({ transactionHash }: Body) => transactionHash))) {
      const own = trades.filter(({ transactionHash }: Body) => transactionHash === hash)
      const got = own.filter(({ type }: Body) => SALES.includes(type))
      const paid = own.filter(({ type }: Body) => !SALES.includes(type))
      expect(sum(got, 'usdcAmount') - sum(paid, 'usdcAmount')).toBe(await usdcIntoVault(hash))
    }
  })

  it('the trades of a position end with a forced close if the operator closes the position', async () => {
    const { trades } = await history(agentId, { positionId: forced })
    expect(trades).toMatchObject([
      { type: 'PositionForceClosed', source: 'operator', transactionHash: transactions.force, exitBps: 10000 },
      { type: 'PositionOpened', source: 'intent', usdcAmount: '200000000' },
    ])
  })

  it('the trades of a position are separate for two exits of one position in one transaction', async () => {
    const { trades } = await history(agentId, { positionId: stopped })
    const transactionHash = transactions.batch
    expect(trades).toMatchObject([
      { type: 'ExitExecuted', transactionHash, ruleIndex: 1, triggerBps: -700, exitBps: 10000 },
      { type: 'ExitExecuted', transactionHash, ruleIndex: 0, triggerBps: -500, exitBps: 2500 },
      { type: 'PositionOpened' },
    ])
    const [last, first, opened] = trades
    expect(BigInt(first.tokenAmount)).toBe((BigInt(opened.tokenAmount) * 2500n) / 10_000n)
    expect(BigInt(last.tokenAmount)).toBe(BigInt(opened.tokenAmount) - BigInt(first.tokenAmount))
  })
})

describe('sales that a thin pool fills only in part', () => {
  const cost = tokens.COST as Hex
  const moveTo = (factor: number) => chain.setPrice('COST', (921.5 * factor).toFixed(2))
  const frontier = { address: FRONTIER, abi: mandateVaultAbi } as const
  let seller: Trader

  /** Opens a position that is larger than what the pool takes within an exit's slippage. */
  async function buyRepeatedly(trader = seller) {
    const positionId = await openPosition(trader, { symbol: 'COST', usdcAmount: '90', exits: '-500:10000' })
    for (let purchase = 1; purchase < 5; purchase++) {
      await moveTo(1) // resolves once the pool is back at the price
      await act(trader, 'submitAddIntent', { positionId, usdcAmount: '90' })
    }
    return positionId
  }

  beforeAll(async () => {
    await chain.administer({ ...frontier, functionName: 'enableToken', args: [cost] })
    seller = await newTrader({ vault: FRONTIER })
  })
  afterAll(async () => {
    await moveTo(1)
    await chain.administer({ ...frontier, functionName: 'setTokenEnabled', args: [cost, false] })
  })

  /** Expects the amounts of a position's trades to add up, and each sale to have moved its USDC. */
  async function expectSums(positionId: string, trades: Body[]) {
    const sales = trades.filter(({ tokenAmount, type }) => tokenAmount !== null && !/Opened|Increased/.test(type))
    const buys = trades.filter(({ type }) => /Opened|Increased/.test(type))
    const { realizedPnlUsdc } = await position(seller.agentId, positionId)
    expect(`${sum(sales, 'realizedPnlUsdc')}`).toBe(realizedPnlUsdc)
    expect(`${sum(sales, 'usdcAmount') - sum(buys, 'usdcAmount')}`).toBe(realizedPnlUsdc)
    expect(sum(sales, 'tokenAmount')).toBe(sum(buys, 'tokenAmount'))
    for (const { transactionHash, usdcAmount, tokenAmount, priceUsdc, capitalMode } of sales) {
      expect(BigInt(usdcAmount)).toBe(await usdcIntoVault(transactionHash))
      expect(BigInt(priceUsdc)).toBe((BigInt(usdcAmount) * 10n ** 18n) / BigInt(tokenAmount))
      expect(capitalMode).toBe('Real')
    }
  }

  it('sales that a thin pool fills only in part are one record for each part of an exit', async () => {
    const positionId = await buyRepeatedly()
    const events = listen(await request(`/agents/${seller.agentId}/events`))
    const fire = () =>
      chain.send(accounts.keeper, { ...router, functionName: 'executeExit', args: [BigInt(positionId)] })
    await moveTo(0.9)
    const first = await fire()
    expect(await position(seller.agentId, positionId)).toMatchObject({ status: 'Open', nextRuleIndex: 0 })
    await chain.increaseTime(10) // the floor is as low as it gets
    await moveTo(0.9)
    for (let sale = 0; (await position(seller.agentId, positionId)).status === 'Open' && sale < 8; sale++) {
      await fire()
      await moveTo(0.9)
    }

    const { trades } = await history(seller.agentId, { positionId })
    const exits = trades.filter(({ type }: Body) => /^Exit/.test(type))
    expect(trades.map(({ type }: Body) => type).join(' ')).toMatch(
      /^ExitExecuted (ExitPartlyExecuted )+(PositionIncreased )+PositionOpened$/,
    )
    expect(exits.at(-1)).toMatchObject({
      type: 'ExitPartlyExecuted',
      source: 'automation',
      transactionHash: first.transactionHash,
      realizedPnlUsdc: expect.stringMatching(/^-\d+$/),
      ruleIndex: 0,
      exitBps: null,
      triggerType: null,
      triggerBps: null,
    })
    expect(exits[0]).toMatchObject({ type: 'ExitExecuted', ruleIndex: 0, triggerBps: -500, exitBps: 10_000 })
    await expectSums(positionId, trades)

    const filtered = await history(seller.agentId, { type: 'ExitPartlyExecuted' })
    expect(filtered.trades).toEqual(exits.slice(1))
    const csv = await (await request(`/agents/${seller.agentId}/trades?format=csv&type=ExitPartlyExecuted`)).text()
    expect(csv.match(/ExitPartlyExecuted/g)).toHaveLength(exits.length - 1)
    expect((await events.next('exit')).data).toMatchObject({ type: 'ExitPartlyExecuted', positionId })
    await events.leave()
    await moveTo(1)
  })

  it('sales that a thin pool fills only in part leave what the pool does not take of an exit due, whatever the price is then', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const { agentId } = trader
    const positionId = await buyRepeatedly(trader)
    const held = await position(agentId, positionId)
    const fire = () =>
      chain.send(accounts.depositor, { ...router, functionName: 'executeExit', args: [BigInt(positionId)] })
    await moveTo(0.9)
    const { transactionHash } = await fire()

    const [part] = (await history(agentId, { positionId })).trades
    const left = await position(agentId, positionId)
    expect(part).toMatchObject({ type: 'ExitPartlyExecuted', transactionHash, capitalMode: 'Real' })
    expect(BigInt(part.usdcAmount)).toBe(await usdcIntoVault(transactionHash))
    expect(left).toMatchObject({ status: 'Open', nextRuleIndex: 0, realizedPnlUsdc: part.realizedPnlUsdc })
    expect(left.exitRules).toEqual(held.exitRules)
    expect(BigInt(part.tokenAmount)).toBeGreaterThan(0n)
    expect(BigInt(left.tokenAmount)).toBe(BigInt(held.tokenAmount) - BigInt(part.tokenAmount))

    await moveTo(1) // no rule is met any more
    const { body: automation } = await call('getPositionAutomation', { agentId, positionId })
    expect(automation).toMatchObject({
      status: 'Open',
      pendingRules: [{ ruleIndex: 0, triggerBps: -500, tokenAmount: left.tokenAmount }],
    })
    const update = await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-900:10000' })
    expect(update).toMatchObject({ status: 400, body: { code: 'EXIT_IN_PROGRESS', details: { positionId } } })
    for (let sale = 0; (await position(agentId, positionId)).status === 'Open' && sale < 8; sale++) {
      await fire()
      await chain.increaseTime(10) // the sale accepts more slippage the longer it is due
      await moveTo(1)
    }
    const { trades } = await history(agentId, { positionId })
    expect(trades[0]).toMatchObject({ type: 'ExitExecuted', positionPnlUsdc: expect.any(String) })
    const sales = trades.filter(({ type }: Body) => /^Exit/.test(type))
    expect(`${sum(sales, 'tokenAmount')}`).toBe(held.tokenAmount)
  })

  it('sales that a thin pool fills only in part are one record for each part of a position that its owner closes', async () => {
    const positionId = await buyRepeatedly()
    const events = listen(await request(`/agents/${seller.agentId}/events`))
    const owner = await ownerOf(seller)
    await closeAll(owner, [seller.agentId])
    for (let sale = 0; (await position(seller.agentId, positionId)).status === 'Open' && sale < 8; sale++) {
      await chain.send(accounts.depositor, { ...router, functionName: 'executeExits', args: [[BigInt(positionId)]] })
      await chain.increaseTime(10)
      await moveTo(1)
    }
    const { trades } = await history(seller.agentId, { positionId })
    expect(trades.map(({ type }: Body) => type).join(' ')).toMatch(
      /^OwnerCloseExecuted (OwnerCloseExecuted )+(PositionIncreased )+PositionOpened$/,
    )
    const parts = trades.filter(({ type }: Body) => type === 'OwnerCloseExecuted')
    for (const part of parts) expect(part).toMatchObject({ source: 'owner', exitBps: null, ruleIndex: null })
    expect(trades[0]).toMatchObject({ source: 'owner', positionPnlUsdc: expect.any(String) })
    await expectSums(positionId, trades)
    expect((await history(seller.agentId, { type: 'OwnerCloseExecuted' })).trades).toEqual(parts)
    const csv = await (await request(`/agents/${seller.agentId}/trades?format=csv&type=OwnerCloseExecuted`)).text()
    expect(csv.match(/OwnerCloseExecuted/g)).toHaveLength(parts.length)
    const sale = await events.until(() => events.events.find(({ data }) => data.type === 'OwnerCloseExecuted'))
    expect(sale).toMatchObject({ event: 'trade', data: { source: 'owner', positionId } })
    await events.leave()
    await setMandate(owner, seller.agentId)
  })

  it('sales that a thin pool fills only in part are one record for each part of a forced close', async () => {
    const positionId = await buyRepeatedly()
    await chain.setAgentStatus(BigInt(seller.agentId), AgentStatus.Suspended)
    for (let sale = 0; (await position(seller.agentId, positionId)).status === 'Open' && sale < 8; sale++) {
      await chain.send(accounts.operator, { ...router, functionName: 'forceClose', args: [BigInt(positionId)] })
      await chain.increaseTime(10)
      await moveTo(1)
    }
    const { trades } = await history(seller.agentId, { positionId })
    expect(trades.map(({ type }: Body) => type).join(' ')).toMatch(
      /^PositionForceClosed (PositionPartlyForceClosed )+(PositionIncreased )+PositionOpened$/,
    )
    const parts = trades.filter(({ type }: Body) => type === 'PositionPartlyForceClosed')
    for (const part of parts) expect(part).toMatchObject({ source: 'operator', exitBps: null, ruleIndex: null })
    await expectSums(positionId, trades)
    expect((await history(seller.agentId, { type: 'PositionPartlyForceClosed' })).trades).toEqual(parts)
  })
})

describe('the note of a trade', () => {
  const NOTE = 'Breakout <b>above</b> 120 — 突破 📈'

  it('the note of a trade is shown with the trade, its event and its intent, and a repeated body keeps the first one', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const events = listen(await request(`/agents/${agentId}/events`))
    const { body: quote } = await call('getTradeIntentQuote', { agentId, symbol: 'NVDA', usdcAmount: '20' })
    const body = { ...quote.body, agentId, signature: await sign(trader.account, quote.typedData) }
    const { body: receipt } = await call('submitTradeIntent', { ...body, note: NOTE })
    const noteOf = async () => (await history(agentId)).trades[0].note
    expect(await noteOf()).toBe(NOTE)
    expect((await events.next('trade')).data).toMatchObject({ transactionHash: receipt.transactionHash, note: NOTE })
    for (const note of ['another one', undefined])
      expect((await call('submitTradeIntent', { ...body, ...(note && { note }) })).body).toEqual(receipt)
    expect((await call('getIntent', { digest: quote.digest })).body).toMatchObject({ note: NOTE })
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    expect(await noteOf()).toBe(NOTE)
    const csv = await (await request(`/agents/${agentId}/trades?format=csv`)).text()
    expect(csv).toContain(NOTE)
    await events.leave()
  })

  it('the note of a trade is that of the request that was accepted', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '20' })
    await chain.pauseTrading('genesis', true)
    const refused = await call('submitTradeIntent', { ...body, note: 'refused' })
    await chain.pauseTrading('genesis', false)
    expect(refused).toMatchObject({ status: 503, body: { code: 'TRADING_PAUSED' } })
    expect((await call('submitTradeIntent', { ...body, note: 'accepted' })).status).toBe(201)
    const [opened] = (await history(agentId)).trades
    expect(opened).toMatchObject({ type: 'PositionOpened', note: 'accepted' })
    await act(trader, 'submitReduceIntent', { positionId: opened.positionId, exitBps: 10_000 })
    expect((await history(agentId)).trades).toMatchObject([{ note: null }, { note: 'accepted' }])
  })

  it.each([
    ['is too long', 'x'.repeat(281), 'at most 280 characters'],
    ['changes the direction of writing', 'up\u202Edown', 'U+202E'],
    ['has two lines', 'one\ntwo', 'U+000A'],
    ['is blank', '\u00A0 ', 'visible character'],
    ['is half a character', '\uD83D', 'well-formed'],
  ])('the note of a trade is refused before the trade if it %s', async (_, note, problem) => {
    const body = await signedIntent(await newTrader(), 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '20' })
    const { status, body: refusal } = await call('submitTradeIntent', { ...body, note })
    expect({ status, refusal }).toMatchObject({ status: 400, refusal: { code: 'INVALID_REQUEST' } })
    expect(JSON.stringify(refusal)).toContain(problem)
  })
})

describe('pages', () => {
  it.each([1, 3, 11])('pages of %i trades add up to the whole list', async limit => {
    const { trades: all } = await history(agentId)
    expect(all).toHaveLength(11)
    const { trades, lengths } = await readPages(agentId, { limit })
    expect(trades).toEqual(all)
    expect(Math.max(...lengths)).toBe(limit)
    expect(lengths).toHaveLength(Math.ceil(11 / limit))
  })

  it('pages do not shift when new trades arrive', async () => {
    const agent = await newTrader()
    await openPosition(agent, { symbol: 'NVDA', usdcAmount: '20' })
    await openPosition(agent, { symbol: 'MSFT', usdcAmount: '20' })
    const first = await history(agent.agentId, { limit: 1 })
    await openPosition(agent, { symbol: 'AAPL', usdcAmount: '20' })
    const second = await history(agent.agentId, { limit: 1, cursor: first.nextCursor })
    expect([first.trades[0].symbol, second.trades[0].symbol]).toEqual(['MSFT', 'NVDA'])
  })

  it.each(['x', 'not a cursor', 'MTIt', 'MDEtMQ', 'MTItMQ==', 'LTEtMQ', 'M'.repeat(80)])(
    'pages reject the cursor "%s"',
    async cursor => {
      const { status, body } = await call('getTradeHistory', { agentId, cursor })
      expect({ status, body }).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
      expect(body.error).toContain('cursor')
    },
  )

  it.each([-1, 101, 1.5, 'many'])('pages reject the limit %s', async limit => {
    expect(await call('getTradeHistory', { agentId, limit })).toMatchObject({ status: 400 })
  })

  it('pages of an agent without trades are one empty page', async () => {
    const { agentId } = await newTrader()
    expect(await history(agentId)).toMatchObject({ trades: [], nextCursor: null })
  })
})

describe('filters', () => {
  it.each([
    'PositionOpened',
    'PositionIncreased',
    'PositionReduced',
    'ExitLadderUpdated',
    'ExitExecuted',
    'PositionForceClosed',
  ])('filters by type %s return those records unchanged', async type => {
    const { trades: all } = await history(agentId)
    const expected = all.filter((trade: Body) => trade.type === type)
    expect(expected).not.toEqual([])
    expect((await history(agentId, { type })).trades).toEqual(expected)
  })

  it('filters by symbol and position return the matching records, also page by page', async () => {
    const { trades: all } = await history(agentId)
    const hood = all.filter(({ symbol }: Body) => symbol === 'HOOD')
    expect(hood).toHaveLength(9)
    expect((await history(agentId, { symbol: 'HOOD' })).trades).toEqual(hood)
    expect((await readPages(agentId, { symbol: 'HOOD', limit: 4 })).trades).toEqual(hood)
    expect((await history(agentId, { symbol: 'NVDA' })).trades).toEqual([])
    expect((await history(agentId, { symbol: 'HOOD', positionId: forced })).trades).toEqual([])
    const exits = hood.filter((trade: Body) => trade.type === 'ExitExecuted' && trade.positionId === stopped)
    const both = { symbol: 'HOOD', type: 'ExitExecuted', positionId: stopped }
    expect((await history(agentId, both)).trades).toEqual(exits)
  })

  it('filters by position return nothing of another agent', async () => {
    const { agentId: other } = await newTrader()
    expect((await history(other, { positionId: traded })).trades).toEqual([])
  })

  it.each([
    [{ type: 'Bought' }, 'INVALID_REQUEST'],
    [{ symbol: 'NONESUCH' }, 'UNKNOWN_SYMBOL'],
    [{ positionId: 'first' }, 'INVALID_REQUEST'],
  ])('filters reject %o', async (filter, code) => {
    const answer = await call('getTradeHistory', { agentId, ...filter })
    expect(answer).toMatchObject({ status: 400, body: { code } })
  })
})

describe('the trades of all agents', () => {
  /** Returns the newest trades of all agents, page by page, until one is older than both agents. */
  async function feed(input: Input, until: bigint): Promise<Body[]> {
    const found: Body[] = []
    for (let cursor: string | undefined; ; ) {
      const { status, body } = await call('listTrades', { limit: 3, ...input, ...(cursor && { cursor }) })
      expect({ status, body }).toMatchObject({ status: 200 })
      found.push(...body.trades)
      cursor = body.nextCursor
      if (!cursor || BigInt(body.trades.at(-1)?.blockNumber ?? until) < until) return found
    }
  }

  it('the trades of all agents are those of each agent, newest first, with its name, filtered by vault, symbol and type', async () => {
    const [one, other] = [await newTrader({ name: 'first mover' }), await newTrader({ name: 'other', vault: FRONTIER })]
    const from = BigInt((await call('getPrices', {})).body.asOf.blockNumber)
    const note = 'Breakout above 120'
    const opening = await signedIntent(one, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '20' })
    await call('submitTradeIntent', { ...opening, note })
    const positionId = await openPosition(other, { symbol: 'HOOD', usdcAmount: '20' })
    await act(other, 'submitReduceIntent', { positionId, exitBps: 10_000 })

    const known = new Map<string, string>([
      [one.agentId, 'first mover'],
      [other.agentId, 'other'],
    ])
    const own = (trades: Body[]) => trades.filter(({ agentId }) => known.has(agentId))
    const separate = await Promise.all(
      [...known].map(async ([agentId, agentName]) =>
        (await history(agentId)).trades.map((trade: Body) => ({ ...trade, agentId, agentName })),
      ),
    )
    const expected = separate.flat().toSorted((a: Body, b: Body) => Number(b.blockNumber) - Number(a.blockNumber))
    expect(own(await feed({}, from))).toEqual(expected)
    expect(expected.at(-1)).toMatchObject({ agentName: 'first mover', note })
    const where = (filter: (trade: Body) => boolean) => expected.filter(filter)
    expect(own(await feed({ vault: 'frontier' }, from))).toEqual(where(({ agentId }) => agentId === other.agentId))
    expect(own(await feed({ symbol: 'NVDA' }, from))).toEqual(where(({ symbol }) => symbol === 'NVDA'))
    expect(own(await feed({ type: 'PositionReduced' }, from))).toEqual(where(({ type }) => type === 'PositionReduced'))
  })

  it.each([
    [{ vault: 'nowhere' }, 404, 'VAULT_NOT_FOUND'],
    [{ symbol: 'NONESUCH' }, 400, 'UNKNOWN_SYMBOL'],
    [{ cursor: 'x' }, 400, 'INVALID_REQUEST'],
  ])('the trades of all agents are refused with %o', async (input, status, code) => {
    expect(await call('listTrades', input)).toMatchObject({ status, body: { code } })
  })
})

it('a relayed trade is in the next read', async () => {
  const agent = await newTrader()
  const positionId = await openPosition(agent, { symbol: 'NVDA', usdcAmount: '50' })
  for (let round = 0; round < 8; round++) {
    const hash = await act(agent, 'submitReduceIntent', { positionId, exitBps: 500 })
    const { trades } = await history(agent.agentId, { limit: 1 })
    expect(trades).toMatchObject([{ transactionHash: hash }])
  }
})

describe('a node', () => {
  const original = globalThis.fetch.bind(globalThis)
  afterEach(() => vi.restoreAllMocks())

  /** The URL under which the tested app reaches the node, to tell its requests from the Durable Objects'. */
  const APP_RPC_URL = `${deployment.rpcUrl}/reads`

  /** Limits the node to ranges of `maxBlocks` and to logs without timestamps. Returns the methods the app requests. */
  function limitNode(maxBlocks: number): string[] {
    const requested: string[] = []
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const request = new Request(input as RequestInfo, init as RequestInit)
      if (!request.url.startsWith(deployment.rpcUrl)) return original(request)
      const sent = [await request.clone().json<Body>()].flat()
      if (request.url === APP_RPC_URL) requested.push(sent.map(({ method }) => method).join('+'))
      const isBatch = (await request.clone().text()).startsWith('[')
      const answer = [await (await original(new Request(deployment.rpcUrl, request))).json<Body>()].flat()
      for (const [index, { id, method, params }] of sent.entries()) {
        if (method !== 'eth_getLogs') continue
        const [{ blockHash, fromBlock, toBlock }] = params
        const isTooLarge = (blockHash ? 1 : Number(toBlock) - Number(fromBlock) + 1) > maxBlocks
        answer[index] = isTooLarge
          ? { jsonrpc: '2.0', id, error: { code: -32005, message: 'block range too large' } }
          : { ...answer[index], result: answer[index].result.map(({ blockTimestamp: _, ...log }: Body) => log) }
      }
      return Response.json(isBatch ? answer : answer[0])
    })
    return requested
  }

  it('a node is queried for the agent alone, because the index reads what it does not have yet', async () => {
    const requested = limitNode(Number.POSITIVE_INFINITY)
    await callOverHttp('getTradeHistory', { agentId, limit: 1 }, appWith({ RPC_URL: APP_RPC_URL })) // counts requests
    expect(requested).toEqual(['eth_call'])
  })

  it('a node that omits timestamps in logs is queried for those of the blocks', async () => {
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '20' })
    const { trades: expected } = await history(agentId)
    limitNode(Number.POSITIVE_INFINITY)
    const hash = await act(trader, 'submitExitLadderIntent', { positionId, exits: '-800:10000' })
    const { trades } = await history(agentId, {}, appWith({}))
    expect(trades.slice(1)).toEqual(expected)
    const { blockNumber } = await node.getTransactionReceipt({ hash })
    const { timestamp } = await node.getBlock({ blockNumber })
    expect(trades[0]).toMatchObject({ transactionHash: hash, timestamp: `${timestamp}` })
  })

  it('a node that returns no logs does not limit the response if the headers of the blocks exclude logs of the agent', async () => {
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const { trades: expected } = await history(agentId)
    limitNode(0)
    const before = await node.getBlockNumber({ cacheTime: 0 })
    await node.request<Body>({ method: 'anvil_mine', params: ['0x4', '0x0'] })
    const { trades, asOf, lagBlocks } = await history(agentId, {}, appWith({}))
    expect(trades).toEqual(expected)
    expect(lagBlocks).toBe(0)
    expect(BigInt(asOf.blockNumber)).toBeGreaterThan(before)
  })

  it('a node that returns no logs ends the list at an earlier block, which it says, until it returns them', async () => {
    await openPosition(trader, { symbol: 'META', usdcAmount: '20' })
    const { trades: before } = await history(agentId)
    limitNode(0)
    const hash = await act(trader, 'submitTradeIntent', { symbol: 'COIN', usdcAmount: '20' })
    const behind = await history(agentId, {}, appWith({}))
    expect(behind.lagBlocks).toBeGreaterThan(0)
    expect(behind.trades).toEqual(before)
    vi.restoreAllMocks()
    const { trades, lagBlocks } = await history(agentId)
    expect(lagBlocks).toBe(0)
    expect(trades[0]).toMatchObject({ type: 'PositionOpened', symbol: 'COIN', transactionHash: hash })
  })

  it('a node that does not respond is a CHAIN_UNREACHABLE', async () => {
    const answer = await call('getTradeHistory', { agentId }, appWith({ RPC_URL: 'http://127.0.0.1:9' }))
    expect(answer).toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE' } })
  })
})

describe('the list of trades', () => {
  it('the list of trades is refused for an unknown agent', async () => {
    const answer = await call('getTradeHistory', { agentId: '999999' })
    expect(answer).toMatchObject({ status: 404, body: { code: 'AGENT_NOT_FOUND' } })
  })

  it('the list of trades is refused without a router', async () => {
    const { TradeRouter: _, ...rest } = contracts
    const answer = await call('getTradeHistory', { agentId }, appWith({ CONTRACTS: JSON.stringify(rest) }))
    expect(answer).toMatchObject({ status: 503, body: { code: 'TRADING_NOT_CONFIGURED' } })
  })
})
