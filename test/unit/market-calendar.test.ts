import { marketHours, reasonOfStalePrice } from '@agent-trading-service/protocol/market-hours'
import type { ListingSession } from '@agent-trading-service/protocol/token-description'
import { describe, expect, it } from 'vitest'
import nyse from './nyse-sessions.json' with { type: 'json' }

const at = (time: string) => Date.parse(time) / 1000
const hours = (time: string, calendar: ListingSession = 'us-equity-24-5') => {
  const { session, nextOpen } = marketHours(calendar, at(time))
  return [session, nextOpen && new Date(nextOpen * 1000).toISOString()]
}

describe('the equity market', () => {
  it.each([
    ['a Wednesday at noon', '2026-11-18T12:00:00-05:00', 'regular'],
    ['the opening bell', '2026-11-18T09:30:00-05:00', 'regular'],
    ['a second before it', '2026-11-18T09:29:59-05:00', 'pre'],
    ['04:00', '2026-11-18T04:00:00-05:00', 'pre'],
    ['a second before 04:00', '2026-11-18T03:59:59-05:00', 'overnight'],
    ['the closing bell', '2026-11-18T16:00:00-05:00', 'post'],
    ['a second before 20:00', '2026-11-18T19:59:59-05:00', 'post'],
    ['a weekday night', '2026-11-18T23:30:00-05:00', 'overnight'],
    ['Friday a second before 20:00', '2026-11-20T19:59:59-05:00', 'post'],
    ['Friday 20:00', '2026-11-20T20:00:00-05:00', 'closed'],
    ['Sunday a second before 20:00', '2026-11-22T19:59:59-05:00', 'closed'],
    ['Sunday 20:00', '2026-11-22T20:00:00-05:00', 'overnight'],
    ['the opening bell in summer', '2026-07-15T13:30:00Z', 'regular'],
    ['a second before it in summer', '2026-07-15T13:29:59Z', 'pre'],
    ['the opening bell on the Monday after the clocks went forward', '2027-03-15T13:30:00Z', 'regular'],
    ['the opening bell on the Monday after the clocks went back', '2026-11-02T14:30:00Z', 'regular'],
    ['Thanksgiving', '2026-11-26T12:00:00-05:00', 'closed'],
    ['its eve after 20:00', '2026-11-25T20:00:00-05:00', 'closed'],
    ['its evening, which belongs to Friday', '2026-11-26T20:00:00-05:00', 'overnight'],
    ['the short Friday after it before 13:00', '2026-11-27T12:59:59-05:00', 'regular'],
    ['the short Friday after it at 13:00', '2026-11-27T13:00:00-05:00', 'post'],
    ['the short Friday after it at 17:00', '2026-11-27T17:00:00-05:00', 'closed'],
    ['Independence Day, observed on Friday', '2026-07-03T12:00:00-04:00', 'closed'],
    ['Christmas 2027, observed on Friday', '2027-12-24T12:00:00-05:00', 'closed'],
    ['Martin Luther King Day in 2028', '2028-01-17T12:00:00-05:00', 'closed'],
    ['New Year 2028, which is a Saturday and not observed', '2027-12-31T12:00:00-05:00', 'regular'],
    ['the day of mourning for Jimmy Carter', '2025-01-09T12:00:00-05:00', 'closed'],
    ['Good Friday in 2040, beyond the range that was compared', '2040-03-30T12:00:00-04:00', 'closed'],
  ])('the equity market on %s (%s) is %s', (_, time, session) => {
    expect(hours(time)[0]).toBe(session)
    expect(hours(time, 'us-equity-regular')[0]).toBe(session === 'regular' ? 'regular' : 'closed')
  })

  it.each([
    ['Friday night', '2026-11-20T21:00:00-05:00', '2026-11-23T01:00:00.000Z'],
    ['Sunday afternoon', '2026-11-22T15:00:00-05:00', '2026-11-23T01:00:00.000Z'],
    ['the eve of Thanksgiving', '2026-11-25T21:00:00-05:00', '2026-11-27T01:00:00.000Z'],
    ['the short Friday', '2026-11-27T18:00:00-05:00', '2026-11-30T01:00:00.000Z'],
    ['a long weekend with Monday off', '2026-09-04T20:00:00-04:00', '2026-09-08T00:00:00.000Z'],
    ['the weekend in which the clocks go forward', '2027-03-13T12:00:00-05:00', '2027-03-15T00:00:00.000Z'],
    ['the weekend in which the clocks go back', '2026-10-31T12:00:00-04:00', '2026-11-02T01:00:00.000Z'],
  ])('the equity market on %s (%s) opens next at %s', (_, time, next) => {
    expect(hours(time)).toEqual(['closed', next])
  })

  it('the exchange alone opens next at its bell, also in the middle of the 24/5 week', () => {
    expect(hours('2026-11-18T18:00:00-05:00', 'us-equity-regular')).toEqual(['closed', '2026-11-19T14:30:00.000Z'])
    expect(hours('2026-11-25T18:00:00-05:00', 'us-equity-regular')).toEqual(['closed', '2026-11-27T14:30:00.000Z'])
  })

  it('the equity market does not apply to a token that trades continuously', () => {
    expect(hours('2026-11-22T12:00:00-05:00', 'continuous')).toEqual(['continuous', undefined])
  })

  it('the opening bell follows the clocks of New York from 2007 to 2060', () => {
    const clock = new Intl.DateTimeFormat('en-GB', { timeZone: 'America/New_York', timeStyle: 'short' })
    for (let day = at('2007-01-01T00:00:00Z'); day < at('2061-01-01T00:00:00Z'); day += 86_400)
      for (const time of [day + 13.5 * 3_600, day + 14.5 * 3_600]) {
        const { session } = marketHours('us-equity-24-5', time)
        const before = marketHours('us-equity-24-5', time - 1).session
        if (session === 'closed') continue // a holiday
        const wall = clock.format(time * 1000)
        const expected = { '08:30': ['pre', 'pre'], '09:30': ['pre', 'regular'], '10:30': ['regular', 'regular'] }[wall]
        expect([time, before, session]).toEqual([time, ...(expected ?? [])])
      }
  })

  it('the equity market has the sessions, holidays and early closes of exchange-calendars from 2020 to 2035', () => {
    const closed = new Set(nyse.closedWeekdays)
    const early = new Set(nyse.earlyCloses)
    const offsetOf = (date: string) => {
      const noon = new Date(`${date}T12:00:00Z`)
      const hour = noon.toLocaleString('en-US', { timeZone: 'America/New_York', hour: '2-digit', hourCycle: 'h23' })
      return 12 - Number(hour)
    }
    const wrong: string[] = []
    let days = 0
    for (let time = at(`${nyse.from}T00:00:00Z`); time <= at(`${nyse.to}T00:00:00Z`); time += 86_400) {
      const date = new Date(time * 1000).toISOString().slice(0, 10)
      const weekday = new Date(time * 1000).getUTCDay()
      const isSession = weekday !== 0 && weekday !== 6 && !closed.has(date)
      const midnight = time + offsetOf(date) * 3_600
      const [open, close] = [midnight + 9.5 * 3_600, midnight + (early.has(date) ? 13 : 16) * 3_600]
      const seen = [open - 1, open, close - 1, close, close + 4 * 3_600 - 1].map(
        second => marketHours('us-equity-24-5', second).session,
      )
      const expected = isSession
        ? ['pre', 'regular', 'regular', 'post', 'post']
        : ['closed', 'closed', 'closed', 'closed', 'closed']
      if (seen.join() !== expected.join()) wrong.push(`${date}: ${seen}`)
      days++
    }
    expect({ days, wrong }).toEqual({ days: 5_844, wrong: [] })
  })
})

describe('a stale price', () => {
  it.each<[string, string, ListingSession, string]>([
    ['of a closed market', '2026-11-21T12:00:00-05:00', 'us-equity-24-5', 'marketClosed'],
    ['of an open market', '2026-11-18T12:00:00-05:00', 'us-equity-24-5', 'marketHalted'],
    ['of a market that opened five minutes ago', '2026-11-22T20:05:00-05:00', 'us-equity-24-5', 'marketHalted'],
    ['of a market that has just opened', '2026-11-22T20:04:59-05:00', 'us-equity-24-5', 'priceStale'],
    ['of the exchange alone at night', '2026-11-18T22:00:00-05:00', 'us-equity-regular', 'marketClosed'],
    ['of a token that trades continuously', '2026-11-18T12:00:00-05:00', 'continuous', 'priceStale'],
  ])('a stale price %s has its reason', (_, time, calendar, reason) => {
    expect(reasonOfStalePrice(calendar, at(time))).toBe(reason)
  })
})
