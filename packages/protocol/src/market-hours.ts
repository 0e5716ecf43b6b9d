/**
 * Shares of companies and funds by symbol: their prices come from an exchange that closes. Other tokens trade always.
 */
const EQUITIES = new Set([
  'AAPL',
  'AMD',
  'AMZN',
  'AVGO',
  'COIN',
  'COST',
  'CRCL',
  'GOOGL',
  'HOOD',
  'INTC',
  'META',
  'MSFT',
  'MSTR',
  'MU',
  'NFLX',
  'NVDA',
  'ORCL',
  'PLTR',
  'QQQ',
  'SPY',
  'TSLA',
])

/** Full-day closures of NYSE (nyse.com/markets/hours-calendars). */
const HOLIDAYS = new Set([
  '2026-01-01',
  '2026-01-19',
  '2026-02-16',
  '2026-04-03',
  '2026-05-25',
  '2026-06-19',
  '2026-07-03',
  '2026-09-07',
  '2026-11-26',
  '2026-12-25',
  '2027-01-01',
  '2027-01-18',
  '2027-02-15',
  '2027-03-26',
  '2027-05-31',
  '2027-06-18',
  '2027-07-05',
  '2027-09-06',
  '2027-11-25',
  '2027-12-24',
])
/** Days whose regular session ends at 13:00. */
const SHORT_DAYS = new Set(['2026-11-27', '2026-12-24', '2027-11-26'])

export type Session = 'regular' | 'extended' | 'closed' | 'continuous'

/**
 * The session of a token's market. `nextOpen` (Unix seconds) is set while it is closed and the calendar reaches so far.
 */
export type MarketHours = { session: Session; nextOpen: number | undefined }

const HOUR = 3600
const DAY = 24 * HOUR
/** A trading day begins at 20:00 New York time of the day before and ends at 20:00. */
const DAY_START = 20 * HOUR
const REGULAR_OPEN = 9.5 * HOUR
const REGULAR_CLOSE = 16 * HOUR
const SHORT_CLOSE = 13 * HOUR
const SHORT_EXTENDED_CLOSE = 17 * HOUR
/** No weekend with its adjacent holidays is longer. */
const MAX_CLOSURE_DAYS = 10

/**
 * Returns the session of a token's market at a time in Unix seconds. Equities follow the 24/5 model: open from Sunday
 * 20:00 to Friday 20:00 New York time except on the exchange's holidays, of which 2026 and 2027 are known; `regular` is
 * the exchange's own session.
 */
export function marketHours(symbol: string, at: number): MarketHours {
  if (!EQUITIES.has(symbol)) return { session: 'continuous', nextOpen: undefined }
  const local = at + newYorkOffset(at)
  const session = sessionAt(local)
  return { session, nextOpen: session === 'closed' ? nextOpen(local, DAY_START - DAY) : undefined }
}

/**
 * Returns the hours in which the exchange itself has new prices: outside of its own session the market counts as
 * closed.
 */
export function exchangeHours(symbol: string, at: number): MarketHours {
  const hours = marketHours(symbol, at)
  if (hours.session === 'regular' || hours.session === 'continuous') return hours
  return { session: 'closed', nextOpen: nextOpen(at + newYorkOffset(at), REGULAR_OPEN) }
}

/** Returns the session at a New York wall time, counted in seconds as if it were UTC. */
function sessionAt(local: number): Session {
  const tradingDay = dateOf(local + DAY - DAY_START)
  if (!isTradingDay(tradingDay)) return 'closed'
  const isEve = dateOf(local) !== tradingDay
  if (isEve) return 'extended'
  const time = local % DAY
  const isShort = SHORT_DAYS.has(tradingDay)
  if (isShort && time >= SHORT_EXTENDED_CLOSE) return 'closed'
  return time >= REGULAR_OPEN && time < (isShort ? SHORT_CLOSE : REGULAR_CLOSE) ? 'regular' : 'extended'
}

/**
 * Returns the next time that is so long after the midnight of a trading day, hours away from any daylight-saving
 * change.
 */
function nextOpen(local: number, afterMidnight: number): number | undefined {
  const today = local - (local % DAY)
  for (let midnight = today; midnight < local + MAX_CLOSURE_DAYS * DAY; midnight += DAY) {
    const start = midnight + afterMidnight
    if (start >= local && isTradingDay(dateOf(midnight))) return start - newYorkOffset(start - newYorkOffset(start))
  }
  return undefined
}

const dateOf = (local: number) => new Date(local * 1000).toISOString().slice(0, 10)

function isTradingDay(date: string): boolean {
  const weekday = new Date(date).getUTCDay()
  return weekday !== 0 && weekday !== 6 && !HOLIDAYS.has(date)
}

const newYork = new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', timeZoneName: 'longOffset' })

/** Returns the offset of New York's clocks from UTC in seconds: -18000, or -14400 in summer. */
function newYorkOffset(at: number): number {
  const name = newYork.formatToParts(at * 1000).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign, hours = '0', minutes = '0'] = /GMT([+-])(\d+):(\d+)/.exec(name) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * HOUR + Number(minutes) * 60)
}
