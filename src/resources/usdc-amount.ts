import { formatUnits, parseUnits } from 'viem'
import { z } from 'zod'
import { refuse } from '../errors/refuse.ts'

/** USDC has 6 decimals on every deployment of the protocol. */
export const USDC_DECIMALS = 6

/** A human USDC amount such as `250` or `0.5`. It stays a string until `parseUsdc` converts it. */
export const usdcAmount = z
  .string()
  .max(100, 'must be at most 100 characters')
  .regex(/^[0-9]+(\.[0-9]+)?$/, 'must be a decimal number such as 250 or 0.5')
  .meta({ description: 'Human USDC, at most 6 decimals', example: '250' })

/** Converts human USDC to base units. Throws INVALID_AMOUNT for zero, more than 6 decimals, or 2^256 and above; never rounds. */
export function parseUsdc(given: string): bigint {
  const invalid = (problem: string) => refuse('INVALID_AMOUNT', { field: 'usdcAmount', given, problem })
  const [, fraction = ''] = given.split('.')
  if (fraction.length > USDC_DECIMALS) throw invalid(`USDC has ${USDC_DECIMALS} decimals`)
  const value = parseUnits(given, USDC_DECIMALS)
  if (value === 0n) throw invalid('it is zero')
  if (value >= 1n << 256n) throw invalid('it is above 2^256')
  return value
}

/** Converts base units to human USDC, as `usdcAmount` takes it. */
export const humanUsdc = (amount: bigint): string => formatUnits(amount, USDC_DECIMALS)
