import { type Address, decodeEventLog, type Hex, hexToBigInt, numberToHex, toEventSelector } from 'viem'
import { getHttpRpcClient } from 'viem/utils'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { refuse } from '../errors.ts'
import { type Block, maybe, read, type TradingChain, unreachable } from './client.ts'
import { agentCalls, toAgent } from './registry.ts'
import { newestLogs, type Place, type TradeLog } from './trade-logs.ts'
import type { ExitRule } from './typed-data.ts'

/** The kinds of trade records; a PositionClosed stands beside the sale that closed the position. */
export const TRADE_TYPES = [
  'PositionOpened',
  'PositionIncreased',
  'PositionReduced',
  'PositionClosed',
  'ExitLadderUpdated',
  'ExitExecuted',
  'PositionForceClosed',
] as const
export type TradeType = (typeof TRADE_TYPES)[number]

/** Who caused a trade: the agent's signed intent, a rule that fired, or the operator. */
export const TRADE_SOURCES = ['intent', 'automation', 'operator'] as const
export type TradeSource = (typeof TRADE_SOURCES)[number]

/** What the events of one trade say; an absent fact is undefined. */
export type Trade = Place & {
  type: TradeType
  source: TradeSource
  positionId: bigint
  token: Address
  vault: Address
  /** USDC base units that the vault paid, or got: of an exit what is left after the keeper's bounty. */
  usdcAmount?: bigint
  /** The token's base units that were bought or sold. */
  tokenAmount?: bigint
  /** USDC base units for one whole token, from the two amounts. */
  priceUsdc?: bigint
  /** Of a sale its proceeds less the cost basis that it released, of a PositionClosed that of the whole position. */
  realizedPnlUsdc?: bigint
  exitBps?: number
  /** Where the rule that fired stands in the ladder, and the rule. */
  ruleIndex?: number
  rule?: ExitRule
  transactionHash: Hex
  /** Unix seconds. */
  timestamp: bigint
}

export type TradeQuery = {
  agentId: bigint
  limit: number
  /** Only what is older than this. */
  before?: Place | undefined
  type?: TradeType | undefined
  token?: Address | undefined
  positionId?: bigint | undefined
}

/**
 * Reads an agent's trades, newest first, at most `limit`, complete to the block that is answered. `next` is the place
 * before which there may be more; a page can be short of its limit and have one, where the node gives few blocks at a
 * time. Throws AGENT_NOT_FOUND or CHAIN_UNREACHABLE.
 */
