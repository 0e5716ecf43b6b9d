import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { type Address, createPublicClient, http } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { chain, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'
import { appWith, call, deployment, type Fetch, request } from '../support/surfaces.ts'

const HOUR = 3_600
const enforcing = appWith({ MARKET_SESSIONS: 'enforced' })
const sessionAt = (time: number) => marketHours('us-equity-24-5', time).session

let trader: Trader
let positionId: string
/** Moves the chain's clock to a time after which the equity market stays closed for more than a day. */
async function closeMarket() {
  const now = Number((await call('getPrices')).body.asOf.blockTimestamp)
  let time = now
  while ([0, 13, 26].some(hours => sessionAt(time + hours * HOUR) !== 'closed')) time += HOUR
  if (time > now) await chain.increaseTime(time - now)
  await chain.refreshPrices()
}
beforeAll(async () => {
  await closeMarket()
  trader = await newTrader()
  positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '50' })
})
afterAll(() => chain.refreshPrices())

const quotes = () =>
  [
    ['getTradeIntentQuote', { symbol: 'AAPL', usdcAmount: '10' }],
    ['getAddIntentQuote', { positionId, usdcAmount: '10' }],
    ['getReduceIntentQuote', { positionId, exitBps: 5000 }],
    ['getExitLadderIntentQuote', { positionId, exits: '-800:10000,1500:10000' }],
  ] as const
const freshPriceOf = ({ checks }: Body) => checks.find(({ rule }: Body) => rule === 'freshPrice')

describe('while the market of a token is closed,', () => {
  it('while the market of a token is closed, every quote says so, and its checks pass while the price is fresh', async () => {
    for (const [id, input] of quotes()) {
      const { body } = await call(id, { agentId: trader.agentId, ...input }, enforcing)
      const { nextOpen } = body.market
      expect({ id, market: body.market, warnings: body.warnings }).toMatchObject({
        market: { session: 'closed', nextOpen: expect.stringMatching(/^\d{10}$/) },
        warnings: [expect.stringContaining(`until ${nextOpen}`)],
      })
      expect(body.checks.every(({ pass }: Body) => pass)).toBe(true)
    }
    const { status } = await submit(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '10' }, enforcing)
    expect(status).toBe(201)
  })

  it('while the market of a token is closed, a stale price is rejected, with the time at which the market opens', async () => {
    await chain.increaseTime(90_000)
    for (const [id, input] of quotes().slice(0, 3)) {
      const { body: quote } = await call(id, { agentId: trader.agentId, ...input }, enforcing)
      const { pass, remedy } = freshPriceOf(quote)
      expect({ id, pass, remedy }).toEqual({
        id,
        pass: false,
        remedy: expect.stringContaining(`Wait until ${quote.market.nextOpen}`),
      })
    }
    const { body: quote } = await call('getAddIntentQuote', { agentId: trader.agentId, positionId }, enforcing)
    const refused = await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '10' }, enforcing)
    expect(refused).toMatchObject({ status: 400, body: { code: 'STALE_PRICE', retryable: true } })
    expect(refused.body.remedy).toBe(freshPriceOf(quote).remedy)
  })
})

