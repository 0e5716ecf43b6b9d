import { toPrice, toSeconds } from './parse-number.ts'
import type { PriceObservation } from './price-provider.ts'

/** Returns a property of a parsed JSON value, or undefined if the value is not an object or has no such own property. */
export const propertyOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

/** Returns the observation of a symbol from a provider's price and time, which `fetchJson` returns as digits. */
export function toObservation(symbol: string, price: unknown, time: unknown): PriceObservation {
  if (price === undefined || price === null) return { symbol, reason: 'notKnown' }
  const value = toPrice(price)
  if (value === undefined || value === 0n) return { symbol, reason: 'invalidPrice' }
  const observedAt = toSeconds(time)
  return observedAt === undefined ? { symbol, reason: 'noTime' } : { symbol, price: value, observedAt }
}
