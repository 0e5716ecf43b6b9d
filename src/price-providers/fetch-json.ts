import { refuse } from '../errors/catalogue.ts'
import { toPrice, toSeconds } from './parse-number.ts'
import type { Observation } from './provider.ts'

const TIMEOUT_MS = 5_000

/**
 * Asks a provider for JSON; numbers in the answer are the digits that it wrote, as strings.
 * Throws PRICE_PROVIDER_FAILED; the URL and what the provider said stay out of it, since both may hold a key.
 */
export async function ask(provider: string, url: URL, headers: Record<string, string>): Promise<unknown> {
  const failed = (problem: string, cause?: unknown) => refuse('PRICE_PROVIDER_FAILED', { provider, problem }, { cause })
  let response: Response
  let text: string
  try {
    response = await fetch(url, {
      headers: { accept: 'application/json', ...headers },
      // A redirect could carry the key elsewhere.
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    text = await response.text()
  } catch (error) {
    throw failed('it does not answer', error)
  }
  if (!response.ok) throw failed(`it answers with the status ${response.status}`)
  try {
    return JSON.parse(text, digitsOfNumbers as (key: string, value: unknown) => unknown)
  } catch (error) {
    throw failed('its answer is not JSON', error)
  }
}

// JSON.parse tells a reviver the source text of a primitive; a number is never taken as a float.
const digitsOfNumbers = (_key: string, value: unknown, { source }: { source?: string }) =>
  typeof value === 'number' && source !== undefined ? source : value

/** A member of what may not be an object. */
export const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

/** The observation of a symbol from the price and the time as the provider wrote them. */
export function observation(symbol: string, price: unknown, time: unknown): Observation {
  if (price === undefined || price === null) return { symbol, reason: 'notKnown' }
  const value = toPrice(price)
  if (value === undefined || value === 0n) return { symbol, reason: 'invalidPrice' }
  const observedAt = toSeconds(time)
  return observedAt === undefined ? { symbol, reason: 'noTime' } : { symbol, price: value, observedAt }
}
