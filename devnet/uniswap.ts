import { type Address, maxUint256, zeroAddress } from 'viem'
import { nonfungiblePositionManagerAbi } from '../contracts-abi/nonfungible-position-manager.ts'
import { quoterV2Abi } from '../contracts-abi/quoter-v2.ts'
import { swapRouterAbi } from '../contracts-abi/swap-router.ts'
import { uniswapV3FactoryAbi } from '../contracts-abi/uniswap-v3-factory.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import { weth9Abi } from '../contracts-abi/weth9.ts'
import type { Sender } from './sender.ts'

export type Uniswap = {
  UniswapV3Factory: Address
  NonfungiblePositionManager: Address
  SwapRouter: Address
  QuoterV2: Address
  WETH9: Address
}

/** A pool of USDC and one token. Prices are in USD with 8 decimals, as in the oracle. */
export type Pool = { token: Address; decimals: number; usdc: Address; fee: number }

/** Deploys Uniswap v3 from the artifacts that are published on npm. */
export async function deployUniswap(sender: Sender): Promise<Uniswap> {
  const WETH9 = await sender.deploy({ name: 'WETH9', abi: weth9Abi, args: [] })
  const UniswapV3Factory = await sender.deploy({ name: 'UniswapV3Factory', abi: uniswapV3FactoryAbi, args: [] })
  return {
    WETH9,
    UniswapV3Factory,
    NonfungiblePositionManager: await sender.deploy({
      name: 'NonfungiblePositionManager',
      abi: nonfungiblePositionManagerAbi,
      args: [UniswapV3Factory, WETH9, zeroAddress], // the last argument renders NFTs, which nothing here needs
    }),
    SwapRouter: await sender.deploy({ name: 'SwapRouter', abi: swapRouterAbi, args: [UniswapV3Factory, WETH9] }),
    QuoterV2: await sender.deploy({ name: 'QuoterV2', abi: quoterV2Abi, args: [UniswapV3Factory, WETH9] }),
  }
}

/** Adds fee tiers to those that the factory has by itself. */
export async function enableFees(
  sender: Sender,
  { UniswapV3Factory }: Uniswap,
  fees: readonly number[],
): Promise<void> {
  for (const fee of fees)
    await sender.write({
      address: UniswapV3Factory,
      abi: uniswapV3FactoryAbi,
      functionName: 'enableFeeAmount',
      args: [fee, TICK_SPACING[fee] ?? 0],
    })
}

/** Creates the pool at the given price, without liquidity. */
export async function createPool(sender: Sender, uniswap: Uniswap, pool: Pool, price: bigint): Promise<void> {
  const [token0, token1] = sorted(pool)
  await sender.write({
    address: uniswap.NonfungiblePositionManager,
    abi: nonfungiblePositionManagerAbi,
    functionName: 'createAndInitializePoolIfNecessary',
    args: [token0, token1, pool.fee, sqrtPriceX96(pool, price)],
  })
}

/** Approves the position manager and the router to spend the sender's tokens. */
export async function approveUniswap(sender: Sender, uniswap: Uniswap, tokens: Address[]): Promise<void> {
  for (const address of tokens) {
    for (const spender of [uniswap.NonfungiblePositionManager, uniswap.SwapRouter]) {
      await sender.write({ address, abi: usdcTokenAbi, functionName: 'approve', args: [spender, maxUint256] })
    }
  }
}

/** Adds liquidity worth `depthUsdc` per side over the whole price range, so that every price has liquidity. */
export async function addLiquidity(
  sender: Sender,
  uniswap: Uniswap,
  pool: Pool,
  { price, depthUsdc }: { price: bigint; depthUsdc: bigint },
): Promise<void> {
  const [token0, token1] = sorted(pool)
  const tokens = tokensWorth(pool, price, depthUsdc)
  const [amount0Desired, amount1Desired] = token0 === pool.usdc ? [depthUsdc, tokens] : [tokens, depthUsdc]
  const spacing = TICK_SPACING[pool.fee]
  if (!spacing) throw new Error(`Uniswap v3 has no fee tier ${pool.fee}.`)
  const tickUpper = Math.floor(MAX_TICK / spacing) * spacing
  await sender.write({
    address: uniswap.NonfungiblePositionManager,
    abi: nonfungiblePositionManagerAbi,
    functionName: 'mint',
    args: [
      {
        token0,
        token1,
        fee: pool.fee,
        tickLower: -tickUpper,
        tickUpper,
        amount0Desired,
        amount1Desired,
        amount0Min: 0n,
        amount1Min: 0n,
        recipient: sender.address,
        deadline: maxUint256,
      },
    ],
  })
}

/** Makes the pool keep that many observations, from which it computes its average price. */
export async function rememberPrices(sender: Sender, pool: Address, observations: number): Promise<void> {
  await sender.write({
    address: pool,
    abi: uniswapV3PoolAbi,
    functionName: 'increaseObservationCardinalityNext',
    args: [observations],
  })
}

const MAX_TICK = 887_272
const TICK_SPACING: Record<number, number> = { 100: 1, 500: 10, 3000: 60, 10000: 200, 950000: 200 }

/** Returns the pool's sqrt(token1 / token0) as Q64.96 for a USD price with 8 decimals. */
export function sqrtPriceX96(pool: Pool, price: bigint): bigint {
  const usdcBaseUnits = price
  const tokenBaseUnits = 100n * 10n ** BigInt(pool.decimals) // 8 decimals of the price minus 6 of USDC
  const [numerator, denominator] =
    sorted(pool)[0] === pool.usdc ? [tokenBaseUnits, usdcBaseUnits] : [usdcBaseUnits, tokenBaseUnits]
  return squareRoot((numerator << 192n) / denominator)
}

/** Returns the token base units that are worth `usdc` at a USD price with 8 decimals. */
export function tokensWorth({ decimals }: { decimals: number }, price: bigint, usdc: bigint): bigint {
  return (usdc * 100n * 10n ** BigInt(decimals)) / price
}

function sorted({ token, usdc }: Pool): [Address, Address] {
  return token.toLowerCase() < usdc.toLowerCase() ? [token, usdc] : [usdc, token]
}

function squareRoot(value: bigint): bigint {
  // Above the root by less than a part in 2^50; Newton's method then takes two or three rounds.
  const estimate = BigInt(Math.floor(Math.sqrt(Number(value))))
  let root = estimate + (estimate >> 50n) + 1n
  for (;;) {
    const closer = (root + value / root) >> 1n
    if (closer >= root) return root
    root = closer
  }
}
