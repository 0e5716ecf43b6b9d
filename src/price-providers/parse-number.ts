/** The oracle's prices have 8 decimals. */
const DECIMALS = 8
/** More digits than any price has; a longer exponent would only cost memory. */
const LONGEST_EXPONENT = 40
const NUMBER = /^(\d{1,40})(?:\.(\d{1,80}))?(?:[eE]([+-]?\d{1,3}))?$/
/** 2001 to 2286: seconds with ten digits, so that milliseconds are never taken for seconds. */
const SECONDS = /^\d{10}$/

/** A JSON number's digits as a price with 8 decimals; digits beyond them are cut off. Undefined when it is none. */
export function toPrice(digits: unknown): bigint | undefined {
  const [, whole, fraction = '', exponent = '0'] = (typeof digits === 'string' && NUMBER.exec(digits)) || []
  if (whole === undefined || Math.abs(Number(exponent)) > LONGEST_EXPONENT) return undefined
  const shift = DECIMALS + Number(exponent) - fraction.length
  const value = BigInt(whole + fraction)
  return shift >= 0 ? value * 10n ** BigInt(shift) : value / 10n ** BigInt(-shift)
}

/** A JSON number's digits as Unix seconds; undefined when it is none. */
export const toSeconds = (digits: unknown): bigint | undefined =>
  typeof digits === 'string' && SECONDS.test(digits) ? BigInt(digits) : undefined
