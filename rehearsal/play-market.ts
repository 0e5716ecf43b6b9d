import {
  type Address,
  encodeFunctionData,
  formatUnits,
  type Hex,
  numberToHex,
  type PublicClient,
  prepareEncodeFunctionData,
} from 'viem'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { ACCOUNTS, devnetAccounts } from '../devnet/accounts.ts'
import { type Anvil, type RpcCall, rpc, startAnvil } from '../devnet/anvil.ts'
import type { Deployment } from '../devnet/deployment.ts'
import type { Market } from '../devnet/market-maker.ts'
import { type PoolState, readPoolStates, storageParams, swappedTo } from '../devnet/pool-state.ts'
import { seed } from '../devnet/seed.ts'
import { usd } from '../devnet/seed-config.ts'
import { connect } from '../devnet/sender.ts'
import { sqrtPriceX96 } from '../devnet/uniswap.ts'
import { startEmptyChain } from './empty-chain.ts'
import { type NodeSocket, openNodeSocket } from './node-socket.ts'
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
  /** The part of the market that is played, from 0 to 1; absent of one without an end. */
  partDone?(): number
  /** Reads the newest block. */
  head(): Promise<Block>
  /** The time on the chain of the next step that ends a bar; of the last step if none does. */
  nextBar(): number
  /**
   * Moves clock, oracle and pools to the next step together, in one block. On a recorded day whose next step is after
   * `until`, only the clock moves, to `until`. With `isUndisturbed`, nobody has made a block since the last step.
   */
  playStep(options?: { until?: number; isUndisturbed?: boolean }): Promise<void>
  stop(): Promise<void>
}

/**
 * `prices` are US dollars by symbol, `posted` the same with 8 decimals by token, and `head` is the block of the last
 * step.
 */
type Now = {
  step: number
  time: number
  endsBar: boolean
  isOver: boolean
  keeperActs: boolean
  prices: Record<string, string>
  posted: ReadonlyMap<Address, bigint>
  head: Block
}
export type Block = { number: number; timestamp: number }

const DAY = 86_400
/** After 28 years the calendar has the same weekdays and daylight saving time again. */
const CALENDAR_CYCLE = 28 * 365.25 * DAY
/** A larger move is posted by the oracle's other role, which has no bound. */
const MAX_UPDATE_BPS = 1_900n
const POST_GAS = 5_000_000

/**
 * Starts the embedded chain with the tape's tokens, at the prices of its first step. Its clock moves with the steps,
 * and by a second with each other transaction. `isRead` says whether anybody reads it between steps.
 */
