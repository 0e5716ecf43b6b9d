import type { Address, Hex } from 'viem'

// The state of a Uniswap v3 pool whose liquidity is one position over all prices, and what a swap to a price writes. A
// market that moves every pool at every bar writes it directly: the same state as after a swap, without fees and
// balances, on which no price depends.

/** What a swap to a price reads and writes of a pool. */
export type PoolState = {
  sqrtPriceX96: bigint
  tick: number
  observationIndex: number
  cardinality: number
  cardinalityNext: number
  /** The bits of slot 0 above those: the protocol's fee and the lock. */
  flags: bigint
  liquidity: bigint
  observation: Observation
}
type Observation = { timestamp: number; tickCumulative: bigint; secondsPerLiquidity: bigint }

/** Storage slots of UniswapV3Pool.sol. */
const [SLOT0, LIQUIDITY, OBSERVATIONS] = [0n, 4n, 8n]

export type StorageWrite = { address: Address; slot: bigint; value: bigint }

/** Returns 32 bytes in hexadecimal. */
const word = (value: bigint): Hex => `0x${value.toString(16).padStart(64, '0')}`
export const storageParams = ({ address, slot, value }: StorageWrite): [Address, Hex, Hex] => [
  address,
  word(slot),
  word(value),
]

/** Reads pools; `read` returns the words of storage slots, in their order. */
export async function readPoolStates(
  pools: readonly Address[],
  read: (slots: readonly { address: Address; slot: bigint }[]) => Promise<bigint[]>,
): Promise<PoolState[]> {
  const words = await read(pools.flatMap(address => [SLOT0, LIQUIDITY].map(slot => ({ address, slot }))))
  const states = pools.map((_, index) => slot0Of(words[2 * index] ?? 0n, words[2 * index + 1] ?? 0n))
  const observations = await read(
    pools.map((address, index) => ({ address, slot: OBSERVATIONS + BigInt(states[index]?.observationIndex ?? 0) })),
  )
  return states.map((state, index) => ({ ...state, observation: observationOf(observations[index] ?? 0n) }))
}

/**
 * Returns the state after a swap that ends exactly at a price, and what it writes (UniswapV3Pool.swap, Oracle.write).
 * An observation is written only if the tick changes, and at most once per block.
 */
export function swappedTo(
  address: Address,
  state: PoolState,
  sqrtPriceX96: bigint,
  timestamp: number,
): { state: PoolState; writes: StorageWrite[] } {
  const tick = tickAt(sqrtPriceX96)
  const next = { ...state, sqrtPriceX96, tick }
  const writes: StorageWrite[] = []
  if (tick !== state.tick && state.observation.timestamp !== timestamp) {
    const { observation, observationIndex, cardinality, cardinalityNext } = state
    if (cardinalityNext > cardinality && observationIndex === cardinality - 1) next.cardinality = cardinalityNext
    next.observationIndex = (observationIndex + 1) % next.cardinality
    const seconds = BigInt(timestamp - observation.timestamp)
    next.observation = {
      timestamp,
      tickCumulative: observation.tickCumulative + BigInt(state.tick) * seconds,
      secondsPerLiquidity: BigInt.asUintN(
        160,
        observation.secondsPerLiquidity + (seconds << 128n) / (state.liquidity || 1n),
      ),
    }
    writes.push({ address, slot: OBSERVATIONS + BigInt(next.observationIndex), value: packed(next.observation) })
  }
  writes.push({ address, slot: SLOT0, value: slot0(next) })
  return { state: next, writes }
}

const bits = (value: bigint, from: bigint, size: number) => BigInt.asUintN(size, value >> from)

const slot0Of = (value: bigint, liquidity: bigint): Omit<PoolState, 'observation'> => ({
  sqrtPriceX96: bits(value, 0n, 160),
  tick: Number(BigInt.asIntN(24, value >> 160n)),
  observationIndex: Number(bits(value, 184n, 16)),
  cardinality: Number(bits(value, 200n, 16)),
  cardinalityNext: Number(bits(value, 216n, 16)),
  flags: value >> 232n,
  liquidity: bits(liquidity, 0n, 128),
})

