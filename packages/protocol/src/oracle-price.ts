/** An oracle price as of a time. Times are Unix seconds. */
export type PriceQuote = {
  /** 8 decimals, per whole token; 0 if the oracle has never had a price. */
  price: bigint
  updatedAt: bigint
  roundId: bigint
  quoted: boolean
  stale: boolean
  /** The time as of which it may be stale. */
  at: bigint
}

/** The result of the oracle's `latestRoundData`. */
export type RoundData = readonly [
  roundId: bigint,
  answer: bigint,
  startedAt: bigint,
  updatedAt: bigint,
  answeredInRound: bigint,
]

/**
 * Returns the quote of an oracle round as of a time. It is stale if it is older than `maxAge` seconds (0 is no limit), or
 * if there is no round.
 */
export function toPriceQuote(round: RoundData | undefined, maxAge: bigint, at: bigint): PriceQuote {
  if (round === undefined) return { price: 0n, updatedAt: 0n, roundId: 0n, quoted: false, stale: true, at }
  const [roundId, price, , updatedAt] = round
  return { price, updatedAt, roundId, quoted: true, stale: maxAge > 0n && at > updatedAt + maxAge, at }
}

/** Returns the smallest maximum age that is set (above 0); 0 if none is. */
export const strictestMaxAge = (maxAges: readonly bigint[]): bigint =>
  maxAges.reduce((strictest, age) => (age > 0n && (strictest === 0n || age < strictest) ? age : strictest), 0n)

/** Returns what an amount of a token's base units is worth at a price with 8 decimals, in USDC base units. */
export const usdcValue = (tokenAmount: bigint, { price, decimals }: { price: bigint; decimals: number }): bigint =>
  (tokenAmount * price) / (10n ** BigInt(decimals) * 100n)
