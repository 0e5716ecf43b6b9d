import { integerRoot } from '@agent-trading-service/protocol/leaderboard-formulas'
import { type Hex, numberToHex } from 'viem'

/** What a Uniswap v3 pool says about itself: `slot0()`, and the values of `observe([0])`. */
type PoolState = {
  slot0: readonly [
    sqrtPriceX96: bigint,
    tick: number,
    observationIndex: number,
    observationCardinality: number,
    observationCardinalityNext: number,
    feeProtocol: number,
    unlocked: boolean,
  ]
  observed: readonly [tickCumulatives: readonly bigint[], secondsPerLiquidity: readonly bigint[]]
}

/** The first slot of a pool's observations. Slot 0 has its price (UniswapV3Pool.sol). */
const OBSERVATIONS = 8n

/**
 * Returns the storage of a pool after a trade that moved it to a price at `time` (Unix seconds): its price and tick,
 * and the observation that such a trade writes, so that its average still has the old price. Its liquidity stays that
 * of the old price.
 */
export function movedPool(
  { slot0, observed }: PoolState,
  sqrtPriceX96: bigint,
  { timestamp }: { timestamp: bigint },
): Record<Hex, Hex> {
  const [, , last, cardinality, cardinalityNext, feeProtocol, unlocked] = slot0
  const [[tickCumulative = 0n], [secondsPerLiquidity = 0n]] = observed
  const grown = cardinalityNext > cardinality && last === cardinality - 1 ? cardinalityNext : cardinality
  const index = (last + 1) % grown
  return {
    [word(0n)]: packed([
      [160n, sqrtPriceX96],
      [24n, BigInt(tickAt(sqrtPriceX96))],
      [16n, BigInt(index)],
      [16n, BigInt(grown)],
      [16n, BigInt(cardinalityNext)],
      [8n, BigInt(feeProtocol)],
      [8n, unlocked ? 1n : 0n],
    ]),
    [word(OBSERVATIONS + BigInt(index))]: packed([
      [32n, timestamp],
      [56n, tickCumulative],
      [160n, secondsPerLiquidity],
      [8n, 1n],
    ]),
  }
}

/** Returns the square root of token1 per token0 (Q64.96) at a price of a token with 8 decimals, in a pool with USDC. */
export function sqrtPriceAt(
  { price, decimals }: { price: bigint; decimals: number },
  { isUsdcFirst }: { isUsdcFirst: boolean },
): bigint {
  // USDC has six decimals.
  const tokenUnits = 10n ** BigInt(decimals + 2)
  return integerRoot(((isUsdcFirst ? tokenUnits : price) << 192n) / (isUsdcFirst ? price : tokenUnits))
}

/** Returns the tick of a square root of a price: the power of 1.0001 that is at or below the price. */
const tickAt = (sqrtPriceX96: bigint): number =>
  Math.floor((2 * (Math.log(Number(sqrtPriceX96)) - 96 * Math.LN2)) / Math.log(1.0001))

/** Packs fields into a word, the first one into the lowest bits. */
function packed(fields: readonly (readonly [bits: bigint, value: bigint])[]): Hex {
  let [result, shift] = [0n, 0n]
  for (const [bits, value] of fields) {
    result |= BigInt.asUintN(Number(bits), value) << shift
    shift += bits
  }
  return word(result)
}

const word = (value: bigint): Hex => numberToHex(value, { size: 32 })
