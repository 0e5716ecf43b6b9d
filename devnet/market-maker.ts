import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, encodeFunctionData, type Hex, type PublicClient } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { swapRouterAbi } from '../contracts-abi/swap-router.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { type Pool, sqrtPriceX96 } from './uniswap.ts'
import { watchNode } from './watch-node.ts'

export type Market = Pool & { symbol: string; pool: Address }

export type MarketMaker = {
  /** Lets the pools drift from the oracle until `resume` is called. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

export type Chain = { rpcUrl: string; client: PublicClient; oracle: Address; swapRouter: Address; markets: Market[] }

const POLL_MS = 100
/** About two blocks of a chain of the tests, because this runs next to every test. */
const PASS_INTERVAL_MS = 200
const MAX_EMPTY_BLOCKS = 4
const INCLUSION_TIMEOUT_MS = 30_000
// Within this distance the pool's fee exceeds the arbitrage profit, so the pool counts as following the oracle.
const TOLERANCE_PPM = 20n

/**
 * Trades every pool to the oracle's price whenever they differ. It reads state after new blocks, not events, so it
 * misses no change; it has its own account and runs one pass at a time, so its nonces cannot collide.
 */
export function startMarketMaker(
  chain: Chain,
  privateKey: Hex,
  onProblem: (problem: string) => void = problem => console.error(`market maker: ${problem}`),
): MarketMaker {
  const stopping = new AbortController()
  const heads = watchNode(chain.rpcUrl, 'newHeads')
  let paused = false
  let checked: Hex | undefined
  const onNewBlock = async () => {
    const head = await readBlock(chain.client, 'latest')
    if (head === null || head.hash === checked) return
    if (!(await isUnchangedSince(chain.client, checked, head))) await tradeToOracle(chain, privateKey, stopping.signal)
    checked = head.hash
  }
  const run = async () => {
    while (!stopping.signal.aborted) {
      if (!paused && heads.hasNews()) {
        await onNewBlock().catch(error => {
          if (!stopping.signal.aborted) onProblem(error instanceof Error ? error.message : String(error))
        })
      }
      await sleep(PASS_INTERVAL_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }
  const running = run()
  return {
    pause() {
      paused = true
    },
    resume() {
      paused = false
    },
    async stop() {
      stopping.abort()
      heads.stop()
      await running
    },
  }
}

type Block = { hash: Hex; parentHash: Hex; transactions: Hex[] }

/** Returns a block without viem's formatting, which takes longer than the request; null if the chain has lost it. */
function readBlock(client: PublicClient, block: 'latest' | Hex): Promise<Block | null> {
  return client.request<{
    Method: 'eth_getBlockByNumber' | 'eth_getBlockByHash'
    Parameters: [string, false]
    ReturnType: Block | null
  }>({ method: block === 'latest' ? 'eth_getBlockByNumber' : 'eth_getBlockByHash', params: [block, false] })
}

/**
 * Whether only a few empty blocks separate a block from a checked one: most blocks are empty, and those change no
 * price.
 */
async function isUnchangedSince(client: PublicClient, checked: Hex | undefined, head: Block): Promise<boolean> {
  let block: Block | null = head
  for (let depth = 0; checked !== undefined && depth < MAX_EMPTY_BLOCKS; depth++) {
    if (block === null || block.transactions.length > 0) return false
    if (block.parentHash === checked) return true
    block = await readBlock(client, block.parentHash)
  }
  return false
}

/** Returns the markets whose pool differs from the oracle's price, with the pool's current and target sqrtPriceX96. */
export async function driftingMarkets({ client, oracle, markets }: Omit<Chain, 'rpcUrl' | 'swapRouter'>) {
  const states = await client.multicall({
    batchSize: 0, // a single call, so that all values are from one block
    allowFailure: false,
    contracts: markets.flatMap(
      ({ pool, token }) =>
        [
          { address: pool, abi: uniswapV3PoolAbi, functionName: 'slot0' },
          { address: oracle, abi: priceOracleAbi, functionName: 'peekPrice', args: [token] },
        ] as const,
    ),
  })
  return markets.flatMap((market, index) => {
    const [current] = states[2 * index] as readonly [bigint, ...unknown[]]
    const [price] = states[2 * index + 1] as readonly [bigint, ...unknown[]]
    if (price === 0n) return []
    const target = sqrtPriceX96(market, price)
    const gap = current > target ? current - target : target - current
    return gap * 1_000_000n > target * TOLERANCE_PPM ? [{ market, current, target }] : []
  })
}

/** Resolves once the market's pool is at the oracle's price. */
export async function untilFollowed(client: PublicClient, oracle: Address, market: Market): Promise<void> {
  const deadline = Date.now() + INCLUSION_TIMEOUT_MS
  while ((await driftingMarkets({ client, oracle, markets: [market] })).length > 0) {
    if (Date.now() > deadline)
      throw new Error(
        `The pool of ${market.symbol} did not reach the oracle's price within ${INCLUSION_TIMEOUT_MS / 1000} s.`,
      )
    await sleep(50)
  }
}

async function tradeToOracle(chain: Chain, privateKey: Hex, stopped: AbortSignal): Promise<void> {
  const drifting = await driftingMarkets(chain)
  if (drifting.length === 0) return
  const { client, swapRouter } = chain
  const account = privateKeyToAccount(privateKey)
  const nonce = await client.getTransactionCount({ address: account.address, blockTag: 'latest' })
  const hashes = await Promise.all(
    drifting.map(async ({ market, current, target }, index) =>
      client.sendRawTransaction({
        serializedTransaction: await account.signTransaction({
          type: 'eip1559',
          chainId: client.chain?.id ?? 0,
          nonce: nonce + index,
          to: swapRouter,
          data: swapTo(market, { current, target, recipient: account.address }),
          gas: 2_000_000n, // a large move crosses many words of the tick bitmap
          maxFeePerGas: 10_000_000_000_000n, // so that tests of high base fees do not stop the pools
          maxPriorityFeePerGas: 1_000_000_000n,
        }),
      }),
    ),
  )
  const deadline = Date.now() + INCLUSION_TIMEOUT_MS
  for (const hash of hashes) {
    while (!stopped.aborted && !(await isMined(client, hash))) {
      if (Date.now() > deadline)
        throw new Error(`Transaction ${hash} was not mined within ${INCLUSION_TIMEOUT_MS / 1000} s.`)
      await sleep(POLL_MS)
    }
  }
}

/** Returns the call of the swap router that trades a pool to a price. */
export function swapTo(
  market: Market,
  { current, target, recipient }: { current: bigint; target: bigint; recipient: Address },
): Hex {
  const { token, usdc, fee } = market
  const [token0, token1] = BigInt(token) < BigInt(usdc) ? [token, usdc] : [usdc, token]
  const [tokenIn, tokenOut] = target < current ? [token0, token1] : [token1, token0]
  return encodeFunctionData({
    abi: swapRouterAbi,
    functionName: 'exactInputSingle',
    args: [
      {
        tokenIn,
        tokenOut,
        fee,
        recipient,
        deadline: 2n ** 64n,
        amountIn: 2n ** 127n, // the price limit ends the swap, and only the amount swapped is paid
        amountOutMinimum: 0n,
        sqrtPriceLimitX96: target,
      },
    ],
  })
}

async function isMined(client: PublicClient, hash: Hex): Promise<boolean> {
  return client.getTransactionReceipt({ hash }).then(
    () => true,
    () => false,
  )
}
