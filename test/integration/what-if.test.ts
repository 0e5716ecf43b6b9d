import { OrderCondition } from '@agent-trading-service/protocol/order-typed-data'
import fc from 'fast-check'
import { createPublicClient, http } from 'viem'
import { describe, expect, inject, it } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, newTrader, openPosition, type Submission, signedIntent, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { orderBook, type Placed, placeOrder } from '../support/orders.ts'
import { call, deployment, type Input } from '../support/surfaces.ts'

const CASES = inject('isLong') ? 500 : 3
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const SYMBOLS = ['NVDA', 'TSLA', 'META']

const usdOf = async (symbol: string): Promise<number> => {
  const { body } = await call('getPrices')
  return Number(body.prices[symbol].priceUsd)
}

const submissions: Record<string, Submission> = {
  open: 'submitTradeIntent',
  add: 'submitAddIntent',
  reduce: 'submitReduceIntent',
  exitLadder: 'submitExitLadderIntent',
}

/** Submits an intent of a what-if, and returns what became of it in the what-if's terms. */
async function submitIntent(trader: Trader, { kind, exits, ...rest }: Body): Promise<Body> {
  const submission = submissions[kind] as Submission
  const ladder = exits && { exits: JSON.stringify(exits) }
  const { status, body } = await call(submission, await signedIntent(trader, submission, { ...rest, ...ladder }))
  return { executed: status === 201, code: status === 201 ? null : body.code }
}

/** Fires exits as anybody may. */
const executeExits = (positionIds: readonly bigint[]) =>
  chain.send(deployment.accounts.priceSetter, {
    address: deployment.contracts.TradeRouter,
    abi: tradeRouterAbi,
    functionName: 'executeExits',
    args: [positionIds],
  })

/** Executes the orders whose price or time has come, as anybody may. Returns the ids of those that execute. */
async function executeOrders(placed: readonly Placed[]): Promise<string[]> {
  const orders = placed.map(({ order }) => order)
  const call = { ...orderBook, functionName: 'executeOrders', args: [orders] } as const
  const { result } = await client.simulateContract({ ...call, account: deployment.accounts.priceSetter.address })
  await chain.send(deployment.accounts.priceSetter, call)
  return placed.flatMap(({ orderId }, index) => (result[0][index] ? [orderId] : []))
}

const positionsOf = async ({ agentId }: Trader): Promise<Body[]> =>
  (await call('listPositions', { agentId })).body.positions
const comparable = ({ openedAt: _, ...position }: Body) => position

const share = fc.integer({ min: 1, max: 10_000 })
const usdcAmount = fc.integer({ min: 10, max: 400 }).map(String)
const stop = fc.integer({ min: -1_500, max: -200 })
const ladder = fc.tuple(stop, share).map(([triggerBps, exitBps]) => [
  { triggerBps, exitBps },
  { triggerBps: triggerBps - 1_000, exitBps: 10_000 },
])
const intent = (positionIds: readonly string[]) =>
  fc.oneof(
    fc.record({ kind: fc.constant('open'), symbol: fc.constantFrom(...SYMBOLS), usdcAmount, exits: ladder }),
    fc.record({ kind: fc.constant('add'), positionId: fc.constantFrom(...positionIds), usdcAmount }),
    fc.record({ kind: fc.constant('reduce'), positionId: fc.constantFrom(...positionIds), exitBps: share }),
    fc.record({ kind: fc.constant('exitLadder'), positionId: fc.constantFrom(...positionIds), exits: ladder }),
  )
/** An order to buy a token that the agent may hold, or to sell a position of it; `distanceBps` from its price. */
const waitingOrder = fc.record({
  symbol: fc.constantFrom(...SYMBOLS),
  isSale: fc.boolean(),
  condition: fc.constantFrom(OrderCondition.AtOrBelow, OrderCondition.AtOrAbove, OrderCondition.None),
  distanceBps: fc.integer({ min: -1_200, max: 1_200 }),
})
const moves = fc.dictionary(fc.constantFrom(...SYMBOLS), fc.integer({ min: -1_200, max: 1_200 }), { maxKeys: 2 })

