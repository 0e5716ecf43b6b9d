declare const basis: unique symbol

/** The price of one share, in US dollars with 8 decimals: what markets and their data providers quote. */
export type SharePrice = bigint & { readonly [basis]: 'share' }

/** The price of one whole token, in US dollars with 8 decimals: what oracles hold, pools trade at and feeds report. */
export type TokenPrice = bigint & { readonly [basis]: 'token' }

/** The multiplier of a token that stands for one share; multipliers have 18 decimals. */
export const ONE_SHARE = 10n ** 18n

/** States that a price is that of a share. */
export const asSharePrice = (price: bigint): SharePrice => price as SharePrice

/** States that a price is that of a token. */
export const asTokenPrice = (price: bigint): TokenPrice => price as TokenPrice

/** Returns the price of a token that stands for `multiplier` shares, truncated. The only place that multiplies. */
export const toTokenPrice = (price: SharePrice, multiplier: bigint): TokenPrice =>
  asTokenPrice((price * multiplier) / ONE_SHARE)

/** Returns the price of a share from that of a token that stands for `multiplier` of them, truncated. */
export const toSharePrice = (price: TokenPrice, multiplier: bigint): SharePrice =>
  asSharePrice(multiplier === 0n ? 0n : (price * ONE_SHARE) / multiplier)

/** Returns how many shares an amount of tokens stands for, in the token's base units, truncated. */
export const toShareAmount = (tokenAmount: bigint, multiplier: bigint): bigint => (tokenAmount * multiplier) / ONE_SHARE

/** A change of a multiplier; `effectiveAt` is Unix seconds. */
export type MultiplierChange = { oldMultiplier: bigint; newMultiplier: bigint; effectiveAt: bigint }

/**
 * Returns whether a token price computed from a share price must not be posted: the share may be on the other side of a
 * split than the multiplier. `change` is undefined while the change is not known; any large step counts then.
 */
export function isUnsettledPrice(
  candidate: TokenPrice,
  last: TokenPrice,
  change: MultiplierChange | undefined,
  now: bigint,
): boolean {
  if (change) return isOnOtherSideOfSplit(candidate, last, change, now)
  return isStep(candidate, last)
}

/** A step from which a price tells on which side of the change its provider is: 5 for 4, or 4 for 5. */
const SPLIT_NUMERATOR = 5n
const SPLIT_DENOMINATOR = 4n

/**
 * Returns whether a share price is on the other side of a split than the token's multiplier: the token price computed
 * from it is nearer to the last one times the step than to the last one. Before the change the step is old over new,
 * from it on it is new over old. Smaller steps, such as dividends, are within the day's moves and settled by time.
 * Nearer means by ratio: the boundary is the geometric mean.
 */
function isOnOtherSideOfSplit(
  candidate: TokenPrice,
  last: TokenPrice,
  { oldMultiplier, newMultiplier, effectiveAt }: MultiplierChange,
  now: bigint,
): boolean {
  const [from, to] = now < effectiveAt ? [newMultiplier, oldMultiplier] : [oldMultiplier, newMultiplier]
  if (last === 0n || !isStep(from, to)) return false
  const [moved, held] = [candidate * candidate * from, last * last * to]
  return from < to ? moved > held : moved < held
}

function isStep(one: bigint, other: bigint): boolean {
  const [less, more] = one < other ? [one, other] : [other, one]
  return less > 0n && more * SPLIT_DENOMINATOR >= less * SPLIT_NUMERATOR
}
