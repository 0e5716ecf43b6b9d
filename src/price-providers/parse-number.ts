/** Decimals of the oracle's prices. */
const DECIMALS = 8
/** No price needs more; a larger exponent would only cost memory. */
const MAX_EXPONENT = 40
const NUMBER = /^(\d{1,40})(?:\.(\d{1,80}))?(?:[eE]([+-]?\d{1,3}))?$/
/** Ten digits cover the years 2001 to 2286, and exclude milliseconds. */
const UNIX_SECONDS = /^\d{10}$/

/** Returns the digits of a JSON number as a price in 8 decimals, truncated; undefined if they are not such a number. */
export function toPrice(digits: unknown): bigint | undefined {
  const [, whole, fraction = '', exponent = '0'] = (typeof digits === 'string' && NUMBER.exec(digits)) || []
  if (whole === undefined || Math.abs(Number(exponent)) > MAX_EXPONENT) return undefined
  const shift = DECIMALS + Number(exponent) - fraction.length
  const value = BigInt(whole + fraction)
  return shift >= 0 ? value * 10n ** BigInt(shift) : value / 10n ** BigInt(-shift)
}

/** Returns the digits of a JSON number as Unix seconds; undefined if they are not. */
export const toSeconds = (digits: unknown): bigint | undefined =>
  typeof digits === 'string' && UNIX_SECONDS.test(digits) ? BigInt(digits) : undefined