export async function getTrades(
  chain: TradingChain,
  query: TradeQuery,
): Promise<{ block: Block; trades: Trade[]; next: Place | undefined }> {
  const { agentId, limit } = query
  const { block, results } = await read(chain, agentCalls(chain, agentId))
  if (toAgent(results[0], results[1]) === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  const positions = new Map<bigint, TradedPosition>()
  const { events, next } = await findEvents(chain, query, block.number, positions)
  const page = events.slice(0, limit)
  const [, timeOf] = await Promise.all([learnPositions(chain, page, positions), timesOf(chain, page)])
  const decimalsOf = await readDecimals(chain, [...positions.values()])
  const trades = page.map(event => {
    const position = known(positions, event)
    return toTrade(event, position, { decimals: decimalsOf(position.token), timestamp: timeOf(event.log.blockNumber) })
  })
  return { block, trades, next }
}

// ---

// The router's event is the record; the position manager's event of the same change completes it.
const routerEvents = {
  PositionOpenedFromIntent: { type: 'PositionOpened', source: 'intent', change: 'PositionOpened' },
  PositionIncreasedFromIntent: { type: 'PositionIncreased', source: 'intent', change: 'PositionIncreased' },
  PositionReducedFromIntent: { type: 'PositionReduced', source: 'intent', change: 'PositionReduced' },
  PositionExitLadderUpdatedFromIntent: { type: 'ExitLadderUpdated', source: 'intent', change: undefined },
  ExitExecuted: { type: 'ExitExecuted', source: 'automation', change: 'PositionLadderExitApplied' },
  PositionForceClosed: { type: 'PositionForceClosed', source: 'operator', change: 'PositionReduced' },
} as const
const CLOSED = 'PositionClosed'
type RouterEvent = keyof typeof routerEvents
type ChangeEvent = NonNullable<(typeof routerEvents)[RouterEvent]['change']> | typeof CLOSED
const SALES: readonly RouterEvent[] = ['PositionReducedFromIntent', 'ExitExecuted', 'PositionForceClosed']

const eventsAbi = [...tradeRouterAbi, ...positionManagerAbi] as const
const selectorOf = (name: RouterEvent | ChangeEvent) =>
  toEventSelector(eventsAbi.find(item => item.type === 'event' && item.name === name) as never)
const changes = ['PositionOpened', 'PositionIncreased', 'PositionReduced', 'PositionLadderExitApplied', CLOSED] as const
const selectors = new Map<RouterEvent | ChangeEvent, Hex>(
  [...(Object.keys(routerEvents) as RouterEvent[]), ...changes].map(name => [name, selectorOf(name)]),
)
const nameOf = new Map([...selectors].map(([name, selector]) => [selector, name]))

/** The events from which the records of a type are made, with those that tell them apart; all of them without a type. */
function eventsOf(type: TradeType | undefined): (RouterEvent | ChangeEvent)[] {
  if (type === undefined) return [...selectors.keys()]
  if (type === CLOSED) return [CLOSED, ...SALES]
  const names = Object.keys(routerEvents) as RouterEvent[]
  const change = names.map(name => routerEvents[name]).find(event => event.type === type)?.change
  return [
    ...names.filter(name => routerEvents[name].type === type || (change && routerEvents[name].change === change)),
    ...(change ? [change] : []),
  ]
}

type TradeEvent = {
  type: TradeType
  source: TradeSource
  positionId: bigint
  log: TradeLog
  change: TradeLog | undefined
}

/**
 * Puts the logs of whole blocks together, newest first. One transaction may change a position more than once, as a
 * batch of exits does: the first event of the router belongs to the first of the position manager, and so on.
 */
function toEvents(logs: readonly TradeLog[]): TradeEvent[] {
  const ordered = logs
    .flatMap(log => {
      const name = nameOf.get(log.topics[0] ?? '0x')
      return name === undefined ? [] : [{ name, log, at: `${log.transactionHash} ${log.topics[1]}` }]
    })
    .sort((a, b) => comparePlaces(a.log, b.log))
  const changesAt = Map.groupBy(ordered, ({ name, at }) => `${at} ${name}`)
  const closedBy = new Map<string, TradeSource>()
  for (const { name, at } of ordered)
    if (SALES.includes(name as RouterEvent)) closedBy.set(at, routerEvents[name as RouterEvent].source)
  return ordered
    .flatMap(({ name, log, at }): TradeEvent[] => {
      const positionId = hexToBigInt(log.topics[1] ?? '0x0')
      const source = closedBy.get(at)
      if (name === CLOSED) return source ? [{ type: CLOSED, source, positionId, log, change: undefined }] : []
      if (!(name in routerEvents)) return []
      const { change, ...event } = routerEvents[name as RouterEvent]
      return [{ ...event, positionId, log, change: changesAt.get(`${at} ${change}`)?.shift()?.log }]
    })
    .reverse()
}

function comparePlaces(a: Place, b: Place): number {
  if (a.blockNumber !== b.blockNumber) return a.blockNumber < b.blockNumber ? -1 : 1
  return a.logIndex - b.logIndex
}

/** What the two events of a trade say beside where they are. */
function factsOf({ log, change }: TradeEvent): Partial<Trade> {
  const { eventName, args } = decode(log)
  const changed = change && decode(change)
  switch (eventName) {
    case 'PositionOpenedFromIntent':
      return {
        usdcAmount: args.usdcIn,
        ...(changed?.eventName === 'PositionOpened' && {
          tokenAmount: changed.args.tokenAmount,
          priceUsdc: changed.args.entryPriceUsdc,
        }),
      }
    case 'PositionIncreasedFromIntent':
      return { usdcAmount: args.usdcIn, tokenAmount: args.tokensAdded }
    case 'PositionReducedFromIntent':
      return { ...saleOf(changed, args.usdcOut), exitBps: args.exitBps }
    case 'ExitExecuted':
      return { ...saleOf(changed, args.usdcOut), ruleIndex: args.ruleIndex }
    case 'PositionForceClosed':
      return { ...saleOf(changed, args.usdcOut), exitBps: 10_000 }
    case 'PositionClosed':
      return { realizedPnlUsdc: args.realizedPnlUsdc }
    default:
      return {}
  }
}

const decode = ({ topics, data }: TradeLog) =>
  decodeEventLog({ abi: eventsAbi, topics: topics as [Hex, ...Hex[]], data })

function saleOf(changed: ReturnType<typeof decode> | undefined, usdcAmount: bigint): Partial<Trade> {
  if (changed?.eventName !== 'PositionReduced' && changed?.eventName !== 'PositionLadderExitApplied')
    return { usdcAmount }
  const { tokenSold, usdcReleased } = changed.args
  return { usdcAmount, tokenAmount: tokenSold, realizedPnlUsdc: usdcAmount - usdcReleased }
}

function toTrade(
  event: TradeEvent,
  { token, vault, exitRules }: TradedPosition,
  { decimals, timestamp }: { decimals: number | undefined; timestamp: bigint },
): Trade {
  const { type, source, positionId, log } = event
  const { blockNumber, logIndex, transactionHash } = log
  const facts = factsOf(event)
  const { usdcAmount, tokenAmount, ruleIndex } = facts
  // Rules that have fired keep their place, so the ladder of today names them.
  const rule = ruleIndex === undefined ? undefined : exitRules[ruleIndex]
  const priceUsdc =
    usdcAmount !== undefined && tokenAmount && decimals !== undefined
      ? (usdcAmount * 10n ** BigInt(decimals)) / tokenAmount
      : undefined
  return {
    type,
    source,
    positionId,
    token,
    vault,
    transactionHash,
    blockNumber,
    logIndex,
    timestamp,
    ...(priceUsdc !== undefined && { priceUsdc }),
    ...(rule !== undefined && { rule, exitBps: rule.exitBps }),
    ...facts,
  }
}

// ---

/** The newest events that the query asks for, at least one more than its limit where there are so many. */
async function findEvents(
  chain: TradingChain,
  { agentId, limit, before, type, token, positionId }: TradeQuery,
  head: bigint,
  positions: Map<bigint, TradedPosition>,
): Promise<{ events: TradeEvent[]; next: Place | undefined }> {
  const topics = [
    eventsOf(type).map(name => selectors.get(name) ?? '0x'),
    positionId === undefined ? null : numberToHex(positionId, { size: 32 }),
    numberToHex(agentId, { size: 32 }),
  ]
  const newest = before === undefined ? head : before.blockNumber - (before.logIndex === 0 ? 1n : 0n)
  const toBlock = newest < head ? newest : head
  let readFrom = toBlock + 1n
  const events: TradeEvent[] = []
  for await (const { logs, fromBlock } of newestLogs(chain, topics, { fromBlock: chain.startBlock, toBlock })) {
    const found = toEvents(logs).filter(
      event => (type === undefined || event.type === type) && (!before || comparePlaces(event.log, before) < 0),
    )
    if (token !== undefined) await learnPositions(chain, found, positions)
    events.push(...(token === undefined ? found : found.filter(event => known(positions, event).token === token)))
    readFrom = fromBlock
    if (events.length >= limit) break
  }
  if (events.length > limit) return { events, next: events[limit - 1]?.log }
  return { events, next: readFrom > chain.startBlock ? { blockNumber: readFrom, logIndex: 0 } : undefined }
}

/** What the events do not say of a position. None of it changes, except for rules that have not fired. */
type TradedPosition = { token: Address; vault: Address; exitRules: readonly ExitRule[] }
/** Positions of one `eth_call`: a page stays far below the gas that nodes give a call. */
const PAGE = 150

/** Reads the positions of the events that are not known yet. */
async function learnPositions(
  chain: TradingChain,
  events: readonly TradeEvent[],
  positions: Map<bigint, TradedPosition>,
): Promise<void> {
  const manager = { address: chain.trading.PositionManager, abi: positionManagerAbi } as const
  const ids = [...new Set(events.map(({ positionId }) => positionId))].filter(id => !positions.has(id))
  for (let from = 0; from < ids.length; from += PAGE) {
    const page = ids.slice(from, from + PAGE)
    const { results } = await read(
      chain,
      page.flatMap(id => [
        { ...manager, functionName: 'getPosition', args: [id] } as const,
        { ...manager, functionName: 'getExitRules', args: [id] } as const,
      ]),
    )
    for (const [index, id] of page.entries()) {
      const record = maybe(results[2 * index] as never) as { token: Address; vault: Address } | undefined
      const exitRules = maybe(results[2 * index + 1] as never) as readonly ExitRule[] | undefined
      if (record && exitRules) positions.set(id, { token: record.token, vault: record.vault, exitRules })
    }
  }
}

function known(positions: Map<bigint, TradedPosition>, { positionId }: TradeEvent): TradedPosition {
  const position = positions.get(positionId)
  if (position === undefined) throw unreachable(new Error(`the node has events of position ${positionId}, and not it`))
  return position
}

/** Decimals of tokens that were traded; they never change. */
const learned = new WeakMap<object, Map<Address, number>>()

async function readDecimals(
  chain: TradingChain,
  positions: readonly TradedPosition[],
): Promise<(token: Address) => number | undefined> {
  const decimals = learned.get(chain.contracts) ?? new Map()
  learned.set(chain.contracts, decimals)
  const missing = [...new Set(positions.map(({ token }) => token))].filter(token => !decimals.has(token))
  if (missing.length > 0) {
    const tokens = { address: chain.contracts.TokenRegistry, abi: tokenRegistryAbi } as const
    const calls = missing.map(token => ({ ...tokens, functionName: 'tokenDecimals', args: [token] }) as const)
    const { results } = await read(chain, calls as readonly unknown[])
    for (const [index, token] of missing.entries()) {
      const value = maybe(results[index] as never) as number | undefined
      if (value !== undefined) decimals.set(token, value)
    }
  }
  return token => decimals.get(token)
}

/** Times of the events' blocks: from the logs, or else from the blocks in one batch, where a node's logs have none. */
async function timesOf({ client }: TradingChain, events: readonly TradeEvent[]): Promise<(block: bigint) => bigint> {
  const times = new Map(events.map(({ log }) => [log.blockNumber, log.blockTimestamp]))
  const missing = [...times].filter(([, time]) => time === undefined).map(([block]) => numberToHex(block))
  const body = missing.map((block, id) => ({ id, method: 'eth_getBlockByNumber', params: [block, false] }))
  let failure: unknown
  for (const url of missing.length > 0 ? (client.chain?.rpcUrls.default.http ?? []) : []) {
    try {
      const answers = await getHttpRpcClient(url).request({ body })
      for (const { result } of answers as { result: { number: Hex; timestamp: Hex } }[])
        times.set(hexToBigInt(result.number), hexToBigInt(result.timestamp))
      break
    } catch (error) {
      failure = error
    }
  }
  if ([...times.values()].includes(undefined)) throw unreachable(failure)
  return block => times.get(block) ?? 0n
}
