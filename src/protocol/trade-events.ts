import { type Address, type Hex, hexToBigInt, toEventSelector } from 'viem'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { decodeEvent } from './decode-event.ts'
import type { ExitRule } from './typed-data.ts'

/** A place in the history of the chain; what is before it is older. */
export type Place = { blockNumber: bigint; logIndex: number }

/** A log of router or position manager. */
export type TradeLog = Place & { topics: readonly Hex[]; data: Hex; transactionHash: Hex }

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
  agentId: bigint
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

/** The event of a trade and the position manager's event that completes it. */
export type TradeEvent<log extends TradeLog = TradeLog> = {
  type: TradeType
  source: TradeSource
  agentId: bigint
  positionId: bigint
  log: log
  change: log | undefined
}

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

/** First topics of the events that trades are made from. */
export const TRADE_TOPICS: readonly Hex[] = [...selectors.values()]

/**
 * Puts the logs of whole transactions together, oldest first. One transaction may change a position more than once, as a
 * batch of exits does: the first event of the router belongs to the first of the position manager, and so on.
 */
export function toTradeEvents<log extends TradeLog>(logs: readonly log[]): TradeEvent<log>[] {
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
  return ordered.flatMap(({ name, log, at }): TradeEvent<log>[] => {
    const ids = { positionId: hexToBigInt(log.topics[1] ?? '0x0'), agentId: hexToBigInt(log.topics[2] ?? '0x0') }
    const source = closedBy.get(at)
    if (name === CLOSED) return source ? [{ type: CLOSED, source, ...ids, log, change: undefined }] : []
    if (!(name in routerEvents)) return []
    const { change, ...event } = routerEvents[name as RouterEvent]
    return [{ ...event, ...ids, log, change: changesAt.get(`${at} ${change}`)?.shift()?.log }]
  })
}

export function comparePlaces(a: Place, b: Place): number {
  if (a.blockNumber !== b.blockNumber) return a.blockNumber < b.blockNumber ? -1 : 1
  return a.logIndex - b.logIndex
}

/** What a position's opening says of it for good; undefined for any other event. */
export function openedPosition({ log }: TradeEvent): { token: Address; vault: Address } | undefined {
  if (log.topics[0] !== selectors.get('PositionOpenedFromIntent')) return undefined
  const { eventName, args } = decode(log)
  return eventName === 'PositionOpenedFromIntent' ? { token: args.token, vault: args.vault } : undefined
}

/** Where the rule that fired stands in its ladder; undefined for any other event than an exit. */
export function firedRule({ type, log }: TradeEvent): number | undefined {
  if (type !== 'ExitExecuted') return undefined
  const { eventName, args } = decode(log)
  return eventName === 'ExitExecuted' ? args.ruleIndex : undefined
}

/** The record of a trade, from its events and from what they do not say. */
export function toTrade(
  event: TradeEvent,
  known: {
    token: Address
    vault: Address
    decimals: number | undefined
    rule: ExitRule | undefined
    timestamp: bigint
  },
): Trade {
  const { type, source, agentId, positionId, log } = event
  const { token, vault, decimals, rule, timestamp } = known
  const facts = factsOf(event)
  const { usdcAmount, tokenAmount } = facts
  const priceUsdc =
    usdcAmount !== undefined && tokenAmount && decimals !== undefined
      ? (usdcAmount * 10n ** BigInt(decimals)) / tokenAmount
      : undefined
  return {
    ...{ type, source, agentId, positionId, token, vault, timestamp },
    transactionHash: log.transactionHash,
    blockNumber: log.blockNumber,
    logIndex: log.logIndex,
    ...(priceUsdc !== undefined && { priceUsdc }),
    ...(rule !== undefined && { rule, exitBps: rule.exitBps }),
    ...facts,
  }
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

const decode = (log: TradeLog) => decodeEvent(eventsAbi, log)

function saleOf(changed: ReturnType<typeof decode> | undefined, usdcAmount: bigint): Partial<Trade> {
  if (changed?.eventName !== 'PositionReduced' && changed?.eventName !== 'PositionLadderExitApplied')
    return { usdcAmount }
  const { tokenSold, usdcReleased } = changed.args
  return { usdcAmount, tokenAmount: tokenSold, realizedPnlUsdc: usdcAmount - usdcReleased }
}
