import { type Address, type Hex, hexToBigInt, slice } from 'viem'
import { orderBookAbi } from '../../../contracts-abi/order-book.ts'
import { positionManagerAbi } from '../../../contracts-abi/position-manager.ts'
import { tradeRouterAbi } from '../../../contracts-abi/trade-router.ts'
import { decodeEvent, eventTopic } from './decode-event.ts'
import type { ExitRule } from './exit-rule.ts'

/** The position of a log in the chain. */
export type LogPosition = { blockNumber: bigint; logIndex: number }

/** A log of the router, the position manager or an order book. */
export type TradeLog = LogPosition & { topics: readonly Hex[]; data: Hex; transactionHash: Hex }

/** The types of trades. The sale that closes a position has its `positionPnlUsdc`. */
export const TRADE_TYPES = [
  'PositionOpened',
  'PositionIncreased',
  'PositionReduced',
  'ExitLadderUpdated',
  'ExitExecuted',
  'ExitPartlyExecuted',
  'PositionForceClosed',
  'PositionPartlyForceClosed',
  'OwnerCloseExecuted',
] as const
export type TradeType = (typeof TRADE_TYPES)[number]

/**
 * Who caused a trade: the agent's signed intent, its order, a rule that fired, the operator, or the owner who closes
 * the agent.
 */
export const TRADE_SOURCES = ['intent', 'order', 'automation', 'operator', 'owner'] as const
type TradeSource = (typeof TRADE_SOURCES)[number]

/** A trade, from its events. A fact that the events do not contain is undefined. */
export type Trade = LogPosition & {
  type: TradeType
  source: TradeSource
  agentId: bigint
  positionId: bigint
  token: Address
  vault: Address
  /** The `CapitalMode` of the position; absent in a deployment without the extension. */
  capitalMode?: number
  /** USDC base units that the vault paid or received; for an exit, less the keeper's bounty. */
  usdcAmount?: bigint
  /** Tokens bought or sold, in base units. */
  tokenAmount?: bigint
  /** USDC base units per whole token, from the two amounts. */
  priceUsdc?: bigint
  /** A sale's proceeds less the cost basis it released. */
  realizedPnlUsdc?: bigint
  /** Of the sale that closed its position: the PnL of the whole position. */
  positionPnlUsdc?: bigint
  /**
   * What the tokens were worth at the oracle's last price at the end of the block, in USDC base units. No event of the
   * trade has it: it follows from the posts up to that block.
   */
  oracleValueUsdc?: bigint
  exitBps?: number
  /** What the signer of the intent or of the order said about it. It is not on the chain. */
  note?: string
  /** Index in the ladder of the rule that fired. After an ExitPartlyExecuted the rule is pending, and may move. */
  ruleIndex?: number
  /** Undefined for an ExitPartlyExecuted: the ladder of a later block does not show which rule it was. */
  rule?: ExitRule
  transactionHash: Hex
  /** Unix seconds. */
  timestamp: bigint
}

/** The router's event of a trade, and the position manager's event of the same change, which has more facts. */
export type TradeEvent<log extends TradeLog = TradeLog> = {
  type: TradeType
  source: TradeSource
  agentId: bigint
  positionId: bigint
  log: log
  change: log | undefined
  /** The position manager's event that this sale closed the position. */
  closing: log | undefined
  /** Whether the event opened the position on paper. */
  opensSimulated: boolean
}

