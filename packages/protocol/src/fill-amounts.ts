import type { ExtensionTerms, TokenTerms, TradingTerms } from './check.ts'
import { CapitalMode } from './enums.ts'
import { usdcValue } from './oracle-price.ts'

const BPS = 10_000n

/** What a purchase accepts as the least number of tokens. */
export type PurchaseFloor = { minTokenOut?: bigint | undefined; maxSlippageBps: number }

/** Returns the floor of a fill: `minTokenOut` or the oracle value less the slippage, whichever is larger. */
export function fillFloor(
  usdcAmount: bigint,
  { price, decimals }: { price: bigint; decimals: number },
  { minTokenOut = 0n, maxSlippageBps }: PurchaseFloor,
): bigint {
  if (price === 0n) return minTokenOut
  const fairAmount = (usdcAmount * 100n * 10n ** BigInt(decimals)) / price
  const floor = (fairAmount * (BPS - BigInt(maxSlippageBps))) / BPS
  return floor > minTokenOut ? floor : minTokenOut
}

/** Returns what a trade brings: on paper, no more than its oracle value. */
export const paperPrice = (quoted: bigint, atOracle: bigint, capitalMode: number | undefined): bigint =>
  capitalMode === CapitalMode.Simulated && quoted > atOracle ? atOracle : quoted

/** Returns the tokens that a purchase brings by the venue's quote; undefined if the venue cannot fill it. */
export function expectedTokens(
  { fills, quote, decimals }: TokenTerms,
  usdcAmount: bigint,
  capitalMode: number | undefined,
): bigint | undefined {
  const quoted = fills.get(usdcAmount)
  const atOracle = fillFloor(usdcAmount, { price: quote.price, decimals }, { maxSlippageBps: 0 })
  return quoted === undefined ? undefined : paperPrice(quoted, atOracle, capitalMode)
}

/**
 * Returns what a reduce sells, in the token's base units, with its oracle value and the floor, in USDC base units.
 * `byStranger` is one of an order, whose floor begins where that of an exit does.
 */
export function reduceAmounts(
  { position, token, extension }: TradingTerms,
  exitBps: number,
  byStranger = false,
): { tokenIn: bigint; usdcValue: bigint; minUsdcOut: bigint } {
  if (position === undefined || token === undefined) return { tokenIn: 0n, usdcValue: 0n, minUsdcOut: 0n }
  const market = { price: token.quote.price, decimals: token.decimals }
  const share = (position.tokenAmount * BigInt(exitBps)) / BPS
  const leavesDust = (share > 0n || extension !== undefined) && usdcValue(position.tokenAmount - share, market) === 0n
  const tokenIn = leavesDust ? position.tokenAmount : share
  const value = usdcValue(tokenIn, market)
  const signedBps = byStranger && extension ? 0n : BigInt(position.maxSlippageBps)
  const slippageBps = reduceSlippageBps(signedBps, extension)
  return { tokenIn, usdcValue: value, minUsdcOut: saleFloor(tokenIn, market, slippageBps, extension) }
}

/** From the 8 decimals of an oracle price to 18, in which the router keeps the least price of a sale. */
const MIN_PRICE_SCALE = 10n ** 10n
/** A cent, in USDC base units. */
const MAX_LOST_UNIT = 10_000n

/**
 * Returns the least that a sale must bring, in USDC base units. The router of the extension accepts one unit of the
 * token less of every amount, because pools round their fee up to whole units (`PriceMath.saleFloor`).
 */
export function saleFloor(
  tokenIn: bigint,
  market: { price: bigint; decimals: number },
  slippageBps: bigint,
  extension: Pick<ExtensionTerms, 'tradePolicy'> | undefined,
): bigint {
  if (extension === undefined) return (usdcValue(tokenIn, market) * (BPS - slippageBps)) / BPS
  const minPrice = (market.price * MIN_PRICE_SCALE * (BPS - slippageBps)) / BPS
  const scale = 10n ** BigInt(market.decimals) * 100n * MIN_PRICE_SCALE
  const forgiven = tokenIn > 0n && minPrice <= MAX_LOST_UNIT * scale ? 1n : 0n
  return ((tokenIn - forgiven) * minPrice) / scale
}

/** The router never sells further below the oracle, whatever the policy says. */
const MAX_EXIT_SLIPPAGE_BPS = 2_000n

/**
 * Returns how far below the oracle's value an exit sells at most: the policy's bound, or the signed one without a
 * policy.
 */
export function maxExitSlippageBps(signed: bigint, extension: Pick<ExtensionTerms, 'tradePolicy'> | undefined): bigint {
  if (extension === undefined) return signed
  const { maxExitSlippageBps: atMost } = extension.tradePolicy
  return atMost < MAX_EXIT_SLIPPAGE_BPS ? atMost : MAX_EXIT_SLIPPAGE_BPS
}

/** Returns the slippage of a reduce: the signed one within the bounds of the policy. */
function reduceSlippageBps(signed: bigint, extension: ExtensionTerms | undefined): bigint {
  if (extension === undefined) return signed
  const { exitSlippageStartBps } = extension.tradePolicy
  const atLeast = signed > exitSlippageStartBps ? signed : exitSlippageStartBps
  const atMost = maxExitSlippageBps(signed, extension)
  return atLeast < atMost ? atLeast : atMost
}
