import { type Address, encodeFunctionData, formatUnits, type Hex, numberToHex, type PublicClient } from 'viem'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { swapRouterAbi } from '../contracts-abi/swap-router.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { ACCOUNTS, devnetAccounts } from '../devnet/accounts.ts'
import { rpc, startAnvil } from '../devnet/anvil.ts'
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
  /** The last step: its index, its time on the chain in Unix seconds, and whether it ends a bar and the tape. */
  now(): Now
  /** Reads the newest block. */
  head(): Promise<Block>
  /** Moves clock, oracle and pools to the next step together, in one block. */
  playStep(): Promise<void>
  stop(): Promise<void>
}

/** `prices` are US dollars by symbol. */
type Now = { step: number; time: number; endsBar: boolean; isOver: boolean; prices: Record<string, string> }
type Block = { number: number; timestamp: number }

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
    // Times follow the number of blocks, not this machine's clock.
    await rpc(anvil.rpcUrl, 'anvil_setBlockTimestampInterval', [1])
    const client = connect(anvil.rpcUrl, chainId)
    const accounts = devnetAccounts()
    const { contracts, vaults, tokens, markets } = await seed(client, accounts, { market: listingsOf(tape) })
    const deployment: Deployment = { chainId, rpcUrl: anvil.rpcUrl, baseUrl, contracts, vaults, tokens, accounts }
    const prices = new Map<string, bigint>()
    const player = { client, deployment, markets, prices }
    let last = 0
    await playStep(player, first, first.time + shift)
    return {
      deployment,
      shift,
      now() {
        const { time, endsBar } = tape.steps[last] ?? first
        const isOver = last === tape.steps.length - 1
        const inUsd = Object.fromEntries([...prices].map(([symbol, price]) => [symbol, usdText(price)]))
        return { step: last, time: time + shift, endsBar, isOver, prices: inUsd }
      },
      async playStep() {
        const step = tape.steps[last + 1]
        if (step === undefined) return
        await playStep(player, step, step.time + shift)
        last++
      },
      head: () => readHead(anvil.rpcUrl),
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

const usdText = (price: bigint) => formatUnits(price, 8)

/** What plays a step: the chain, and the last price of each symbol, in USD with 8 decimals. */
type Player = { client: PublicClient; deployment: Deployment; markets: Market[]; prices: Map<string, bigint> }

type Transaction = { from: Address; to: Address; data: Hex; gas: number }

/** Posts the prices of a step and trades the pools to them, in one block at a time. Throws if one of it reverts. */
async function playStep({ client, deployment, markets, prices }: Player, step: Step, time: number): Promise<void> {
  const { rpcUrl } = deployment
  const posts = postsOf(deployment, step, prices)
  for (const [symbol, price] of step.prices) prices.set(symbol, price)
  const [swaps, head] = await Promise.all([
    swapsTo(prices, { client, deployment, markets }),
    readHead(rpcUrl),
    rpc(rpcUrl, 'evm_setAutomine', [false]),
  ])
  const hashes: Hex[] = []
  for (const { gas, ...transaction } of [...posts, ...swaps]) {
    const fees = { gas: numberToHex(gas), maxFeePerGas: numberToHex(10n ** 13n) }
    hashes.push(await rpc<Hex>(rpcUrl, 'eth_sendTransaction', [{ ...transaction, ...fees }]))
  }
  await rpc(rpcUrl, 'evm_setNextBlockTimestamp', [numberToHex(Math.max(time, head.timestamp + 1))])
  await rpc(rpcUrl, 'evm_mine', [])
  const receipts = await Promise.all([
    ...hashes.map(hash => rpc<{ status: Hex } | null>(rpcUrl, 'eth_getTransactionReceipt', [hash])),
    rpc(rpcUrl, 'evm_setAutomine', [true]).then(() => ({ status: '0x1' })),
  ])
  if (receipts.some(receipt => receipt?.status !== '0x1'))
    throw new Error(`The chain did not take the prices of ${new Date(step.time * 1000).toISOString()}.`)
}

/** Returns the oracle's posts of a step: moves beyond its bound by the role that has none, one by one. */
function postsOf({ accounts, contracts, tokens }: Deployment, step: Step, before: Player['prices']): Transaction[] {
  const { admin, priceSetter } = accounts
  const to = contracts.PriceOracle as Address
  const isLarge = ([symbol, price]: [string, bigint]) => {
    const last = before.get(symbol) ?? price
    return (price > last ? price - last : last - price) * 10_000n > last * MAX_UPDATE_BPS
  }
  const forced = [...step.prices].filter(isLarge).map(([symbol, price]) => {
    const args = [tokens[symbol] as Address, price] as const
    const data = encodeFunctionData({ abi: priceOracleAbi, functionName: 'forcePrice', args })
    return { from: admin.address, to, data, gas: GAS.post }
  })
  const usual = [...step.prices].filter(each => !isLarge(each))
  if (usual.length === 0) return forced
  const args = [usual.map(([symbol]) => tokens[symbol] as Address), usual.map(([, price]) => price)] as const
  const data = encodeFunctionData({ abi: priceOracleAbi, functionName: 'setPrices', args })
  return [...forced, { from: priceSetter.address, to, data, gas: GAS.post }]
}

/** Returns the transaction that brings every pool to its price, if one is elsewhere. */
async function swapsTo(
  prices: Player['prices'],
  { client, deployment: { accounts, contracts }, markets }: Omit<Player, 'prices'>,
): Promise<Transaction[]> {
  const { address: recipient } = accounts.marketMaker
  const slots = await client.multicall({
    batchSize: 0,
    allowFailure: false,
    contracts: markets.map(({ pool }) => ({ address: pool, abi: uniswapV3PoolAbi, functionName: 'slot0' }) as const),
  })
  const swaps = markets.flatMap((market, index) => {
    const current = slots[index]?.[0] ?? 0n
    const target = sqrtPriceX96(market, prices.get(market.symbol) ?? 0n)
    return current === target ? [] : [swapTo(market, { current, target, recipient })]
  })
  if (swaps.length === 0) return []
  const data = encodeFunctionData({ abi: swapRouterAbi, functionName: 'multicall', args: [swaps] })
  return [{ from: recipient, to: contracts.SwapRouter as Address, data, gas: GAS.swaps }]
}

async function readHead(rpcUrl: string): Promise<Block> {
  const block = await rpc<Record<keyof Block, Hex>>(rpcUrl, 'eth_getBlockByNumber', ['latest', false])
  return { number: Number(block.number), timestamp: Number(block.timestamp) }
}
