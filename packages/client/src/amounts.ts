import { formatUnits, parseUnits } from 'viem'
import { ValidationError } from './errors.ts'

/** USDC has 6 decimals on every deployment. */
const USDC_DECIMALS = 6
const DECIMAL = /^\d+(\.\d+)?$/
const DIGITS = /^\d+$/

/**
 * An amount of USDC: a decimal string in USDC (`'250.5'`), or a bigint in base units (`250_500_000n`). Never a number.
 */
export type UsdcAmount = string | bigint

/** A whole number: a bigint, or its digits. */
export type Integer = string | bigint

/**
 * Parses USDC such as `'250.5'` to base units. Throws a `ValidationError` for a number, zero, or more than 6 decimals.
 * @example
 * parseUsdc('250.5') // 250_500_000n
 */
export function parseUsdc(amount: string): bigint {
  return parseToken(amount, USDC_DECIMALS)
}

/**
 * Formats base units of USDC, a bigint or digits, as USDC: `250500000n` becomes `'250.5'`.
 * @example
 * formatUsdc(250_500_000n) // '250.5'
 */
export function formatUsdc(baseUnits: Integer): string {
  return formatToken(baseUnits, USDC_DECIMALS)
}

/**
 * Parses a decimal amount of a token to base units. Throws a `ValidationError` instead of rounding.
 * @example
 * parseToken('1.5', 18) // 1_500_000_000_000_000_000n
 */
export function parseToken(amount: string, decimals: number): bigint {
  const problem = problemOf(amount, decimals)
  if (problem) throw new ValidationError('INVALID_AMOUNT', `The amount ${String(amount)} is not valid: ${problem}.`)
  return parseUnits(amount, decimals)
}

/**
 * Formats base units of a token, a bigint or digits, as a decimal amount.
 * @example
 * formatToken('1500000000000000000', 18) // '1.5'
 */
export function formatToken(baseUnits: Integer, decimals: number): string {
  return formatUnits(BigInt(baseUnits), decimals)
}

function problemOf(amount: unknown, decimals: number): string | undefined {
  if (typeof amount !== 'string')
    return `it is a ${typeof amount}; pass a decimal string such as '250.5', or base units as a bigint`
  if (!DECIMAL.test(amount)) return "it is not a decimal number such as '250' or '0.5'"
  const [, fraction = ''] = amount.split('.')
  return fraction.length > decimals ? `it has more than ${decimals} decimals` : undefined
}

/** Returns an amount of USDC in base units. Throws a `ValidationError` unless it is positive. */
export function toUsdcUnits(amount: UsdcAmount): bigint {
  const units = typeof amount === 'bigint' ? amount : parseUsdc(amount)
  if (units <= 0n) throw new ValidationError('INVALID_AMOUNT', 'The amount must be positive.')
  return units
}

/** Returns the digits of a whole number. Throws a `ValidationError` that names the field. */
export function toDigits(value: Integer, field: string): string {
  if (typeof value === 'bigint' && value >= 0n) return `${value}`
  if (typeof value === 'string' && DIGITS.test(value)) return `${BigInt(value)}`
  throw new ValidationError(
    'INVALID_REQUEST',
    `${field} is ${String(value)} (${typeof value}); pass a bigint or a string of digits.`,
  )
}
