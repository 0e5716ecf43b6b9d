import type { Address } from 'viem'
import { asTokenPrice, type TokenPrice } from './price-basis.ts'

/**
 * Who says a token's price, in the order of the oracle's enum: the key of an updater, reports that their provider signs
 * and the chain verifies, or a push feed.
 */
export const PRICE_SOURCES = ['updater', 'reports', 'feed'] as const
export type PriceSourceKind = (typeof PRICE_SOURCES)[number]

/** An oracle price as of a time. Times are Unix seconds. */
export type PriceQuote = {
  /** 8 decimals, per whole token; 0 if the oracle has never had a price. */
  price: TokenPrice
  updatedAt: bigint
  roundId: bigint
  quoted: boolean
  stale: boolean
  /**
   * Whether the token's multiplier has changed since the price was observed. The price is then from before a corporate
   * action, and the next one may be from a market that has not seen it yet.
   */
  unsettled: boolean
  /** The time as of which it may be stale. */
  at: bigint
  source: PriceSourceKind
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
 * Returns the quote of an oracle round as of a time. It is stale if it is older than `maxAge` seconds (0 is no limit),
 * or if there is no round. `effectiveAt` is when the token's multiplier changes or has changed (0 is never): from then
 * on, the price is unsettled until one is posted that was observed after it.
 */
export function toPriceQuote(
  round: RoundData | undefined,
  maxAge: bigint,
  {
    at,
    effectiveAt = 0n,
    source = 'updater',
  }: { at: bigint; effectiveAt?: bigint | undefined; source?: PriceSourceKind | undefined },
): PriceQuote {
  const quoted = round !== undefined
  const [roundId, price, , updatedAt] = round ?? [0n, 0n, 0n, 0n]
  return {
    price: asTokenPrice(price),
    updatedAt,
    roundId,
    quoted,
    stale: !quoted || (maxAge > 0n && at > updatedAt + maxAge),
    unsettled: quoted && updatedAt < effectiveAt && effectiveAt <= at,
    at,
    source,
  }
}

/** Returns the smallest maximum age that is set (above 0); 0 if none is. */
export const strictestMaxAge = (maxAges: readonly bigint[]): bigint =>
  maxAges.reduce((strictest, age) => (age > 0n && (strictest === 0n || age < strictest) ? age : strictest), 0n)

/** Returns what an amount of a token's base units is worth at a price with 8 decimals, in USDC base units. */
export const usdcValue = (tokenAmount: bigint, { price, decimals }: { price: bigint; decimals: number }): bigint =>
  (tokenAmount * price) / (10n ** BigInt(decimals) * 100n)

/** An event of an oracle, or `PriceOracleUpdated` of the token registry, with its arguments. */
type OracleEvent = { block: number; contract: Address; name: string; args: Record<string, unknown> }

/**
 * The events of an oracle that set a price. A forced one has `PriceUpdated` too, next to the event that says who forced
 * it.
 */
export const POST_NAMES: readonly string[] = ['PriceUpdated', 'PriceInherited']

/**
 * Returns the posts that count among events, in their order: those of the oracle that the token registry names at that
 * time. `oracle` is the one before the first event. The prices that an oracle inherits in the block that names it come
 * into force with it, so they count too.
 */
export function selectPosts<Event extends OracleEvent>(events: readonly Event[], oracle: Address): Event[] {
  const namings = events.filter(({ name }) => name === 'PriceOracleUpdated')
  let inForce: unknown = oracle
  return events.filter(({ block, contract, name, args }) => {
    if (name === 'PriceOracleUpdated') inForce = args.current
    if (!POST_NAMES.includes(name)) return false
    const isNamed = (naming: Event) => naming.block === block && naming.args.current === contract
    return contract === inForce || (name === 'PriceInherited' && namings.some(isNamed))
  })
}
