import {
  type Address,
  createPublicClient,
  formatUnits,
  getAddress,
  http,
  isAddressEqual,
  type PublicClient,
  parseEventLogs,
} from 'viem'
import { orderBookAbi } from '../../../../contracts-abi/order-book.ts'
import { priceOracleAbi } from '../../../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../../../contracts-abi/trade-router.ts'
import { uniswapV3PoolAbi } from '../../../../contracts-abi/uniswap-v3-pool.ts'
import { uniswapV3SwapAdapterAbi } from '../../../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { Failure } from '../failure.ts'
import { readLogs } from '../read-logs.ts'
import { multipliersBefore, type RecordedAction, readActions } from './recorded-actions.ts'
import { readService, readVenue, type Venue } from './venue.ts'

/**
 * What a block changed: posted prices in US dollars, and the square roots (Q64.96) of the prices at which trades of
 * others left pools, by symbol. `exits` marks the place of a block in which exits or orders were executed; its time is
 * that of the block before.
 */
export type RecordedBlock = {
  time: number
  prices?: Record<string, string>
  pools?: Record<string, string>
  exits?: true
  /** Corporate actions that were announced, in their order; in the first block also what tokens stood for. */
  actions?: RecordedAction[]
}

/**
 * A day of a deployment, block by block. The first block has every price and pool. `liquidity` is that of the pools.
 */
export type RecordedDay = { venue: Venue; liquidity: Record<string, string>; blocks: RecordedBlock[] }

const DAY = 86_400n
const TIMEOUT_MS = 20_000
const EXECUTIONS = ['ExitExecuted', 'ExitDeferred', 'ExitPartlyExecuted', 'OrderExecuted', 'OrderPeakRaised'] as const

/**
 * Reads a day of a deployment from its API and from a node, by default its public one. `from` and `to` are Unix
 * seconds; a day until now by default. Prices and pools at its start come from the day before. Throws a failure.
 */
export async function recordDay(
  url: string,
  { rpc, from, to }: { rpc?: string | undefined; from?: string | undefined; to?: string | undefined },
): Promise<RecordedDay> {
  const { contracts, node, chainId } = await readService(url)
  const nodeUrl = rpc ?? node
  if (nodeUrl === null)
    throw new Failure('usage', 'The deployment names no public node to read its posts from.', {
      code: 'NODE_REQUIRED',
      remedy: 'Pass a node of its chain as --rpc.',
    })
  const client = createPublicClient({ transport: http(nodeUrl, { batch: true, timeout: TIMEOUT_MS }) })
  const nodeChainId = await client.getChainId()
  if (nodeChainId !== chainId)
    throw new Failure('refused', `The node is of chain ${nodeChainId}, the deployment on chain ${chainId}.`, {
      code: 'WRONG_CHAIN',
      remedy: `Pass a node of chain ${chainId} as --rpc.`,
    })
  const venue = await readVenue(url)
  const { TradeRouter, PriceOracle, SwapAdapter, OrderBook } = contracts
  const adapter = { address: SwapAdapter as Address, abi: uniswapV3SwapAdapterAbi, functionName: 'poolOf' } as const
  const pools = new Map<Address, string>()
  const liquidity: Record<string, string> = {}
  for (const { symbol, address } of venue.tokens) {
    const pool = await client.readContract({ ...adapter, args: [address] })
    pools.set(getAddress(pool), symbol)
    const held = { address: pool, abi: uniswapV3PoolAbi, functionName: 'liquidity' } as const
    liquidity[symbol] = `${await client.readContract(held)}`
  }

  const head = await client.getBlock()
  const end = to === undefined ? head.timestamp : BigInt(to)
  const start = from === undefined ? end - DAY : BigInt(from)
  const range = [await blockAt(client, start - DAY, head.number), await blockAt(client, end, head.number)] as const
  const addresses = [PriceOracle, TradeRouter, OrderBook, ...pools.keys()].filter(each => each !== undefined)
  const logs = await readLogs(client, addresses, range)
  const actions = await readActions(client, venue.tokens, range)
  const timeOf = await blockTimes(client, [...logs, ...actions])
  const symbolOf = new Map<Address, string>([
    ...pools,
    ...venue.tokens.map(({ address, symbol }) => [getAddress(address), symbol] as const),
  ])
  const routed = new Set(
    logs
      .filter(({ address }) => isAddressEqual(address, TradeRouter as Address))
      .map(({ transactionHash }) => transactionHash),
  )
  const events = parseEventLogs({
    abi: [...priceOracleAbi, ...tradeRouterAbi, ...orderBookAbi, ...uniswapV3PoolAbi],
    logs,
  })
  const blocks = new Map<bigint, RecordedBlock>()
  for (const event of events) {
    const { blockNumber, transactionHash, eventName, args, address } = event
    const isExecution = (EXECUTIONS as readonly string[]).includes(eventName)
    // What executes exits sees the block before, so it comes before what else its own block has.
    const at = isExecution ? 2n * blockNumber - 1n : 2n * blockNumber
    const block = blocks.get(at) ?? { time: Number(timeOf(isExecution ? blockNumber - 1n : blockNumber)) }
    if (isExecution) block.exits = true
    else if (eventName === 'PriceUpdated' || eventName === 'PriceInherited') {
      const symbol = symbolOf.get(getAddress(args.asset))
      if (symbol === undefined) continue
      block.prices = { ...block.prices, [symbol]: formatUnits(args.price, 8) }
    } else if (eventName === 'Initialize' || (eventName === 'Swap' && !routed.has(transactionHash))) {
      const symbol = symbolOf.get(getAddress(address))
      if (symbol === undefined) continue
      block.pools = { ...block.pools, [symbol]: `${args.sqrtPriceX96}` }
    } else continue
    blocks.set(at, block)
  }
  for (const { blockNumber, action } of actions) {
    const block = blocks.get(2n * blockNumber) ?? { time: Number(timeOf(blockNumber)) }
    blocks.set(2n * blockNumber, { ...block, actions: [...(block.actions ?? []), action] })
  }
  const inOrder = [...blocks].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, block]) => block)
  const first = { actions: multipliersBefore(venue.tokens, actions, Number(start)) }
  return { venue, liquidity, blocks: fromStart(inOrder, venue, { first, start: Number(start), end: Number(end) }) }
}

