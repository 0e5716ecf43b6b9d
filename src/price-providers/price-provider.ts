import { exchangeHours, marketHours } from '@agent-trading-service/protocol/market-hours'
import { asSharePrice, type SharePrice, type TokenPrice } from '@agent-trading-service/protocol/price-basis'
import type { PriceProviderConfig } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'

/**
 * A provider's price of one symbol, in 8 decimals, with its basis and its time (Unix seconds); or why there is none.
 * Markets quote shares, feeds of tokens quote tokens. `notKnown` includes a symbol that the provider refuses.
 */
export type PriceObservation =
  | { symbol: string; basis: 'share'; price: SharePrice; observedAt: bigint }
  | { symbol: string; basis: 'token'; price: TokenPrice; observedAt: bigint }
  | { symbol: string; reason: 'notKnown' | 'invalidPrice' | 'noTime' }

/** A source of market prices. */
export type PriceProvider = {
  name: string
  /**
   * Returns one observation per symbol, in order. Throws PRICE_PROVIDER_FAILED or, for a local provider,
   * CHAIN_UNREACHABLE.
   */
  observe(symbols: readonly string[]): Promise<PriceObservation[]>
}

const TIMEOUT_MS = 5_000

/**
 * Fetches JSON from a provider. Numbers are returned as strings with the digits of the response, so that no price
 * passes through a float. Returns undefined for `emptyStatus`, if it is given. Throws PRICE_PROVIDER_FAILED, without
 * the URL and the response, because both can contain a key.
 */
export async function fetchJson(
  provider: string,
  url: URL,
  headers: Record<string, string>,
  emptyStatus?: number,
): Promise<unknown> {
  const failure = (problem: string, cause?: unknown) =>
    refuse('PRICE_PROVIDER_FAILED', { provider, problem }, { cause })
  let response: Response
  let text: string
  try {
    response = await fetch(url, {
      headers: { accept: 'application/json', ...headers },
      redirect: 'manual', // a redirect could send the key to another host
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    text = await response.text()
  } catch (error) {
    throw failure('it did not respond', error)
  }
  if (response.status === emptyStatus) return undefined
  if (!response.ok) throw failure(`it returned the HTTP status ${response.status}`)
  try {
    return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown)
  } catch (error) {
    throw failure('its response is not JSON', error)
  }
}

// JSON.parse passes the source text of a primitive to its reviver; TypeScript's types do not know that yet.
const keepDigits = (_key: string, value: unknown, { source }: { source?: string }) =>
  typeof value === 'number' && source !== undefined ? source : value

/**
 * Returns a property of a parsed JSON value, or undefined if the value is not an object or has no such own property.
 */
export const propertyOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

/** Returns the observation of a share from a provider's price and time, which `fetchJson` returns as digits. */
export function toObservation(symbol: string, price: unknown, time: unknown): PriceObservation {
  if (price === undefined || price === null) return { symbol, reason: 'notKnown' }
  const value = toPrice(price)
  if (value === undefined || value === 0n) return { symbol, reason: 'invalidPrice' }
  const observedAt = toSeconds(time)
  return observedAt === undefined
    ? { symbol, reason: 'noTime' }
    : { symbol, basis: 'share', price: asSharePrice(value), observedAt }
}

/** Decimals of the oracle's prices. */
const DECIMALS = 8
/** No price needs more; a larger exponent would only cost memory. */
const MAX_EXPONENT = 40
const NUMBER = /^(\d{1,40})(?:\.(\d{1,80}))?(?:[eE]([+-]?\d{1,3}))?$/
/** Ten digits cover the years 2001 to 2286, and exclude milliseconds. */
const UNIX_SECONDS = /^\d{10}$/

/** Returns the digits of a JSON number as a price in 8 decimals, truncated; undefined if they are not such a number. */
function toPrice(digits: unknown): bigint | undefined {
  const [, whole, fraction = '', exponent = '0'] = (typeof digits === 'string' && NUMBER.exec(digits)) || []
  if (whole === undefined || Math.abs(Number(exponent)) > MAX_EXPONENT) return undefined
  const shift = DECIMALS + Number(exponent) - fraction.length
  const value = BigInt(whole + fraction)
  return shift >= 0 ? value * 10n ** BigInt(shift) : value / 10n ** BigInt(-shift)
}

/** Returns the digits of a JSON number as Unix seconds; undefined if they are not. */
const toSeconds = (digits: unknown): bigint | undefined =>
  typeof digits === 'string' && UNIX_SECONDS.test(digits) ? BigInt(digits) : undefined

/**
 * Returns the function that says when a provider has new prices: Finnhub's quotes are those of the exchange's own
 * session.
 */
export const hoursOfProvider = (provider: PriceProviderConfig | undefined): typeof marketHours =>
  provider?.kind === 'finnhub' ? exchangeHours : marketHours
