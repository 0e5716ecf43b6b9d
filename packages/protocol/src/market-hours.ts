import type { ListingSession } from './token-description.ts'

export const SESSIONS = ['pre', 'regular', 'post', 'overnight', 'closed', 'continuous'] as const
export type Session = (typeof SESSIONS)[number]

/** The session of a token's market. `nextOpen` (Unix seconds) is set while it is closed. */
export type MarketHours = { session: Session; nextOpen: number | undefined }

const HOUR = 3600
const DAY = 24 * HOUR
/** A trading day begins at 20:00 New York time of the day before and ends at 20:00. */
const DAY_START = 20 * HOUR
const PRE_OPEN = 4 * HOUR
const REGULAR_OPEN = 9.5 * HOUR
const REGULAR_CLOSE = 16 * HOUR
const EARLY_CLOSE = 13 * HOUR
/** After an early close, the post session is as long as on other days. */
const POST_HOURS = DAY_START - REGULAR_CLOSE

/** Weekdays on which NYSE stayed closed although no rule says so: the National Day of Mourning for James Carter. */
const UNSCHEDULED_CLOSURES = new Set(['2025-01-09'])

/**
 * Returns the session of a market at a time in Unix seconds. US equities trade from Sunday 20:00 to Friday 20:00 New
 * York time, except on the holidays of NYSE: overnight until 04:00, pre until 09:30, regular until 16:00, post until
 * 20:00. An early close ends the regular session at 13:00 and the day at 17:00. `us-equity-regular` has only the
 * regular session. The rules are NYSE's (nyse.com/markets/hours-calendars) and have no last year; for 2020 to 2035 they
 * equal exchange-calendars (`npm run calendar`).
 */
export function marketHours(calendar: ListingSession, at: number): MarketHours {
  if (calendar === 'continuous') return { session: 'continuous', nextOpen: undefined }
  const local = at + newYorkOffset(at)
  const session = sessionAt(local)
  if (calendar === 'us-equity-regular')
    return session === 'regular'
      ? { session, nextOpen: undefined }
      : { session: 'closed', nextOpen: nextOpen(local, REGULAR_OPEN) }
  return { session, nextOpen: session === 'closed' ? nextOpen(local, DAY_START - DAY) : undefined }
}

/** Whether a market trades at a time in Unix seconds. */
export const isMarketOpen = (calendar: ListingSession, at: number): boolean =>
  marketHours(calendar, at).session !== 'closed'

/** How long the first price of a market may take after its opening, in seconds. */
const FIRST_PRICE_SECONDS = 300

/** Whether a market trades, and has for long enough that its price must be new. */
export const hasTradedLongEnough = (calendar: ListingSession, at: number): boolean =>
  isMarketOpen(calendar, at) && isMarketOpen(calendar, at - FIRST_PRICE_SECONDS)

/**
 * Returns why a price is too old at a time (Unix seconds). The market is closed; or the exchange is open although the
 * price stands still, which is how feeds show that trading in a share is halted; or neither.
 */
export function reasonOfStalePrice(
  calendar: ListingSession,
  at: number,
): 'marketClosed' | 'marketHalted' | 'priceStale' {
  if (!isMarketOpen(calendar, at)) return 'marketClosed'
  return calendar !== 'continuous' && hasTradedLongEnough(calendar, at) ? 'marketHalted' : 'priceStale'
}

/** Returns the session at a New York wall time, counted in seconds as if it were UTC. */
function sessionAt(local: number): Session {
  const midnight = midnightOf(local)
  const time = local - midnight
  const isEve = time >= DAY_START
  const close = regularClose(isEve ? midnight + DAY : midnight)
  if (close === undefined) return 'closed'
  if (isEve || time < PRE_OPEN) return 'overnight'
  if (time < REGULAR_OPEN) return 'pre'
  if (time < close) return 'regular'
  return time < close + POST_HOURS ? 'post' : 'closed'
}

/**
 * Returns the next time that is so long after the midnight of a trading day, hours away from any daylight-saving
 * change.
 */
