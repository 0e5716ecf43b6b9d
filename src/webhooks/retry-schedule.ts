const SECOND_MS = 1_000
const HOUR_MS = 3_600 * SECOND_MS

/** How long an event is retried before its webhook is disabled. */
export const MAX_RETRY_MS = 48 * HOUR_MS
const FIRST_CEILING_MS = 5 * SECOND_MS
/** No wait is longer, so a receiver that is back gets its events within an hour. */
export const MAX_RETRY_DELAY_MS = HOUR_MS
const MIN_RETRY_DELAY_MS = SECOND_MS

/**
 * Returns how long to wait after a number of failures of one event: exponential backoff with full jitter, a random part
 * (`random`, from 0 to 1) of a ceiling that doubles from 5 seconds to an hour. The receiver's Retry-After is a lower bound,
 * up to the hour.
 */
export function retryDelayMs(failures: number, random: number, retryAfterMs = 0): number {
  const ceiling = Math.min(FIRST_CEILING_MS * 2 ** (failures - 1), MAX_RETRY_DELAY_MS)
  const delay = Math.max(Math.round(ceiling * random), MIN_RETRY_DELAY_MS)
  return Math.min(Math.max(delay, retryAfterMs), MAX_RETRY_DELAY_MS)
}

/** Parses Retry-After: seconds, or an HTTP date. Returns 0 if the header is absent or malformed. */
export function parseRetryAfter(header: string | null, now: number): number {
  if (header === null) return 0
  const ms = /^\d{1,9}$/.test(header.trim()) ? Number(header) * SECOND_MS : Date.parse(header) - now
  return Number.isFinite(ms) && ms > 0 ? ms : 0
}
