import { asTokenPrice } from '@agent-trading-service/protocol/price-basis'
import type { ListingSession } from '@agent-trading-service/protocol/token-description'
import { describe, expect, it } from 'vitest'
import { judgePrices } from '../../src/doctor/judge-prices.ts'
import { calendarOfProvider } from '../../src/price-providers/price-provider.ts'

const MAX_AGE = 900n
const at = (time: string) => BigInt(Date.parse(time) / 1000)

/** Judges tokens at a time, given the age of each price in seconds; undefined was never quoted. */
function judge(
  time: string,
  ages: Record<string, number | undefined>,
  calendarOf?: (calendar: ListingSession) => ListingSession,
) {
  const now = at(time)
  const registered = {
    tokens: Object.keys(ages).map(symbol => ({
      address: `0x${symbol}` as const,
      symbol,
      session: symbol === 'WETH' ? ('continuous' as const) : ('us-equity-24-5' as const),
    })),
    maxAgeIn: () => MAX_AGE,
    quoteIn(token: string) {
      const age = ages[token.slice(2)]
      const updatedAt = age === undefined ? 0n : now - BigInt(age)
      const stale = age === undefined || BigInt(age) > MAX_AGE
      const quote = { price: asTokenPrice(10n ** 8n), updatedAt, roundId: 1n, unsettled: false, stale, at: now }
      return { ...quote, quoted: age !== undefined, source: 'updater' as const }
    },
  } satisfies Parameters<typeof judgePrices>[0]
  return judgePrices(registered, calendarOf)
}
const finnhub = { kind: 'finnhub', url: '', key: undefined, ids: {}, multipliers: {} } as const
const ofFinnhub = (calendar: ListingSession) => calendarOfProvider(finnhub, calendar)
const HOURS = 3_600
const SUNDAY_EVENING = Number(at('2026-11-22T20:00:00-05:00'))
const NEW_YEAR = Number(at('2027-01-03T20:00:00-05:00'))

describe('prices', () => {
  it.each([
    ['Friday 20:05 in New York', '2026-11-20T20:05:00-05:00', 20 * 60, SUNDAY_EVENING],
    ['Saturday', '2026-11-21T12:00:00-05:00', 16 * HOURS, SUNDAY_EVENING],
    ['Sunday before the opening', '2026-11-22T19:59:59-05:00', 48 * HOURS, SUNDAY_EVENING],
    ['a holiday', '2027-01-01T12:00:00-05:00', 17 * HOURS, NEW_YEAR],
  ])('old prices of closed markets are no fault on %s', (_, time, age, nextOpen) => {
    expect(judge(time, { NVDA: age, AAPL: age })).toMatchObject({
      overdue: [],
      hasNone: false,
      market: 'closed',
      nextOpen,
      secondsLeft: null,
    })
  })

  it.each([
    ['Friday 19:55 in New York', '2026-11-20T19:55:00-05:00'],
    ['Monday before the opening bell', '2026-11-23T05:00:00-05:00'],
    ['Wednesday at noon', '2026-11-18T12:00:00-05:00'],
    ['the evening after a holiday', '2026-11-26T20:05:00-05:00'],
  ])('old prices are overdue on %s', (_, time) => {
    expect(judge(time, { NVDA: 20 * 60, AAPL: undefined })).toMatchObject({
      overdue: ['NVDA', 'AAPL'],
      hasNone: true,
      market: 'open',
      nextOpen: undefined,
    })
    expect(judge(time, { NVDA: 20 * 60, AAPL: 60 })).toMatchObject({
      overdue: ['NVDA'],
      hasNone: false,
      secondsLeft: 840,
    })
  })

  it.each([
    ['at night', '2026-11-18T21:00:00-05:00', '2026-11-19T09:30:00-05:00'],
    ['before the bell', '2026-11-18T09:29:00-05:00', '2026-11-18T09:30:00-05:00'],
    ['on Friday evening', '2026-11-20T16:20:00-05:00', '2026-11-23T09:30:00-05:00'],
    ['after a short day', '2026-11-27T14:00:00-05:00', '2026-11-30T09:30:00-05:00'],
  ])('old prices of a provider that follows the exchange alone are no fault %s', (_, time, bell) => {
    expect(judge(time, { NVDA: 20 * 60 }, ofFinnhub)).toMatchObject({
      overdue: [],
      hasNone: false,
      market: 'closed',
      nextOpen: Number(at(bell)),
    })
    expect(judge('2026-11-18T12:00:00-05:00', { NVDA: 20 * 60 }, ofFinnhub).overdue).toEqual(['NVDA'])
  })

  it('the first prices after an opening have five minutes to arrive', () => {
    const weekend = { NVDA: 48 * HOURS }
    expect(judge('2026-11-22T20:04:59-05:00', weekend)).toMatchObject({ overdue: [], hasNone: false, market: 'open' })
    expect(judge('2026-11-22T20:05:00-05:00', weekend)).toMatchObject({ overdue: ['NVDA'], hasNone: true })
  })

  it('an old price of a token that trades around the clock is overdue on Saturday too', () => {
    const saturday = '2026-11-21T12:00:00-05:00'
    const closed = { market: 'open', nextOpen: SUNDAY_EVENING }
    expect(judge(saturday, { NVDA: 16 * HOURS, WETH: 60 })).toMatchObject({
      ...closed,
      overdue: [],
      hasNone: false,
      secondsLeft: 840,
    })
    expect(judge(saturday, { NVDA: 16 * HOURS, WETH: HOURS })).toMatchObject({
      ...closed,
      overdue: ['WETH'],
      hasNone: true,
      secondsLeft: null,
    })
    expect(judge(saturday, { NVDA: 60, WETH: HOURS })).toMatchObject({ ...closed, overdue: ['WETH'], hasNone: false })
  })

  it('a deployment without tokens has no price', () => {
    expect(judge('2026-11-21T12:00:00-05:00', {})).toMatchObject({ overdue: [], hasNone: true, market: 'open' })
  })
})