export async function startMarket(
  tape: Tape,
  { chainId, baseUrl, isRead }: { chainId: number; baseUrl: string; isRead?: boolean },
): Promise<EmbeddedMarket> {
  const first = tape.steps[0] as Step
  const shift = shiftFor(first.time)
  const startsAt = first.time + shift - DAY
  const below = await startEmptyChain(chainId, startsAt)
  const anvil = await startAnvil({ chainId, accounts: ACCOUNTS, startsAt, mines: false, after: below.url, isRead })
  const stop = () => anvil.stop().finally(below.stop)
  try {
    // Times follow the number of blocks, not this machine's clock.
    await rpc(anvil.rpcUrl, 'anvil_setBlockTimestampInterval', [1])
    const prices = new Map([...first.prices].map(([symbol, price]) => [symbol, usdText(price)]))
    const venue = tape.venue === undefined ? venueOfPrices(prices) : venueOf(tape.venue, prices)
    const player = await openPlayer(anvil, venue, {
      baseUrl,
      hold: () => rpc(anvil.rpcUrl, 'evm_setAutomine', [false]),
      release: () => rpc(anvil.rpcUrl, 'evm_setAutomine', [true]),
      minesAtOnce: true,
    })
    await player.release()
    if (tape.liquidity !== undefined) await setLiquidity(player, tape.liquidity)
    let last = 0
    let time = first.time + shift
    let isBetweenSteps = false
    const play = (step: PlayedStep, isUndisturbed?: boolean) => {
      const following = step === tape.steps[last + 1] ? tape.steps[last + 2] : undefined
      const next = following && { step: following, time: following.time + shift }
      return playStep(player, step, { time, shift, isUndisturbed, next })
    }
    await play(first)
    return {
      deployment: player.deployment,
      shift,
      now() {
        const { endsBar, keeperActs = true } = isBetweenSteps
          ? { endsBar: true, keeperActs: false }
          : (tape.steps[last] ?? first)
        const isOver = last === tape.steps.length - 1
        return { step: last, time, endsBar, isOver, keeperActs, ...pricesNow(player) }
      },
      partDone: () => last / (tape.steps.length - 1),
      nextBar() {
        let next = Math.min(last + 1, tape.steps.length - 1)
        while (next < tape.steps.length - 1 && !tape.steps[next]?.endsBar) next++
        return (tape.steps[next]?.time ?? 0) + shift
      },
      async playStep({ until = Number.POSITIVE_INFINITY, isUndisturbed } = {}) {
        const step = tape.steps[last + 1]
        if (step === undefined) return
        isBetweenSteps = tape.liquidity !== undefined && step.time + shift > until
        time = isBetweenSteps ? Math.max(time, until) : step.time + shift
        if (!isBetweenSteps) {
          await play(step, isUndisturbed)
          last++
        } else if ((await readHead(player.socket)).timestamp < time) await play(NOTHING)
      },
      head: () => readHead(player.socket),
      stop() {
        player.socket.close()
        return stop()
      },
    }
  } catch (error) {
    await stop()
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
const usdTexts = (prices: ReadonlyMap<string, bigint>): Record<string, string> =>
  Object.fromEntries([...prices].map(([symbol, price]) => [symbol, usdText(price)]))

export const pricesNow = ({
  prices,
  played,
  deployment: { tokens },
}: Player): Pick<Now, 'prices' | 'posted' | 'head'> => ({
  prices: usdTexts(prices),
  head: played.head,
  posted: new Map([...prices].flatMap(([symbol, price]) => (tokens[symbol] ? [[tokens[symbol], price] as const] : []))),
})

/** What plays a step. `hold` stops what else makes blocks, until `release`. */
export type Player = {
  client: PublicClient
  deployment: Deployment
  markets: Market[]
  hold(): Promise<unknown>
  release(): Promise<unknown>
  socket: NodeSocket
  /** Whether each transaction gets a block at once, unless blocks are held. */
  minesAtOnce: boolean
  /** The last price of each symbol, in USD with 8 decimals. */
  prices: Map<string, bigint>
  /** The head and the pools as the last step left them, by symbol. */
  played: { head: Block; pools: Map<string, PoolState> }
  /** What the step after that sends if nobody makes a block before. */
  planned?: Plan | undefined
}

/** Deploys and seeds everything on a fresh chain. */
export async function openPlayer(
  { rpcUrl, chainId }: Anvil,
  venue: SeedVenue,
  { baseUrl, ...mining }: Pick<Player, 'hold' | 'release' | 'minesAtOnce'> & { baseUrl: string },
): Promise<Player> {
  const client = connect(rpcUrl, chainId)
  const accounts = devnetAccounts()
  const { contracts, vaults, tokens, markets } = await seed(client, accounts, { venue })
  const deployment: Deployment = { chainId, rpcUrl, baseUrl, contracts, vaults, tokens, accounts }
  const prices = new Map(venue.listings.map(({ symbol, price }) => [symbol, usd(price)]))
  const played = { head: { number: -1, timestamp: 0 }, pools: new Map() }
  // Signing the posts would take longer than executing them.
  for (const { address } of [accounts.priceSetter, accounts.admin])
    await rpc(rpcUrl, 'anvil_impersonateAccount', [address])
  const socket = await openNodeSocket(rpcUrl)
  return { client, deployment, markets, prices, played, socket, ...mining }
}

type Transaction = { from: Address; to: Address; data: Hex; gas: number }

type PlayedStep = Pick<Step, 'prices' | 'pools' | 'actions'>

/** What a step sends to the node, computed from how the step before left the chain, and how it leaves it. */
type Plan = {
  step: PlayedStep
  time: number
  prices: Map<string, bigint>
  /** Moves the pools and the clock. */
  writes: RpcCall[]
  transactions: object[]
  played: Player['played']
}

/**
 * Posts the prices of a step, announces its corporate actions and moves the pools to the prices, in one block at a time
 * or a second after the head. `shift` is how far that is ahead of the tape's, in seconds. With `isUndisturbed`, nobody
 * has made a block since the last step. What probably comes `next` is computed while the node works. Throws if a post
 * or an announcement reverts.
 */
export async function playStep(
  player: Player,
  step: PlayedStep,
  {
    time,
    shift = 0,
    isUndisturbed = false,
    next,
  }: {
    time: number
    shift?: number
    isUndisturbed?: boolean | undefined
    next?: { step: PlayedStep; time: number } | undefined
  },
): Promise<void> {
  const { played, planned, socket } = player
  if (!player.minesAtOnce) await player.hold()
  const head = isUndisturbed ? played.head : await readHead(socket)
  const isAsPlayed = head.number === played.head.number
  const isPlanned = isAsPlayed && planned?.step === step && planned.time === time
  // Without a block since the last step, the pools are where that left them.
  const plan = isPlanned
    ? planned
    : planStep(player, step, { time, shift }, { head, pools: isAsPlayed ? played.pools : await readPools(player) })
  const isQuick = player.minesAtOnce && plan.transactions.length === 1
  const sent = isQuick ? sendAtOnce(player, plan) : mineTogether(player, plan)
  player.prices = plan.prices
  player.planned = next && planStep(player, next.step, { time: next.time, shift }, plan.played)
  if ((await sent).some(receipt => receipt?.status !== '0x1'))
    throw new Error(`The chain did not take the prices ${JSON.stringify(usdTexts(step.prices))}.`)
  player.played = plan.played
}

/** Computes what a step sends to the node after the state that another one has left. */
function planStep(
  { deployment, markets, prices: before }: Player,
  step: PlayedStep,
  { time, shift }: { time: number; shift: number },
  { head, pools }: Player['played'],
): Plan {
  const prices = new Map([...before, ...step.prices])
  const timestamp = Math.max(time, head.timestamp + 1)
  const moved = new Map(pools)
  const writes = markets.flatMap(market => {
    const state = pools.get(market.symbol)
    const price = prices.get(market.symbol) ?? 0n
    const target = step.pools === undefined ? sqrtPriceX96(market, price) : step.pools.get(market.symbol)
    if (state === undefined || target === undefined || state.sqrtPriceX96 === target) return []
    const swapped = swappedTo(market.pool, state, target, timestamp)
    moved.set(market.symbol, swapped.state)
    return swapped.writes.map((write): RpcCall => ['anvil_setStorageAt', storageParams(write)])
  })
  const announced = actionTransactions(deployment, step.actions ?? [], { time: timestamp, shift })
  return {
    step,
    time,
    prices,
    writes: [...writes, ['evm_setNextBlockTimestamp', [numberToHex(timestamp)]]],
    transactions: [...announced, ...postsOf(deployment, step, before)].map(toParams),
    played: { head: { number: head.number + 1, timestamp }, pools: moved },
  }
}

type Receipt = { status: Hex } | null

/** Sends one transaction, which gets a block at once, and returns its receipt. */
const sendAtOnce = async ({ socket }: Player, { writes, transactions }: Plan): Promise<Receipt[]> =>
  (await socket.send<Receipt>([...writes, ['eth_sendTransactionSync', transactions]])).slice(-1)

/** Puts transactions into one block, which may be empty, and returns their receipts. Blocks are held until then. */
async function mineTogether(player: Player, { writes, transactions }: Plan): Promise<Receipt[]> {
  const { socket } = player
  await player.hold()
  const sent = await socket.send<Hex>([
    ...writes,
    ...transactions.map((transaction): RpcCall => ['eth_sendTransaction', [transaction]]),
  ])
  await socket.send([['evm_mine', []]])
  const hashes = sent.slice(writes.length)
  const [receipts] = await Promise.all([
    hashes.length === 0
      ? []
      : socket.send<Receipt>(hashes.map((hash): RpcCall => ['eth_getTransactionReceipt', [hash]])),
    player.release(),
  ])
  return receipts
}

const toParams = ({ gas, ...transaction }: Transaction) => ({
  ...transaction,
  gas: numberToHex(gas),
  maxFeePerGas: numberToHex(10n ** 13n),
})

// Prepared once, because a selector is a hash.
const setPrices = prepareEncodeFunctionData({ abi: priceOracleAbi, functionName: 'setPrices' })
const forcePrice = prepareEncodeFunctionData({ abi: priceOracleAbi, functionName: 'forcePrice' })

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
    const data = encodeFunctionData({ ...forcePrice, args: [tokens[symbol] as Address, price] })
    return { from: admin.address, to, data, gas: POST_GAS }
  })
  const gradual = [...step.prices].filter(each => !isLarge(each))
  if (gradual.length === 0) return forced
  const args = [gradual.map(([symbol]) => tokens[symbol] as Address), gradual.map(([, price]) => price)] as const
  const data = encodeFunctionData({ ...setPrices, args })
  return [...forced, { from: priceSetter.address, to, data, gas: POST_GAS }]
}

/** Reads the pools, by symbol. */
async function readPools({ socket, markets }: Player): Promise<Map<string, PoolState>> {
  const states = await readPoolStates(
    markets.map(({ pool }) => pool),
    slots =>
      socket
        .send<Hex>(
          slots.map(({ address, slot }): RpcCall => ['eth_getStorageAt', [address, numberToHex(slot), 'latest']]),
        )
        .then(words => words.map(BigInt)),
  )
  return new Map(markets.map(({ symbol }, index) => [symbol, states[index] as PoolState]))
}

export async function readHead(socket: NodeSocket): Promise<Block> {
  const [block] = await socket.send<Record<keyof Block, Hex>>([['eth_getBlockByNumber', ['latest', false]]])
  if (block === undefined) throw new Error('The node has no newest block.')
  return { number: Number(block.number), timestamp: Number(block.timestamp) }
}