// The trade of each router event, and the position manager's event of the same change.
const routerEvents = {
  PositionOpenedFromIntent: { type: 'PositionOpened', source: 'intent', change: 'PositionOpened' },
  PositionIncreasedFromIntent: { type: 'PositionIncreased', source: 'intent', change: 'PositionIncreased' },
  PositionReducedFromIntent: { type: 'PositionReduced', source: 'intent', change: 'PositionReduced' },
  PositionExitLadderUpdatedFromIntent: { type: 'ExitLadderUpdated', source: 'intent', change: undefined },
  ExitExecuted: { type: 'ExitExecuted', source: 'automation', change: 'PositionLadderExitApplied' },
  ExitPartlyExecuted: { type: 'ExitPartlyExecuted', source: 'automation', change: 'PositionLadderExitPartlyApplied' },
  PositionForceClosed: { type: 'PositionForceClosed', source: 'operator', change: 'PositionReduced' },
  PositionPartlyForceClosed: { type: 'PositionPartlyForceClosed', source: 'operator', change: 'PositionReduced' },
  OwnerCloseExecuted: { type: 'OwnerCloseExecuted', source: 'owner', change: 'PositionReduced' },
} as const
const CLOSED = 'PositionClosed'
// The order book's, after the router's event of what the order traded.
const ORDERED = 'OrderExecuted'
// Comes with the PositionOpened of a position on paper.
const SIMULATED = 'PositionSimulated'
type RouterEvent = keyof typeof routerEvents
type ChangeEvent = NonNullable<(typeof routerEvents)[RouterEvent]['change']> | typeof CLOSED | typeof SIMULATED
/** Sales that can close a position; partial ones cannot. */
const CLOSING_SALES: readonly RouterEvent[] = [
  'PositionReducedFromIntent',
  'ExitExecuted',
  'PositionForceClosed',
  'OwnerCloseExecuted',
]

const eventsAbi = [...tradeRouterAbi, ...positionManagerAbi] as const
const changes: ChangeEvent[] = [...Object.values(routerEvents).flatMap(({ change }) => change ?? []), CLOSED, SIMULATED]
const topics = new Map<RouterEvent | ChangeEvent | typeof ORDERED, Hex>([
  ...[...(Object.keys(routerEvents) as RouterEvent[]), ...changes].map(
    name => [name, eventTopic(eventsAbi, name)] as const,
  ),
  [ORDERED, eventTopic(orderBookAbi, ORDERED)],
])
const namesByTopic = new Map([...topics].map(([name, topic]) => [topic, name]))

/** First topics of the events that trades consist of. */
export const TRADE_TOPICS: readonly Hex[] = [...topics.values()]

/**
 * Pairs the logs of whole transactions to trades, oldest first. A transaction can change a position more than once (a
 * batch of exits does): the router's first event belongs to the position manager's first one, and so on. Logs of
 * contracts other than the router, the position manager and the order books must not be among them.
 */
export function pairTradeEvents<log extends TradeLog>(logs: readonly log[]): TradeEvent<log>[] {
  const ordered = logs
    .flatMap(log => {
      const name = namesByTopic.get(log.topics[0] ?? '0x')
      if (name === undefined) return []
      const positionId = name === ORDERED ? slice(log.data, 0, 32) : log.topics[1]
      return [{ name, log, key: `${log.transactionHash} ${positionId}` }]
    })
    .sort((a, b) => compareLogPositions(a.log, b.log))
  // `ats` runs this on Node 20, which has no Map.groupBy.
  const changesByKey = new Map<string, typeof ordered>()
  for (const event of ordered) {
    const key = `${event.key} ${event.name}`
    const changes = changesByKey.get(key)
    if (changes) changes.push(event)
    else changesByKey.set(key, [event])
  }
  /** By position and transaction: the closing whose sale follows, because the router emits its event last. */
  const closings = new Map<string, log>()
  const closingOf = (name: RouterEvent, key: string): log | undefined => {
    const closing = CLOSING_SALES.includes(name) ? closings.get(key) : undefined
    if (closing) closings.delete(key)
    return closing
  }
  /** By position and transaction: the last trade of a signed intent or of an order, whose event follows. */
  const lastTrades = new Map<string, TradeEvent<log>>()
  return ordered.flatMap(({ name, log, key }): TradeEvent<log>[] => {
    const ids = { positionId: hexToBigInt(log.topics[1] ?? '0x0'), agentId: hexToBigInt(log.topics[2] ?? '0x0') }
    const opensSimulated = name === 'PositionOpenedFromIntent' && changesByKey.has(`${key} ${SIMULATED}`)
    if (name === CLOSED) closings.set(key, log)
    const last = name === ORDERED ? lastTrades.get(key) : undefined
    if (last) Object.assign(last, { source: 'order' })
    if (!(name in routerEvents)) return []
    const { change, ...event } = routerEvents[name as RouterEvent]
    const changed = changesByKey.get(`${key} ${change}`)?.shift()?.log
    const closing = closingOf(name as RouterEvent, key)
    const trade: TradeEvent<log> = { ...event, ...ids, log, change: changed, closing, opensSimulated }
    if (event.source === 'intent') lastTrades.set(key, trade)
    return [trade]
  })
}