describe('a what-if', () => {
  it('a what-if equals what then happens, in random cases', async () => {
    for (let seed = 1; seed <= CASES; seed++) {
      const draw = <Value>(arbitrary: fc.Arbitrary<Value>, numRuns: number) => fc.sample(arbitrary, { numRuns, seed })
      const trader = await newTrader()
      const { agentId } = trader
      await chain.refreshPrices()
      for (const symbol of SYMBOLS.slice(0, 2))
        await openPosition(trader, { symbol, usdcAmount: '200', exits: '-500:5000,-900:10000' })
      const held = await positionsOf(trader)
      const positionIds = held.map(({ positionId }) => positionId)
      const orders: Placed[] = []
      for (const { symbol, isSale, condition, distanceBps } of draw(waitingOrder, seed % 3)) {
        const position = held.find(each => each.symbol === symbol)
        const price = BigInt(Math.round((await usdOf(symbol)) * (10_000 + distanceBps) * 10_000))
        orders.push(
          await placeOrder(trader, {
            symbol,
            condition,
            ...(condition !== OrderCondition.None && { price }),
            ...(isSale && position && { positionId: BigInt(position.positionId) }),
          }),
        )
      }
      // An order sees only prices that are posted after it.
      await chain.increaseTime(2)
      const [moved = {}] = draw(moves, 1)
      const prices: Record<string, string> = {}
      for (const [symbol, bps] of Object.entries(moved))
        prices[symbol] = (((await usdOf(symbol)) * (10_000 + bps)) / 10_000).toFixed(8)
      const intents = draw(intent(positionIds), 1 + (seed % 4))
      const { status, body: predicted } = await call('whatIf', { agentId, prices, intents })
      expect({ seed, status, predicted }).toMatchObject({ status: 200 })

      for (const [symbol, price] of Object.entries(prices)) await chain.setPrice(symbol, price)
      const outcomes = []
      for (const each of intents) outcomes.push(await submitIntent(trader, each))
      const due = await positionsOf(trader)
      const executed = await executeExits(due.map(({ positionId }) => BigInt(positionId)))
      expect(executed.status).toBe('success')
      const fired = await executeOrders(orders)
      const { body: risk } = await call('getRiskState', { agentId })

      expect({ seed, intents, outcomes }).toEqual({
        seed,
        intents,
        outcomes: predicted.intents.map(({ executed, code }: Body) => ({ executed, code })),
      })
      const firing = predicted.orders.filter(({ executed }: Body) => executed)
      expect({ seed, fired: fired.sort() }).toEqual({
        seed,
        fired: firing.map(({ orderId }: Body) => orderId).sort(),
      })
      for (const { executed, code, checks } of predicted.intents)
        expect(checks.find(({ pass }: Body) => !pass)?.code ?? null).toBe(executed ? null : code)
      expect({ seed, prices, positions: (await positionsOf(trader)).map(comparable) }).toEqual({
        seed,
        prices,
        positions: predicted.positions.map(comparable),
      })
      const figures = ({ equity, pnl, allocation }: Body) => ({ equity, pnl, used: allocation.used })
      expect({ seed, ...figures(risk) }).toEqual({ seed, ...figures(predicted.after) })
    }
  }, 3_600_000)

  it('a what-if sends nothing, and moves neither a nonce nor a price', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader)
    const before = await call('getRiskState', { agentId })
    const nonceOf = async () =>
      client.readContract({
        address: deployment.contracts.TradeRouter,
        abi: tradeRouterAbi,
        functionName: 'nonces',
        args: [BigInt(agentId)],
      })
    const nonce = await nonceOf()
    const prices = { NVDA: `${((await usdOf('NVDA')) * 0.9).toFixed(2)}` }
    const intents = [{ kind: 'reduce', positionId, exitBps: 5_000 }]
    const { body } = await call('whatIf', { agentId, prices, intents })
    expect(body).toMatchObject({
      intents: [{ executed: true, code: null, positionId, usdcOut: expect.stringMatching(/^\d+$/) }],
      exits: [{ positionId, symbol: 'NVDA', status: 'executed' }],
      positions: [],
    })
    expect(BigInt(body.after.equity.currentUsdc)).toBeLessThan(BigInt(body.before.equity.currentUsdc))
    expect(await nonceOf()).toBe(nonce)
    expect((await call('getRiskState', { agentId })).body.equity).toEqual(before.body.equity)
  })

  it('a what-if shows the orders that would fire, and not those that wait', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const price = BigInt(Math.round((await usdOf('NVDA')) * 0.95 * 1e8))
    const { AtOrBelow, AtOrAbove } = OrderCondition
    const near = await placeOrder(trader, { symbol: 'NVDA', condition: AtOrBelow, price })
    await placeOrder(trader, { symbol: 'META', condition: AtOrAbove, price: 10n ** 12n })
    await chain.increaseTime(2)
    const at = (factor: number, digits: bigint) => `${(Number(digits) / 1e8) * factor}`.slice(0, 9)
    const { body } = await call('whatIf', { agentId, prices: { NVDA: at(0.99, price) } })
    expect(body.orders).toEqual([{ orderId: near.orderId, symbol: 'NVDA', executed: true, code: null }])
    expect(body.positions).toMatchObject([{ symbol: 'NVDA' }])
    expect((await call('whatIf', { agentId, prices: { NVDA: at(1.02, price) } })).body.orders).toEqual([])
  })

  it('a what-if says what is left if every stop-loss fills at its floor', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    await openPosition(trader, { symbol: 'TSLA', usdcAmount: '1000', exits: '-800:10000' })
    const { body } = await call('whatIf', { agentId })
    const { equityUsdc, lossUsdc, unprotectedUsdc } = body.worstCase
    // 8 % at the trigger, and the policy's slippage below it.
    expect(BigInt(lossUsdc)).toBeGreaterThan(80_000_000n)
    expect(BigInt(lossUsdc)).toBeLessThan(300_000_000n)
    expect(unprotectedUsdc).toBe('0')
    expect(BigInt(equityUsdc) + BigInt(lossUsdc)).toBe(BigInt(body.after.equity.currentUsdc))
    expect({ ...body.after, asOf: null }).toEqual({ ...body.before, asOf: null })
  })

  it('a refused intent of a what-if has its code, and the ones after it go on', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader)
    const exits = [{ triggerBps: -800, exitBps: 10_000 }]
    const intents: Input[] = [
      { kind: 'open', symbol: 'NVDA', usdcAmount: '50', exits },
      { kind: 'open', symbol: 'META', usdcAmount: '50', exits },
      { kind: 'add', positionId, usdcAmount: '50' },
    ]
    const { body } = await call('whatIf', { agentId, intents })
    expect(body.intents).toMatchObject([
      { executed: false, code: 'POSITION_ALREADY_OPEN', positionId: null, remedy: expect.any(String) },
      { executed: true, code: null, positionId: expect.stringMatching(/^\d+$/) },
      { executed: true, code: null, tokensAdded: expect.stringMatching(/^\d+$/) },
    ])
    expect(body.positions).toHaveLength(2)
    const missing = await call('whatIf', { agentId, intents: [{ kind: 'reduce', positionId: '999999', exitBps: 1 }] })
    expect(missing).toMatchObject({ status: 404, body: { code: 'POSITION_NOT_FOUND' } })
    expect(await call('whatIf', { agentId: '999999' })).toMatchObject({
      status: 404,
      body: { code: 'AGENT_NOT_FOUND' },
    })
  })
})
