import type { Check } from './check.ts'
import { expectedTokens, fillFloor, type PurchaseFloor } from './fill-amounts.ts'
import type { TokenTerms, TradingTerms } from './router-check-inputs.ts'

export const priceCheck = (token: TokenTerms | undefined): Check => ({
  rule: 'freshPrice',
  code: token?.quote.quoted === false ? 'TOKEN_NOT_QUOTED' : 'STALE_PRICE',
  pass: token !== undefined && !token.quote.stale,
  ...(token && { used: token.quote.updatedAt }),
})

/** Returns the slippage check of a purchase; none if its amount was not quoted by the venue. */
export function purchaseSlippageChecks(
  { token, extension }: TradingTerms,
  entry: PurchaseFloor & { usdcAmount?: bigint | undefined },
): Check[] {
  const { usdcAmount } = entry
  if (token === undefined || usdcAmount === undefined || !token.fills.has(usdcAmount)) return []
  const market = { price: token.quote.price, decimals: token.decimals }
  const received = expectedTokens(token, usdcAmount, extension?.capitalMode) ?? 0n
  const check = slippageCheck(fillFloor(usdcAmount, market, entry), received)
  return [{ ...check, pass: check.pass && received > 0n }]
}

export const slippageCheck = (floor: bigint, received: bigint): Check => ({
  rule: 'slippage',
  code: 'SLIPPAGE_EXCEEDED',
  pass: received >= floor,
  limit: floor,
  after: received,
})
