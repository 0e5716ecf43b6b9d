import { Agent, request } from 'node:http'
import { type Address, encodeFunctionData, type Hex, numberToHex, type PublicClient } from 'viem'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { swapRouterAbi } from '../contracts-abi/swap-router.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { ACCOUNTS, devnetAccounts } from '../devnet/accounts.ts'
import { startAnvil } from '../devnet/anvil.ts'
import type { Deployment } from '../devnet/deployment.ts'
import { type Market, swapTo } from '../devnet/market-maker.ts'
import { seed } from '../devnet/seed.ts'
import { type Listing, usdc } from '../devnet/seed-config.ts'
import { connect } from '../devnet/sender.ts'
import { sqrtPriceX96 } from '../devnet/uniswap.ts'
import type { Step, Tape } from './tape.ts'

/** The embedded chain with a tape on it. Its clock moves with the steps, and by a second with each other transaction. */
export type EmbeddedMarket = {
  deployment: Deployment
  /** How far the chain's times are ahead of the tape's, in seconds. */
  shift: number
  /** The last step: its time on the chain in Unix seconds, and whether it ends a bar and the tape. */
  now(): { time: number; endsBar: boolean; isOver: boolean }
  /** Moves clock, oracle and pools to the next step together, in one block. */
  playStep(): Promise<void>
  stop(): Promise<void>
}

export const TOKEN_DECIMALS = 18
const POOL_FEE = 500
const POOL_DEPTH = usdc('50000000')
const DAY = 86_400
/** After 28 years the calendar has the same weekdays and daylight saving time again. */
const CALENDAR_CYCLE = 28 * 365.25 * DAY
/** A larger move is posted by the oracle's other role, which has no bound. */
const MAX_UPDATE_BPS = 1_900n
const GAS = { post: 5_000_000, swaps: 40_000_000 }