const slot0 = ({ sqrtPriceX96, tick, observationIndex, cardinality, cardinalityNext, flags }: PoolState): bigint =>
  sqrtPriceX96 |
  (BigInt.asUintN(24, BigInt(tick)) << 160n) |
  (BigInt(observationIndex) << 184n) |
  (BigInt(cardinality) << 200n) |
  (BigInt(cardinalityNext) << 216n) |
  (flags << 232n)

const observationOf = (value: bigint): Observation => ({
  timestamp: Number(bits(value, 0n, 32)),
  tickCumulative: BigInt.asIntN(56, value >> 32n),
  secondsPerLiquidity: bits(value, 88n, 160),
})

const packed = ({ timestamp, tickCumulative, secondsPerLiquidity }: Observation): bigint =>
  BigInt(timestamp) | (BigInt.asUintN(56, tickCumulative) << 32n) | (secondsPerLiquidity << 88n) | (1n << 248n)

const MAX_TICK = 887_272
/** 2^128 / √1.0001^(2^n) for n from 0 on (TickMath.sol). */
const RATIOS = [
  0xfffcb933bd6fad37aa2d162d1a594001n,
  0xfff97272373d413259a46990580e213an,
  0xfff2e50f5f656932ef12357cf3c7fdccn,
  0xffe5caca7e10e4e61c3624eaa0941cd0n,
  0xffcb9843d60f6159c9db58835c926644n,
  0xff973b41fa98c081472e6896dfb254c0n,
  0xff2ea16466c96a3843ec78b326b52861n,
  0xfe5dee046a99a2a811c461f1969c3053n,
  0xfcbe86c7900a88aedcffc83b479aa3a4n,
  0xf987a7253ac413176f2b074cf7815e54n,
  0xf3392b0822b70005940c7a398e4b70f3n,
  0xe7159475a2c29b7443b29c7fa6e889d9n,
  0xd097f3bdfd2022b8845ad8f792aa5825n,
  0xa9f746462d870fdf8a65dc1f90e061e5n,
  0x70d869a156d2a1b890bb3df62baf32f7n,
  0x31be135f97d08fd981231505542fcfa6n,
  0x9aa508b5b7a84e1c677de54f3e99bc9n,
  0x5d6af8dedb81196699c329225ee604n,
  0x2216e584f5fa1ea926041bedfe98n,
  0x48a170391f7dc42444e8fa2n,
]
const ONE = 1n << 128n

/** Returns √1.0001^tick as Q64.96, rounded up as TickMath.getSqrtRatioAtTick does. */
export function sqrtRatioAt(tick: number): bigint {
  const size = Math.abs(tick)
  let ratio = ONE
  for (const [bit, factor] of RATIOS.entries()) if (size & (1 << bit)) ratio = (ratio * factor) >> 128n
  if (tick > 0) ratio = ((1n << 256n) - 1n) / ratio
  return (ratio >> 32n) + (ratio % (1n << 32n) === 0n ? 0n : 1n)
}

/** Within this part of a tick from its bounds, floating point does not decide. */
const DOUBT = 1e-6

/** Returns the greatest tick whose ratio is at most a square root of a price in Q64.96. */
export function tickAt(sqrtPriceX96: bigint): number {
  const estimate = (2 * Math.log(Number(sqrtPriceX96) / 2 ** 96)) / Math.log(1.0001)
  let tick = Math.max(-MAX_TICK, Math.min(MAX_TICK, Math.floor(estimate)))
  if (estimate - tick > DOUBT && estimate - tick < 1 - DOUBT) return tick
  while (sqrtRatioAt(tick) > sqrtPriceX96) tick--
  while (tick < MAX_TICK && sqrtRatioAt(tick + 1) <= sqrtPriceX96) tick++
  return tick
}
