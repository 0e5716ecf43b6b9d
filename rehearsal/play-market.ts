import { type Address, encodeFunctionData, formatUnits, type Hex, numberToHex, type PublicClient } from 'viem'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { swapRouterAbi } from '../contracts-abi/swap-router.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { ACCOUNTS, devnetAccounts } from '../devnet/accounts.ts'
import { type Anvil, rpc, startAnvil } from '../devnet/anvil.ts'
import type { Deployment } from '../devnet/deployment.ts'
import { type Market, swapTo } from '../devnet/market-maker.ts'
import { seed } from '../devnet/seed.ts'
import { usd } from '../devnet/seed-config.ts'
import { connect } from '../devnet/sender.ts'
import { sqrtPriceX96 } from '../devnet/uniswap.ts'
import { actionTransactions } from './play-actions.ts'
import { type SeedVenue, venueOf, venueOfPrices } from './seed-venue.ts'
import type { Step, Tape } from './tape.ts'

/** The embedded chain with a market on it. */
export type EmbeddedMarket = {
  deployment: Deployment
  /** How far the chain's times are ahead of the market's, in seconds. */
  shift: number
  /**
   * The last step: its index, its time on the chain in Unix seconds, whether it ends a bar and the market, and what the
   * keeper does.
   */
  now(): Now
  /** Reads the newest block. */
  head(): Promise<Block>
  /** The time on the chain of the next step that ends a bar; of the last step if none does. */
  nextBar(): number
  /**
   * Moves clock, oracle and pools to the next step together, in one block. On a recorded day whose next step is after
   * `until`, only the clock moves, to `until`.
   */
  playStep(until?: number): Promise<void>
  stop(): Promise<void>
}

/** `prices` are US dollars by symbol. */
type Now = {
  step: number
  time: number
  endsBar: boolean
  isOver: boolean
  keeperActs: boolean
  prices: Record<string, string>
}
type Block = { number: number; timestamp: number }

const DAY = 86_400
/** After 28 years the calendar has the same weekdays and daylight saving time again. */
const CALENDAR_CYCLE = 28 * 365.25 * DAY
/** A larger move is posted by the oracle's other role, which has no bound. */
const MAX_UPDATE_BPS = 1_900n
const GAS = { post: 5_000_000, swaps: 40_000_000 }

/**
 * Starts the embedded chain with the tape's tokens, at the prices of its first step. Its clock moves with the steps,
 * and by a second with each other transaction.
 */
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
    const prices = new Map([...first.prices].map(([symbol, price]) => [symbol, usdText(price)]))
    const venue = tape.venue === undefined ? venueOfPrices(prices) : venueOf(tape.venue, prices)
    const player = await openPlayer(anvil, venue, {
      baseUrl,
      hold: () => rpc(anvil.rpcUrl, 'evm_setAutomine', [false]),
      release: () => rpc(anvil.rpcUrl, 'evm_setAutomine', [true]),
    })
    if (tape.liquidity !== undefined) await setLiquidity(player, tape.liquidity)
    let last = 0
    let time = first.time + shift
    let isBetweenSteps = false
    const play = (step: PlayedStep) => playStep(player, step, { time, shift })
    await play(first)
    return {
      deployment: player.deployment,
      shift,
      now() {
        const { endsBar, keeperActs = true } = isBetweenSteps
          ? { endsBar: true, keeperActs: false }
          : (tape.steps[last] ?? first)
        const isOver = last === tape.steps.length - 1
        return { step: last, time, endsBar, isOver, keeperActs, prices: usdTexts(player.prices) }
      },
      nextBar() {
        let next = Math.min(last + 1, tape.steps.length - 1)
        while (next < tape.steps.length - 1 && !tape.steps[next]?.endsBar) next++
        return (tape.steps[next]?.time ?? 0) + shift
      },
      async playStep(until = Number.POSITIVE_INFINITY) {
        const step = tape.steps[last + 1]
        if (step === undefined) return
        isBetweenSteps = tape.liquidity !== undefined && step.time + shift > until
        time = isBetweenSteps ? Math.max(time, until) : step.time + shift
        if (!isBetweenSteps) {
          await play(step)
          last++
        } else if ((await readHead(anvil.rpcUrl)).timestamp < time) await play(NOTHING)
      },
      head: () => readHead(anvil.rpcUrl),
      stop: anvil.stop,
    }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

