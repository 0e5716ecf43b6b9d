import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chain, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, call } from '../support/surfaces.ts'

const HOUR = 3_600
const enforcing = appWith({ MARKET_SESSIONS: 'enforced' })
const sessionAt = (time: number) => marketHours('NVDA', time).session

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

describe('without MARKET_SESSIONS=enforced,', () => {
  it('without MARKET_SESSIONS=enforced, a quote names the session and has no warnings', async () => {
    await chain.refreshPrices()
    const { body } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'TSLA', usdcAmount: '10' })
    const { session } = marketHours('TSLA', Number(body.asOf.blockTimestamp))
    expect(body.market.session).toBe(session)
    expect(body).not.toHaveProperty('warnings')
  })
})
