/** Shares of companies, by symbol: their prices come from an exchange that closes. Every other token trades always. */
const equities = new Set([
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

// NYSE, nyse.com/markets/hours-calendars: full closures, and days whose regular session ends at 13:00.
const holidays = new Set([
  ...['2026-01-01', '2026-01-19', '2026-02-16', '2026-04-03', '2026-05-25', '2026-06-19', '2026-07-03'],
  ...['2026-09-07', '2026-11-26', '2026-12-25'],
  ...['2027-01-01', '2027-01-18', '2027-02-15', '2027-03-26', '2027-05-31', '2027-06-18', '2027-07-05'],
  ...['2027-09-06', '2027-11-25', '2027-12-24'],
])
const shortDays = new Set(['2026-11-27', '2026-12-24', '2027-11-26'])

export type Session = 'regular' | 'extended' | 'closed' | 'continuous'

/** Whether a token's market is open; `nextOpen` (Unix seconds) is set while it is closed. */
export type MarketHours = { session: Session; nextOpen: number | undefined }

const HOUR = 3600
const DAY = 86_400
/** A trading day begins at 20:00 New York time of the day before and ends at 20:00. */
const TURN_OF_DAY = 20 * HOUR
const REGULAR_OPEN = 9.5 * HOUR
const REGULAR_CLOSE = 16 * HOUR
const SHORT_CLOSE = 13 * HOUR
const SHORT_EXTENDED_CLOSE = 17 * HOUR
/** Holidays in a row with a weekend are never longer. */
const LONGEST_CLOSURE_DAYS = 10

/**
 * The market hours of a token by its symbol at a time in Unix seconds. Equities follow the 24/5 model: from Sunday 20:00
 * to Friday 20:00 New York time without the exchange's holidays, of which 2026 and 2027 are known; `regular` is the
 * exchange's own session.
 */
export function marketHours(symbol: string, at: number): MarketHours {
  if (!equities.has(symbol)) return { session: 'continuous', nextOpen: undefined }
  const local = at + newYorkOffset(at)
  const session = sessionAt(local)
  return { session, nextOpen: session === 'closed' ? nextOpen(local) : undefined }
}

/** The session at a New York wall time, which is counted in seconds as if it were UTC. */
function sessionAt(local: number): Session {
  const tradingDay = dateOf(local + DAY - TURN_OF_DAY)
  if (!isTradingDay(tradingDay)) return 'closed'
  const isEve = dateOf(local) !== tradingDay
  if (isEve) return 'extended'
  const time = local % DAY
  const isShort = shortDays.has(tradingDay)
  if (isShort && time >= SHORT_EXTENDED_CLOSE) return 'closed'
  return time >= REGULAR_OPEN && time < (isShort ? SHORT_CLOSE : REGULAR_CLOSE) ? 'regular' : 'extended'
}

/** The next turn of the day into a trading day. It is in the evening, hours away from any change of the clocks. */
function nextOpen(local: number): number | undefined {
  const today = local - (local % DAY) + TURN_OF_DAY
  for (let turn = today >= local ? today : today + DAY; turn < local + LONGEST_CLOSURE_DAYS * DAY; turn += DAY)
    if (isTradingDay(dateOf(turn + DAY - TURN_OF_DAY))) return turn - newYorkOffset(turn - newYorkOffset(turn))
  return undefined
}

const dateOf = (local: number) => new Date(local * 1000).toISOString().slice(0, 10)

function isTradingDay(date: string): boolean {
  const weekday = new Date(date).getUTCDay()
  return weekday !== 0 && weekday !== 6 && !holidays.has(date)
}

const newYork = new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', timeZoneName: 'longOffset' })

/** Seconds that New York's clocks are ahead of UTC: -18000, or -14400 in summer. */
function newYorkOffset(at: number): number {
  const name = newYork.formatToParts(at * 1000).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign, hours = '0', minutes = '0'] = /GMT([+-])(\d+):(\d+)/.exec(name) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * HOUR + Number(minutes) * 60)
}
