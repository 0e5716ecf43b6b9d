/**
 * A provider's price of one symbol, in 8 decimals, with its time (Unix seconds); or why there is none. `notKnown` includes
 * a symbol that the provider refuses.
 */
export type PriceObservation =
  | { symbol: string; price: bigint; observedAt: bigint }
  | { symbol: string; reason: 'notKnown' | 'invalidPrice' | 'noTime' }

/** A source of market prices. */
export type PriceProvider = {
  name: string
  /** Returns one observation per symbol, in order. Throws PRICE_PROVIDER_FAILED or, for a local provider, CHAIN_UNREACHABLE. */
  observe(symbols: readonly string[]): Promise<PriceObservation[]>
}