function nextOpen(local: number, afterMidnight: number): number {
  let midnight = midnightOf(local)
  while (midnight + afterMidnight < local || regularClose(midnight) === undefined) midnight += DAY
  const start = midnight + afterMidnight
  return start - newYorkOffset(start - newYorkOffset(start))
}

const midnightOf = (local: number) => local - (local % DAY)

const [MONDAY, THURSDAY, FRIDAY] = [1, 4, 5]

/**
 * Returns when the regular session of a day ends, in seconds after its midnight (a New York wall time); undefined if
 * the exchange is closed.
 */
function regularClose(midnight: number): number | undefined {
  const date = new Date(midnight * 1000)
  const weekday = date.getUTCDay()
  if (weekday < MONDAY || weekday > FRIDAY || isHoliday(date)) return undefined
  const month = date.getUTCMonth() + 1
  const day = date.getUTCDate()
  const isEarly =
    (month === 7 && day === 3) ||
    (month === 11 && weekday === FRIDAY && day >= 23 && day <= 29) ||
    (month === 12 && day === 24)
  return isEarly ? EARLY_CLOSE : REGULAR_CLOSE
}

/** Whether NYSE is closed on a weekday. */
function isHoliday(date: Date): boolean {
  const weekday = date.getUTCDay()
  const day = date.getUTCDate()
  /** The day itself, the Friday before a Saturday, or the Monday after a Sunday. */
  const isObserved = (holiday: number) =>
    day === holiday || (weekday === FRIDAY && day === holiday - 1) || (weekday === MONDAY && day === holiday + 1)
  const isWeekdayFrom = (first: number, expected: number) => weekday === expected && day >= first && day < first + 7
  const isListed = () => {
    switch (date.getUTCMonth() + 1) {
      // New Year's Day on a Saturday is not observed: the Friday before belongs to another year.
      case 1:
        return isObserved(1) || isWeekdayFrom(15, MONDAY)
      case 2:
        return isWeekdayFrom(15, MONDAY)
      case 5:
        return isWeekdayFrom(25, MONDAY)
      case 6:
        return date.getUTCFullYear() >= 2022 && isObserved(19)
      case 7:
        return isObserved(4)
      case 9:
        return isWeekdayFrom(1, MONDAY)
      case 11:
        return isWeekdayFrom(22, THURSDAY)
      case 12:
        return isObserved(25)
      default:
        return false
    }
  }
  return isListed() || isGoodFriday(date) || UNSCHEDULED_CLOSURES.has(date.toISOString().slice(0, 10))
}

/** Whether Easter, by the Gregorian computus, is two days later. */
function isGoodFriday(date: Date): boolean {
  if (date.getUTCDay() !== FRIDAY) return false
  const year = date.getUTCFullYear()
  const century = Math.floor(year / 100)
  const golden = year % 19
  const epact = (century - Math.floor(century / 4) - Math.floor((8 * century + 13) / 25) + 19 * golden + 15) % 30
  const correction = epact === 29 || (epact === 28 && golden > 10) ? 1 : 0
  const fullMoon = Date.UTC(year, 2, 21 + epact - correction)
  const daysAfterSunday = new Date(fullMoon).getUTCDay()
  const easter = fullMoon + (7 - daysAfterSunday) * DAY * 1000
  return date.getTime() === easter - 2 * DAY * 1000
}

/**
 * Returns the offset of New York's clocks from UTC in seconds. Daylight-saving time lasts from the second Sunday of
 * March to the first of November, and changes at 02:00 of the clocks until then (15 U.S.C. 260a).
 */
function newYorkOffset(at: number): number {
  const year = new Date(at * 1000).getUTCFullYear()
  const isSummer = at >= sundayFrom(year, 2, 8) + 7 * HOUR && at < sundayFrom(year, 10, 1) + 6 * HOUR
  return (isSummer ? -4 : -5) * HOUR
}

/** Returns the start of the first Sunday of a month from a day on, as UTC. */
function sundayFrom(year: number, month: number, day: number): number {
  const first = new Date(Date.UTC(year, month, day))
  return first.getTime() / 1000 + ((7 - first.getUTCDay()) % 7) * DAY
}
