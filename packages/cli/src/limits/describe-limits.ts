import { DEFAULT_REGISTRATIONS } from './enforce-limits.ts'
import { limitsPath, readLimits } from './limits-file.ts'
import { spentToday } from './purchase-log.ts'

/** Returns the limits of this machine and what they leave for today. Amounts are digits in USDC base units. */
export function describeLimits(home: string) {
  const limits = readLimits(home)
  const { usdc: spent, registrations: registered } = spentToday(home)
  const { registrations, perTradeUsdc, perDayUsdc, symbols, until } = limits ?? {}
  const left = perDayUsdc === undefined ? undefined : perDayUsdc > spent ? perDayUsdc - spent : 0n
  return {
    file: limitsPath(home),
    exists: limits !== undefined,
    perTradeUsdc: digitsOf(perTradeUsdc),
    perDayUsdc: digitsOf(perDayUsdc),
    spentInLast24HoursUsdc: digitsOf(spent),
    leftUsdc: digitsOf(left),
    registrations: limits ? (registrations ?? DEFAULT_REGISTRATIONS) : null,
    registeredInLast24Hours: registered,
    symbols: symbols ?? null,
    until: until?.toISOString() ?? null,
  }
}

const digitsOf = (amount: bigint | undefined) => (amount === undefined ? null : `${amount}`)
