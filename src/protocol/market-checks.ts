import type { Check } from './check.ts'
import { expectedTokens, fillFloor, type PurchaseFloor } from './fill-amounts.ts'
import { policyChecks } from './policy-checks.ts'
import type { TokenTerms, TradingTerms } from './router-check-inputs.ts'

/** Returns the checks of a purchase against price and pool. `betweenPriceAndPolicy` stands between the two. */
export function marketChecks(
  terms: TradingTerms,
  entry: PurchaseFloor & { usdcAmount?: bigint | undefined; deadline: bigint },
  betweenPriceAndPolicy: Check[] = [],
): Check[] {
  const { token, extension } = terms
  const { usdcAmount, maxSlippageBps, deadline } = entry
  const checks = [
    ...(token ? [priceCheck(token)] : []),
    ...betweenPriceAndPolicy,
    ...policyChecks(extension, token, { usdcAmount, maxSlippageBps, deadline }),
  ]
  if (token && usdcAmount !== undefined && token.fills.has(usdcAmount)) {
    const market = { price: token.quote.price, decimals: token.decimals }
    const received = expectedTokens(token, usdcAmount, extension?.capitalMode) ?? 0n
    checks.push(slippageCheck(fillFloor(usdcAmount, market, entry), received))
  }
  return checks
}

export const slippageCheck = (floor: bigint, received: bigint): Check => ({
  rule: 'slippage',
  code: 'SLIPPAGE_EXCEEDED',
  pass: received >= floor && received > 0n,
  limit: floor,
  after: received,
})

export const priceCheck = (token: TokenTerms | undefined): Check => ({
  rule: 'freshPrice',
  code: token?.quote.quoted === false ? 'TOKEN_NOT_QUOTED' : 'STALE_PRICE',
  pass: token !== undefined && !token.quote.stale,
  ...(token && { used: token.quote.updatedAt }),
})