const NOTHING = { prices: new Map<string, bigint>(), pools: new Map<string, bigint>() }
/** The storage slot of a pool's liquidity (UniswapV3Pool.sol). */
const LIQUIDITY_SLOT = 4n

/** Gives pools exactly the liquidity that they had: fills depend on each unit of it. */
async function setLiquidity({ deployment, markets }: Player, liquidity: ReadonlyMap<string, bigint>): Promise<void> {
  for (const { symbol, pool } of markets) {
    const units = liquidity.get(symbol)
    if (units === undefined) continue
    const slot = [LIQUIDITY_SLOT, units].map(value => numberToHex(value, { size: 32 }))
    await rpc(deployment.rpcUrl, 'anvil_setStorageAt', [pool, ...slot])
  }
}

/**
 * Returns by how much a tape is played later: clients and payments expect a chain whose clock is not behind the
 * machine's.
 */
function shiftFor(time: number): number {
  const now = Date.now() / 1000
  return time > now + DAY ? 0 : CALENDAR_CYCLE * Math.ceil((now + DAY - time) / CALENDAR_CYCLE)
}

const usdText = (price: bigint) => formatUnits(price, 8)
export const usdTexts = (prices: ReadonlyMap<string, bigint>): Record<string, string> =>
  Object.fromEntries([...prices].map(([symbol, price]) => [symbol, usdText(price)]))

/** What plays a step. `hold` stops what else makes blocks, until `release`. */
export type Player = {
  client: PublicClient
  deployment: Deployment
  markets: Market[]
  hold(): Promise<unknown>
  release(): Promise<unknown>
  /** The last price of each symbol, in USD with 8 decimals. */
  prices: Map<string, bigint>
  /** The block of the last step, and where it left the pools, as square roots of prices in Q64.96 by symbol. */
  played: { block: number; pools: Map<string, bigint> }
}

/** Deploys and seeds everything on a fresh chain. */
export async function openPlayer(
  { rpcUrl, chainId }: Anvil,
  venue: SeedVenue,
  { baseUrl, ...mining }: Pick<Player, 'hold' | 'release'> & { baseUrl: string },
): Promise<Player> {
  const client = connect(rpcUrl, chainId)
  const accounts = devnetAccounts()
  const { contracts, vaults, tokens, markets } = await seed(client, accounts, { venue })
  const deployment: Deployment = { chainId, rpcUrl, baseUrl, contracts, vaults, tokens, accounts }
  const prices = new Map(venue.listings.map(({ symbol, price }) => [symbol, usd(price)]))
  return { client, deployment, markets, prices, played: { block: -1, pools: new Map() }, ...mining }
}

type Transaction = { from: Address; to: Address; data: Hex; gas: number }

type PlayedStep = Pick<Step, 'prices' | 'pools' | 'actions'>

/**
 * Posts the prices of a step, announces its corporate actions and trades the pools to them, in one block. Without a
 * time it has the chain's; `shift` is how far that is ahead of the tape's, in seconds. Throws if one of it reverts.
 */
