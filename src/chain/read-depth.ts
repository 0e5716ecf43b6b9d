import { type PriceQuote, strictestMaxAge, toPriceQuote, usdcValue } from '@agent-trading-service/protocol/oracle-price'
import { type Address, formatUnits } from 'viem'
import { quoterV2Abi } from '../../contracts-abi/quoter-v2.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { nowAt } from '../clock.ts'
import { refuse } from '../errors/refuse.ts'
import { sourceOf } from './carried-prices.ts'
import type { Block, Chain } from './configured-chain.ts'
import { mandateVault, priceOracle, tokenRegistry } from './contracts.ts'
import { withNewestPrices } from './newest-prices.ts'
import { call, optional, readTree } from './read-tree.ts'

/** What a trade brings, and how far that is below the oracle's value: basis points, rounded up, negative above it. */
export type Fill = { tokenAmount: bigint; usdcAmount: bigint; costBps: number }

/**
 * What a purchase and a sale of one size bring now, each in the pool that brings the most. Amounts are base units;
 * `midPrice` is the first pool's price before the next trade and without its fee, with 8 decimals; `poolFee` is that of
 * the purchase's pool, in hundredths of a basis point.
 */
export type Depth = { quote: PriceQuote; midPrice: bigint; poolFee: number; purchase: Fill; sale: Fill }

/** What the amounts of a read are computed with. They are read with it too, and it is repeated if one has changed. */
type Market = { fees: readonly number[]; price: bigint; decimals: number }
const MAX_READS = 3
/** No pool holds as many units. */
const MAX_AMOUNT = 1n << 112n
/** The ends of the range of prices: a swap that reaches one was filled in part. */
const RANGE_ENDS = [4_295_128_740n, 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_341n]
const BPS = 10_000n
/** A side that costs more is refused: the pool is too small for it. */
const MAX_COST_BPS = 5_000
const USDC_DECIMALS = 6

/**
 * Quotes a purchase for `usdcAmount` and a sale of as many tokens as it is worth at the oracle's price, in one
 * `eth_call` once the pool and the price are known. Throws TOKEN_NOT_QUOTED, STALE_PRICE, POOL_NOT_CONFIGURED,
 * LIQUIDITY_EXCEEDED, INVALID_AMOUNT.
 */
export async function readDepth(
  chain: Chain,
  { address: token, symbol }: { address: Address; symbol: string },
  usdcAmount: bigint,
): Promise<{ block: Block; depth: Depth }> {
  const { markets } = chain.memory
  for (let reads = 0; reads < MAX_READS; reads++) {
    const assumed = markets.get(token)
    const priced = await withNewestPrices(chain, [token])
    const { block, values } = await readTree(priced, depthCalls(chain, token, usdcAmount, assumed))
    const { round, maxAge = 0n, vaults, fee = 0, prices, decimals = 18, purchases, sales } = values
    const allowing = vaults.filter(({ isAllowed }) => isAllowed).map(({ maxPriceAge = 0n }) => maxPriceAge)
    const strictest = strictestMaxAge([maxAge, ...allowing])
    const quote = toPriceQuote(round, strictest, { at: nowAt(block), source: sourceOf(chain, token).kind })
    if (!quote.quoted) throw refuse('TOKEN_NOT_QUOTED', { asset: token })
    if (quote.stale) throw refuse('STALE_PRICE', { asset: token, updatedAt: quote.updatedAt, maxAge: strictest })
    if (fee === 0 || prices === undefined) throw refuse('POOL_NOT_CONFIGURED', { token })
    const fees = (values.fees ?? [fee]).filter(tier => tier > 0)
    const market = { fees, price: quote.price, decimals }
    markets.set(token, market)
    if (!isSame(assumed, market)) continue
    const tokenIn = tokensFor(usdcAmount, market)
    if (tokenIn === 0n) {
      const problem = 'it is worth less than one unit of the token'
      throw refuse('INVALID_AMOUNT', { field: 'usdcAmount', given: formatUnits(usdcAmount, USDC_DECIMALS), problem })
    }
    const fillOf = (
      side: 'purchase' | 'sale',
      received: bigint | undefined,
      toFill: (received: bigint) => Fill,
    ): Fill => {
      const fill = received === undefined ? undefined : toFill(received)
      if (fill === undefined || fill.costBps > MAX_COST_BPS)
        throw refuse('LIQUIDITY_EXCEEDED', { symbol, side, usdcAmount })
      return fill
    }
    const depth = {
      quote,
      midPrice: prices[0],
      poolFee: fees[indexOfMost(purchases)] ?? fee,
      purchase: fillOf('purchase', amountOf(purchases[indexOfMost(purchases)]), tokenAmount => ({
        tokenAmount,
        usdcAmount,
        costBps: costBps(usdcAmount, usdcValue(tokenAmount, market)),
      })),
      sale: fillOf('sale', amountOf(sales[indexOfMost(sales)]), received => ({
        tokenAmount: tokenIn,
        usdcAmount: received,
        costBps: costBps(usdcValue(tokenIn, market), received),
      })),
    }
    return { block, depth }
  }
  throw refuse('CHAIN_UNREACHABLE')
}