/** Joins everything before the start, and before every token has a price, to one block. The last one ends the day. */
function fromStart(
  blocks: readonly RecordedBlock[],
  { tokens }: Venue,
  { first: { actions }, start, end }: { first: { actions: RecordedAction[] }; start: number; end: number },
): RecordedBlock[] {
  const posted = new Set(blocks.flatMap(({ prices = {} }) => Object.keys(prices)))
  const prices = Object.fromEntries(
    tokens.flatMap(({ symbol, priceUsd }) => (posted.has(symbol) ? [] : [[symbol, priceUsd]])),
  )
  const first = { time: start, prices, pools: {}, actions: [...actions] }
  let next = 0
  for (const block of blocks) {
    if (block.time >= start && Object.keys(first.prices).length === tokens.length) break
    Object.assign(first.prices, block.prices)
    Object.assign(first.pools, block.pools)
    first.actions.push(...(block.actions ?? []))
    first.time = Math.max(block.time, start)
    next++
  }
  return [first, ...blocks.slice(next), { time: end }]
}

/** Returns the number of the last block that is not after a time, by bisection; the first block if none is. */
async function blockAt(client: PublicClient, time: bigint, head: bigint): Promise<bigint> {
  let [low, high] = [0n, head]
  while (low < high) {
    const middle = (low + high + 1n) / 2n
    const { timestamp } = await client.getBlock({ blockNumber: middle })
    if (timestamp <= time) low = middle
    else high = middle - 1n
  }
  return low
}

/** Returns the times of the blocks that have logs, and of those before them. */
async function blockTimes(client: PublicClient, logs: readonly { blockNumber: bigint }[]) {
  const numbers = [...new Set(logs.flatMap(({ blockNumber }) => [blockNumber - 1n, blockNumber]))]
  const times = new Map<bigint, bigint>()
  for (let index = 0; index < numbers.length; index += 100)
    await Promise.all(
      numbers
        .slice(index, index + 100)
        .map(async blockNumber => times.set(blockNumber, (await client.getBlock({ blockNumber })).timestamp)),
    )
  return (number: bigint) => times.get(number) ?? 0n
}