export async function playStep(
  player: Player,
  step: PlayedStep,
  { time, shift = 0 }: { time?: number | undefined; shift?: number } = {},
): Promise<void> {
  const { deployment, prices, played } = player
  const { rpcUrl } = deployment
  const posts = postsOf(deployment, step, prices)
  for (const [symbol, price] of step.prices) prices.set(symbol, price)
  await player.hold()
  const head = await readHead(rpcUrl)
  // Without a block since the last step, the pools are where that left them.
  const pools = head.number === played.block ? played.pools : await readPools(player)
  const targetOf = (market: Market) =>
    step.pools === undefined ? sqrtPriceX96(market, prices.get(market.symbol) ?? 0n) : step.pools.get(market.symbol)
  const hashes: Hex[] = []
  const at = { time: Math.max(time ?? 0, head.timestamp + 1), shift }
  const announced = actionTransactions(deployment, step.actions ?? [], at)
  for (const { gas, ...transaction } of [...announced, ...posts, ...swapsTo(targetOf, pools, player)]) {
    const fees = { gas: numberToHex(gas), maxFeePerGas: numberToHex(10n ** 13n) }
    hashes.push(await rpc<Hex>(rpcUrl, 'eth_sendTransaction', [{ ...transaction, ...fees }]))
  }
  if (time !== undefined) await rpc(rpcUrl, 'evm_setNextBlockTimestamp', [numberToHex(at.time)])
  await rpc(rpcUrl, 'evm_mine', [])
  const receipts = await Promise.all([
    ...hashes.map(hash => rpc<{ status: Hex } | null>(rpcUrl, 'eth_getTransactionReceipt', [hash])),
    player.release().then(() => ({ status: '0x1' })),
  ])
  if (receipts.some(receipt => receipt?.status !== '0x1'))
    throw new Error(`The chain did not take the prices ${JSON.stringify(usdTexts(step.prices))}.`)
  player.played = { block: head.number + 1, pools }
}

/** Returns the oracle's posts of a step: moves beyond its bound by the role that has none, one by one. */
function postsOf(
  { accounts, contracts, tokens }: Deployment,
  step: Pick<Step, 'prices'>,
  before: Player['prices'],
): Transaction[] {
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
  const gradual = [...step.prices].filter(each => !isLarge(each))
  if (gradual.length === 0) return forced
  const args = [gradual.map(([symbol]) => tokens[symbol] as Address), gradual.map(([, price]) => price)] as const
  const data = encodeFunctionData({ abi: priceOracleAbi, functionName: 'setPrices', args })
  return [...forced, { from: priceSetter.address, to, data, gas: GAS.post }]
}

/**
 * Returns the transaction that brings every pool to its target, if one has another and is elsewhere; `pools` become the
 * targets.
 */
function swapsTo(
  targetOf: (market: Market) => bigint | undefined,
  pools: Map<string, bigint>,
  { deployment: { accounts, contracts }, markets }: Player,
): Transaction[] {
  const { address: recipient } = accounts.marketMaker
  const swaps = markets.flatMap(market => {
    const current = pools.get(market.symbol) ?? 0n
    const target = targetOf(market)
    if (target === undefined || current === target) return []
    pools.set(market.symbol, target)
    return [swapTo(market, { current, target, recipient })]
  })
  if (swaps.length === 0) return []
  const data = encodeFunctionData({ abi: swapRouterAbi, functionName: 'multicall', args: [swaps] })
  return [{ from: recipient, to: contracts.SwapRouter as Address, data, gas: GAS.swaps }]
}

/** Reads where the pools are, as square roots of prices in Q64.96 by symbol. */
async function readPools({ client, markets }: Player): Promise<Map<string, bigint>> {
  const slots = await client.multicall({
    batchSize: 0,
    allowFailure: false,
    contracts: markets.map(({ pool }) => ({ address: pool, abi: uniswapV3PoolAbi, functionName: 'slot0' }) as const),
  })
  return new Map(markets.map(({ symbol }, index) => [symbol, slots[index]?.[0] ?? 0n]))
}

export async function readHead(rpcUrl: string): Promise<Block> {
  const block = await rpc<Record<keyof Block, Hex>>(rpcUrl, 'eth_getBlockByNumber', ['latest', false])
  return { number: Number(block.number), timestamp: Number(block.timestamp) }
}