function depthCalls(chain: Chain, token: Address, usdcAmount: bigint, market: Market | undefined) {
  const { SwapAdapter, QuoterV2, USDC } = chain.contracts
  if (SwapAdapter === undefined || QuoterV2 === undefined || USDC === undefined)
    throw refuse('POOL_NOT_CONFIGURED', { token })
  const adapter = { address: SwapAdapter, abi: uniswapV3SwapAdapterAbi }
  const quoter = { address: QuoterV2, abi: quoterV2Abi }
  const swaps = (tokenIn: Address, tokenOut: Address, amountIn: bigint) =>
    market === undefined || amountIn === 0n || amountIn > MAX_AMOUNT
      ? []
      : market.fees.map(fee =>
          optional(
            call(quoter, 'quoteExactInputSingle', [{ tokenIn, tokenOut, amountIn, fee, sqrtPriceLimitX96: 0n }]),
          ),
        )
  return {
    round: optional(call(priceOracle(chain), 'latestRoundData', [token])),
    maxAge: optional(call(priceOracle(chain), 'maxAgeOf', [token])),
    vaults: Object.values(chain.vaults).map(vault => ({
      isAllowed: optional(call(mandateVault(vault), 'isAllowedToken', [token])),
      maxPriceAge: optional(call(mandateVault(vault), 'maxPriceAge', [])),
    })),
    decimals: optional(call(tokenRegistry(chain), 'tokenDecimals', [token])),
    fee: optional(call(adapter, 'poolFeeOf', [token])),
    fees: optional(call(adapter, 'poolFeesOf', [token])),
    prices: optional(call(adapter, 'pricesOf', [token, 0])),
    // Last, because a swap through an empty pool may leave little gas for what follows.
    purchases: swaps(USDC, token, usdcAmount),
    sales: swaps(token, USDC, market === undefined ? 0n : tokensFor(usdcAmount, market)),
  }
}

const isSame = (a: Market | undefined, b: Market) =>
  a?.fees.join() === b.fees.join() && a.price === b.price && a.decimals === b.decimals

const tokensFor = (usdcAmount: bigint, { price, decimals }: Market) =>
  (usdcAmount * 100n * 10n ** BigInt(decimals)) / price

type SwapQuote = readonly [amountOut: bigint, sqrtPriceX96After: bigint, ...unknown[]]

/** Returns what a swap pays; undefined if the pool cannot fill it. */
const amountOf = (quoted: SwapQuote | undefined): bigint | undefined =>
  quoted === undefined || quoted[0] === 0n || RANGE_ENDS.includes(quoted[1]) ? undefined : quoted[0]

const indexOfMost = (quoted: readonly (SwapQuote | undefined)[]): number =>
  quoted.reduce((best, swap, index) => ((amountOf(swap) ?? 0n) > (amountOf(quoted[best]) ?? 0n) ? index : best), 0)

/** Rounds up: a trade never costs more than is said. */
function costBps(value: bigint, received: bigint): number {
  const lost = (value - received) * BPS
  return value === 0n ? 0 : Number(lost > 0n ? (lost + value - 1n) / value : lost / value)
}