/** Starts the embedded chain with the tape's tokens, at the prices of its first step. */
export async function startMarket(
  tape: Tape,
  { chainId, baseUrl }: { chainId: number; baseUrl: string },
): Promise<EmbeddedMarket> {
  const first = tape.steps[0] as Step
  const shift = shiftFor(first.time)
  const anvil = await startAnvil({ chainId, accounts: ACCOUNTS, startsAt: first.time + shift - DAY, mines: false })
  try {
    const rpc = createRpc(anvil.rpcUrl)
    // Times follow the number of blocks, not this machine's clock.
    await rpc('anvil_setBlockTimestampInterval', [1])
    const client = connect(anvil.rpcUrl, chainId)
    const accounts = devnetAccounts()
    const { contracts, vaults, tokens, markets } = await seed(client, accounts, { market: listingsOf(tape) })
    const deployment: Deployment = { chainId, rpcUrl: anvil.rpcUrl, baseUrl, contracts, vaults, tokens, accounts }
    const play = createPlayer({ rpc, client, deployment, markets })
    let last = 0
    await play(first, first.time + shift)
    return {
      deployment,
      shift,
      now() {
        const { time, endsBar } = tape.steps[last] ?? first
        return { time: time + shift, endsBar, isOver: last === tape.steps.length - 1 }
      },
      async playStep() {
        const step = tape.steps[last + 1]
        if (step === undefined) return
        await play(step, step.time + shift)
        last++
      },
      stop: anvil.stop,
    }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

/** Returns by how much a tape is played later: clients and payments expect a chain whose clock is not behind the machine's. */
function shiftFor(time: number): number {
  const now = Date.now() / 1000
  return time > now + DAY ? 0 : CALENDAR_CYCLE * Math.ceil((now + DAY - time) / CALENDAR_CYCLE)
}

const listingsOf = ({ symbols, steps }: Tape): Listing[] =>
  symbols.map(symbol => ({
    symbol,
    name: symbol,
    decimals: TOKEN_DECIMALS,
    fee: POOL_FEE,
    price: usdText(steps[0]?.prices.get(symbol) ?? 0n),
    depthUsdc: POOL_DEPTH,
  }))

const usdText = (price: bigint) => `${price / 100_000_000n}.${`${price % 100_000_000n}`.padStart(8, '0')}`

type Surroundings = { rpc: Rpc; client: PublicClient; deployment: Deployment; markets: Market[] }

/** Returns what plays a step: the oracle's posts and the trades that bring the pools there, in one block at a time. */
function createPlayer({ rpc, client, deployment: { accounts, contracts, tokens }, markets }: Surroundings) {
  const last = new Map<string, bigint>()
  const { admin, priceSetter, marketMaker } = accounts
  const oracle = { address: contracts.PriceOracle as Address, abi: priceOracleAbi }
  const send = (from: Address, to: Address, data: Hex, gas: number) =>
    rpc('eth_sendTransaction', [{ from, to, data, gas: numberToHex(gas), maxFeePerGas: numberToHex(10n ** 13n) }])

  async function post(prices: ReadonlyMap<string, bigint>): Promise<void> {
    const updates = [...prices].map(([symbol, price]) => {
      const before = last.get(symbol) ?? price
      const isLarge = (price > before ? price - before : before - price) * 10_000n > before * MAX_UPDATE_BPS
      return { symbol, price, isLarge }
    })
    for (const { symbol, price } of updates.filter(({ isLarge }) => isLarge)) {
      const args = [tokens[symbol] as Address, price] as const
      await send(
        admin.address,
        oracle.address,
        encodeFunctionData({ ...oracle, functionName: 'forcePrice', args }),
        GAS.post,
      )
    }
    const usual = updates.filter(({ isLarge }) => !isLarge)
    const args = [usual.map(({ symbol }) => tokens[symbol] as Address), usual.map(({ price }) => price)] as const
    if (usual.length > 0)
      await send(
        priceSetter.address,
        oracle.address,
        encodeFunctionData({ ...oracle, functionName: 'setPrices', args }),
        GAS.post,
      )
  }

  async function followPools(): Promise<void> {
    const slots = await client.multicall({
      batchSize: 0,
      allowFailure: false,
      contracts: markets.map(({ pool }) => ({ address: pool, abi: uniswapV3PoolAbi, functionName: 'slot0' }) as const),
    })
    const swaps = markets.flatMap((market, index) => {
      const current = slots[index]?.[0] ?? 0n
      const target = sqrtPriceX96(market, last.get(market.symbol) ?? 0n)
      return current === target ? [] : [swapTo(market, { current, target, recipient: marketMaker.address })]
    })
    if (swaps.length === 0) return
    const data = encodeFunctionData({ abi: swapRouterAbi, functionName: 'multicall', args: [swaps] })
    await send(marketMaker.address, contracts.SwapRouter as Address, data, GAS.swaps)
  }

  return async ({ prices }: Step, time: number): Promise<void> => {
    await rpc('evm_setAutomine', [false])
    await post(prices)
    for (const [symbol, price] of prices) last.set(symbol, price)
    await followPools()
    const newest = Number((await rpc<{ timestamp: Hex }>('eth_getBlockByNumber', ['latest', false])).timestamp)
    await rpc('evm_setNextBlockTimestamp', [numberToHex(Math.max(time, newest + 1))])
    await rpc('evm_mine', [])
    await rpc('evm_setAutomine', [true])
  }
}

type Rpc = <Result = unknown>(method: string, params: unknown[]) => Promise<Result>

/** Returns requests of the node over one connection: a step has several, and thousands of steps follow each other. */
function createRpc(url: string): Rpc {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return (method, params) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
      const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
      const sent = request(url, { method: 'POST', agent, headers }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.once('error', reject).once('end', () => {
          const { result, error } = JSON.parse(text)
          if (error) reject(new Error(`${method} failed: ${error.message}`))
          else resolve(result)
        })
      })
      sent.once('error', reject).end(body)
    })
}