/** Compares by block and log index, for sorting oldest first. */
export function compareLogPositions(a: LogPosition, b: LogPosition): number {
  if (a.blockNumber !== b.blockNumber) return a.blockNumber < b.blockNumber ? -1 : 1
  return a.logIndex - b.logIndex
}

/** Returns the token and vault of a PositionOpened event, which never change; undefined for any other event. */
export function openedPosition({ log }: TradeEvent): { token: Address; vault: Address } | undefined {
  if (log.topics[0] !== topics.get('PositionOpenedFromIntent')) return undefined
  const { eventName, args } = decode(log)
  return eventName === 'PositionOpenedFromIntent' ? { token: args.token, vault: args.vault } : undefined
}

/** Returns the ladder index of the rule that an exit fired; undefined for any other event. */
export function firedRuleIndex({ type, log }: TradeEvent): number | undefined {
  if (type !== 'ExitExecuted') return undefined
  const { eventName, args } = decode(log)
  return eventName === 'ExitExecuted' ? args.ruleIndex : undefined
}

/** Returns the trade of its events, completed with `known` facts that the events do not contain. */
export function buildTrade(
  event: TradeEvent,
  known: {
    token: Address
    vault: Address
    capitalMode: number | undefined
    decimals: number | undefined
    rule: ExitRule | undefined
    timestamp: bigint
  },
): Trade {
  const { type, source, agentId, positionId, log } = event
  const { token, vault, capitalMode, decimals, rule, timestamp } = known
  const facts = factsOf(event)
  const { usdcAmount, tokenAmount } = facts
  const priceUsdc =
    usdcAmount !== undefined && tokenAmount && decimals !== undefined
      ? (usdcAmount * 10n ** BigInt(decimals)) / tokenAmount
      : undefined
  return {
    type,
    source,
    agentId,
    positionId,
    token,
    vault,
    timestamp,
    transactionHash: log.transactionHash,
    blockNumber: log.blockNumber,
    logIndex: log.logIndex,
    ...(capitalMode !== undefined && { capitalMode }),
    ...(priceUsdc !== undefined && { priceUsdc }),
    ...(rule !== undefined && { rule, exitBps: rule.exitBps }),
    ...facts,
  }
}

/** Returns amounts, prices and rules from the two events of a trade. */
function factsOf(event: TradeEvent): Partial<Trade> {
  const closing = event.closing && decode(event.closing)
  if (closing?.eventName !== 'PositionClosed') return factsOfChange(event)
  return { ...factsOfChange(event), positionPnlUsdc: closing.args.realizedPnlUsdc }
}

function factsOfChange({ log, change }: TradeEvent): Partial<Trade> {
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
    case 'ExitPartlyExecuted':
      return { ...saleOf(changed, args.usdcOut), ruleIndex: args.ruleIndex }
    case 'PositionForceClosed':
      return { ...saleOf(changed, args.usdcOut), exitBps: 10_000 }
    case 'PositionPartlyForceClosed':
    case 'OwnerCloseExecuted':
      return saleOf(changed, args.usdcOut)
    default:
      return {}
  }
}

const decode = (log: TradeLog) => decodeEvent(eventsAbi, log)

function saleOf(changed: ReturnType<typeof decode> | undefined, usdcAmount: bigint): Partial<Trade> {
  switch (changed?.eventName) {
    case 'PositionReduced':
    case 'PositionLadderExitApplied':
    case 'PositionLadderExitPartlyApplied': {
      const { tokenSold, usdcReleased } = changed.args
      return { usdcAmount, tokenAmount: tokenSold, realizedPnlUsdc: usdcAmount - usdcReleased }
    }
    default:
      return { usdcAmount }
  }
}
