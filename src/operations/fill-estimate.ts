import { expectedTokens, fillFloor, paperPrice } from '@agent-trading-service/protocol/fill-amounts'
import { usdcValue } from '@agent-trading-service/protocol/oracle-price'
import type { TokenTerms } from '@agent-trading-service/protocol/router-check-inputs'
import { formatUnits } from 'viem'
import { ORACLE_DECIMALS } from '../resources/price.ts'

const BPS = 10_000n

const priceUsd = ({ quote }: TokenTerms) => formatUnits(quote.price, ORACLE_DECIMALS)

/** Returns how far a fill is below the oracle value, in basis points. */
const priceImpactBps = (fair: bigint, filled: bigint) => (fair === 0n ? 0 : Number(((fair - filled) * BPS) / fair))

/**
 * Returns what an open or add of a USDC amount (base units) would buy: the venue's quote, or the oracle value on chains
 * without a quoter. Undefined if the token has no price or the venue cannot fill the amount.
 */
export function estimatePurchase(
  token: TokenTerms,
  { usdcAmount, maxSlippageBps }: { usdcAmount: bigint; maxSlippageBps: number },
  capitalMode: number | undefined,
) {
  const market = { price: token.quote.price, decimals: token.decimals }
  if (market.price === 0n) return undefined
  const fair = fillFloor(usdcAmount, market, { maxSlippageBps: 0 })
  const fill = expectedTokens(token, usdcAmount, capitalMode)
  if (fill === undefined && token.fills.size > 0) return undefined
  const tokenOut = fill ?? fair
  return {
    source: fill === undefined ? ('oracle' as const) : ('venue' as const),
    tokenOut: `${tokenOut}`,
    priceUsd: priceUsd(token),
    priceImpactBps: priceImpactBps(fair, tokenOut),
    suggestedMinTokenOut: `${(tokenOut * (BPS - BigInt(maxSlippageBps))) / BPS}`,
  }
}

/** Returns what a reduce would bring, from the same sources as `estimatePurchase`. */
export function estimateSale(
  token: TokenTerms,
  { tokenIn, minUsdcOut }: { tokenIn: bigint; minUsdcOut: bigint },
  capitalMode: number | undefined,
) {
  const market = { price: token.quote.price, decimals: token.decimals }
  if (market.price === 0n) return undefined
  const fair = usdcValue(tokenIn, market)
  const fill = token.sale?.tokenIn === tokenIn ? token.sale.usdcOut : undefined
  if (fill === undefined && token.sale !== undefined) return undefined
  const usdcOut = paperPrice(fill ?? fair, fair, capitalMode)
  return {
    source: fill === undefined ? ('oracle' as const) : ('venue' as const),
    usdcOut: `${usdcOut}`,
    priceUsd: priceUsd(token),
    priceImpactBps: priceImpactBps(fair, usdcOut),
    minUsdcOut: `${minUsdcOut}`,
  }
}