describe('the operator', () => {
  const SECRET = 'the-operators-own'
  const deployments = ['enforced', 'off'].map(MARKET_SESSIONS => appWith({ MARKET_SESSIONS, OPERATOR_SECRET: SECRET }))
  /** Returns what the alert rules read: the samples of readiness and prices by name. */
  async function gauges(fetch: Fetch) {
    const response = await request('/metrics', { headers: { authorization: `Bearer ${SECRET}` } }, fetch)
    const families = parseOpenMetrics(new TextDecoder().decode(await response.arrayBuffer()))
    return Object.fromEntries(
      ['ats_ready', 'ats_stale_prices', 'ats_price_seconds_left'].map(name => [
        name,
        families.get(name)?.samples[0]?.value,
      ]),
    )
  }

  it('the operator sees a deployment that is ready on a weekend, whatever MARKET_SESSIONS says', async () => {
    for (const fetch of deployments) {
      const { status, body } = await call('getReadiness', {}, fetch)
      const { nextOpen } = marketHours('us-equity-24-5', Number(body.rpc.blockTimestamp))
      expect({ status, oracle: body.oracle }).toEqual({
        status: 200,
        oracle: { stale: [], unsettled: [], market: 'closed', nextOpen: `${nextOpen}`, secondsLeft: null },
      })
      expect(body.problems.join()).not.toContain('price')
      expect(await gauges(fetch)).toEqual({ ats_ready: 1, ats_stale_prices: 0, ats_price_seconds_left: undefined })
    }
  })

  it('the operator sees a deployment that is ready at night if its provider has prices of the exchange alone', async () => {
    const fetch = appWith({ PRICE_PROVIDER: 'finnhub', OPERATOR_SECRET: SECRET })
    const now = Number((await call('getPrices')).body.asOf.blockTimestamp)
    const { nextOpen = 0 } = marketHours('us-equity-24-5', now)
    await chain.increaseTime(nextOpen + HOUR - now)
    const { status, body } = await call('getReadiness', {}, fetch)
    const bell = Number(body.oracle.nextOpen)
    expect({ status, oracle: body.oracle }).toMatchObject({
      status: 200,
      oracle: { stale: [], unsettled: [], market: 'closed' },
    })
    expect([sessionAt(bell - 1), sessionAt(bell)]).toEqual(['pre', 'regular'])
    expect(await gauges(fetch)).toMatchObject({ ats_ready: 1, ats_stale_prices: 0 })
  })

  it('the operator sees that prices are still old before the opening bell of the next day', async () => {
    await chain.increaseTime(8 * HOUR)
    for (const fetch of deployments) {
      const { status, body } = await call('getReadiness', {}, fetch)
      const { problem, oracle } = body.details
      expect({ status, problem, oracle }).toEqual({
        status: 503,
        problem: expect.stringContaining('no token has a fresh price'),
        oracle: {
          stale: expect.arrayContaining(['NVDA', 'AAPL']),
          unsettled: [],
          market: 'open',
          nextOpen: null,
          secondsLeft: null,
        },
      })
      expect(await gauges(fetch)).toMatchObject({ ats_ready: 0, ats_stale_prices: oracle.stale.length })
    }
    await chain.refreshPrices()
    const { body: fresh } = await call('getReadiness', {}, appWith({ MARKET_SESSIONS: 'enforced' }))
    expect(fresh.oracle).toMatchObject({ stale: [], market: 'open', secondsLeft: expect.any(Number) })
  })
})

describe('without MARKET_SESSIONS=enforced,', () => {
  it('without MARKET_SESSIONS=enforced, a quote names the session and has no warnings', async () => {
    await chain.refreshPrices()
    const { body } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'TSLA', usdcAmount: '10' })
    const { session } = marketHours('us-equity-24-5', Number(body.asOf.blockTimestamp))
    expect(body.market.session).toBe(session)
    expect(body).not.toHaveProperty('warnings')
  })
})

describe('the calendar of a token', () => {
  it('the calendar of a token is that of its description, and without one the week of US equities', async () => {
    const { AAPL } = deployment.tokens
    const { TokenRegistry } = deployment.contracts
    const registry = { address: TokenRegistry as Address, abi: tokenRegistryAbi }
    const described = await createPublicClient({ transport: http(deployment.rpcUrl) }).readContract({
      ...registry,
      functionName: 'descriptionOf',
      args: [AAPL as Address],
    })
    const describeAs = (session: number) =>
      chain.administer({
        ...registry,
        functionName: 'describeToken',
        args: [AAPL as Address, { ...described, session }],
      })
    const sessions = async () => {
      // The list of tokens always reads their calendars; prices may take those of 15 seconds ago.
      const { tokens } = (await call('listTokens')).body
      const { prices } = (await call('getPrices')).body
      const { body: quote } = await call('getTradeIntentQuote', {
        agentId: trader.agentId,
        symbol: 'AAPL',
        usdcAmount: '10',
      })
      const listed = tokens.find(({ symbol }: Body) => symbol === 'AAPL')
      expect([listed.market.session, quote.market.session]).toEqual(Array(2).fill(prices.AAPL.market.session))
      return [prices.AAPL.market.session, prices.TSLA.market.session]
    }
    await closeMarket()
    expect(await sessions()).toEqual(['closed', 'closed'])
    await describeAs(2)
    expect(await sessions()).toEqual(['continuous', 'closed'])
    const now = Number((await call('getPrices')).body.asOf.blockTimestamp)
    const { nextOpen = 0 } = marketHours('us-equity-24-5', now)
    await chain.increaseTime(nextOpen + HOUR - now)
    await describeAs(1)
    expect(await sessions()).toEqual(['closed', 'overnight'])
    await describeAs(described.session)
    expect(await sessions()).toEqual(['overnight', 'overnight'])
  })
})
