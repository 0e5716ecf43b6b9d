const MINUS = '−'
const USDC_DECIMALS = 6

/** Groups the digits of an integer in threes. */
const grouped = (digits: string) => digits.replace(/\B(?=(\d{3})+$)/g, ',')

/** Rounds base units half up to `fraction` decimals and formats them, such as `1,234.50`. */
export function formatUnits(base: string, decimals: number, fraction: number): string {
  const value = BigInt(base)
  const size = value < 0n ? -value : value
  const drop = decimals - fraction
  const rounded = drop > 0 ? (size + 10n ** BigInt(drop) / 2n) / 10n ** BigInt(drop) : size * 10n ** BigInt(-drop)
  const digits = `${rounded}`.padStart(fraction + 1, '0')
  const whole = grouped(digits.slice(0, digits.length - fraction))
  const text = fraction === 0 ? whole : `${whole}.${digits.slice(digits.length - fraction)}`
  return value < 0n && rounded !== 0n ? MINUS + text : text
}

export const formatUsdc = (base: string, fraction = 2): string => formatUnits(base, USDC_DECIMALS, fraction)

/** Formats every digit of an amount of USDC, at least two decimals: for texts that someone approves. */
export const formatUsdcExactly = (base: string): string =>
  formatUnits(base, USDC_DECIMALS, USDC_DECIMALS).replace(/0{1,4}$/, '')

/** Formats every digit of an amount, for a tooltip: no rounding, no trailing zeros. */
export function formatExactly(base: string, decimals: number): string {
  const text = formatUnits(base, decimals, decimals)
  return decimals === 0 ? text : text.replace(/\.?0+$/, '')
}

/** Adds a plus sign to a positive number's text. */
export const withSign = (text: string, isPositive: boolean): string => (isPositive ? `+${text}` : text)

/**
 * Formats basis points as a percentage, such as `−4.25 %`, with a space that does not break. What does not fit is cut,
 * as the service cuts basis points: one figure reads the same everywhere, and 99.999 % is not 100 %.
 */
export const formatBps = (bps: number, fraction = 2): string =>
  `${formatUnits(`${Math.trunc(bps / 10 ** (2 - fraction))}`, fraction, fraction)}\u00a0%`

/** Formats a decimal number of US dollars: two decimals, below one six, and all eight of a cheap token's price. */
export function formatUsd(decimal: string): string {
  const value = Number(decimal)
  const size = Math.abs(value)
  const fraction = value === 0 || size >= 1 ? 2 : size >= 0.001 ? 6 : 8
  const [whole = '0', rest] = size.toFixed(fraction).split('.')
  return `${value < 0 ? MINUS : ''}${grouped(whole)}.${rest}`
}

/**
 * Parses a human amount such as `1,250.5` to base units; undefined if it is not one. A comma only groups three digits.
 */
export function parseAmount(text: string, decimals = USDC_DECIMALS): bigint | undefined {
  const [, whole, fraction = ''] = /^(\d{1,30}|\d{1,3}(?:,\d{3}){1,9})(?:\.(\d*))?$/.exec(text.trim()) ?? []
  if (whole === undefined || fraction.length > decimals) return undefined
  return BigInt(whole.replaceAll(',', '') + fraction.padEnd(decimals, '0'))
}
