import { parseAbi } from 'viem'

/** Functions of tokens whose balances change without a transfer. A token that has one is not listed. */
export const rebasingAbi = parseAbi([
  'function sharesOf(address account) view returns (uint256)',
  'function scaledBalanceOf(address account) view returns (uint256)',
  'function balancePerShare() view returns (uint256)',
  'function rebasingCreditsPerToken() view returns (uint256)',
])

/** A cent, in USDC base units: no sale forgives a unit of a token that is worth more. */
const MAX_UNIT_USDC = 10_000n

/** What decides whether a token may be listed. `price` is in 8 decimals, 0 if it is not known. */
type ListingFacts = { symbol: string; decimals: number; price: bigint; isRebasing: boolean }

/**
 * Returns why a token must not be listed. Balances of a rebasing token change without a trade, so the ledger would
 * strand or overstate them. If one unit is worth more than a cent, pools that round their fee up to a unit leave exits
 * unfilled.
 */
export function listingProblems({ symbol, decimals, price, isRebasing }: ListingFacts): string[] {
  const unitUsdc = price / 100n / 10n ** BigInt(decimals)
  return [
    ...(isRebasing ? [`${symbol}: its balances change without transfers; list a wrapped form of it`] : []),
    ...(unitUsdc > MAX_UNIT_USDC
      ? [`${symbol}: one unit is worth more than a cent; list a form with more than ${decimals} decimals`]
      : []),
  ]
}
