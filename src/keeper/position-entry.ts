import { PositionStatus, TriggerType } from '@agent-trading-service/protocol/enums'
import { triggerPriceOf } from '@agent-trading-service/protocol/exit-triggers'
import {
  type ExitMarket,
  isExitInProgress,
  isOwnerClosing,
  type WatchedPosition,
} from '@agent-trading-service/protocol/position'
import { preventsSale } from '@agent-trading-service/protocol/token-restriction'
import type { Address, Hex } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import type { WatchedPositions } from '../chain/watched-positions.ts'
import { nowAt } from '../clock.ts'
import type { RefusalBody } from '../errors/refusal.ts'

/** What the keeper saw at one block: the price has 8 decimals, `at` is the block's time in Unix seconds. */
export type Evaluation = { blockNumber: string; price: string; at: string }

/** Why an exit waits although nothing has failed. */
export const DEFERRALS = [
  'priceStale',
  'priceUnsettled',
  'marketClosed',
  'marketHalted',
  'tradingPaused',
  'tokenRestricted',
] as const
export type Deferral = (typeof DEFERRALS)[number]

/** An exit that the pool does not fill, or fills only in part. It is tried again at `nextTryAt`. */
type WaitingForPool =
  | {
      kind: 'partlyExecuted'
      at: string
      /** Absent for a position that the agent's owner closes. */
      ruleIndex?: number
      transactionHash: Hex
      usdcOut: string
      /** The amount that stays due, in the token's base units. */
      tokensLeft: string
      nextTryAt: string
    }
  /** The pool's price is below the exit's floor, or too far from the oracle's. */
  | { kind: 'deferred'; at: string; reason: 'poolPrice'; nextTryAt: string }

/** The last result for a position's exits. Times are Unix seconds of the chain. */
export type ExitOutcome =
  | { kind: 'notReached'; at: string }
  /**
   * For a position that the agent's owner closed, `ruleIndex` is absent. For an exit that someone else fired,
   * `transactionHash` and `usdcOut` are absent if the node does not serve its event.
   */
  | {
      kind: 'executed'
      firedBy: 'keeper' | 'others'
      at: string
      ruleIndex?: number
      transactionHash?: Hex
      usdcOut?: string
    }
  | { kind: 'deferred'; at: string; reason: Deferral }
  | WaitingForPool
  | { kind: 'failed'; at: string; code: string; message: string; nextTryAt: string }

/**
 * What the book says about one position. `watchedUntil` and `closedAt` are milliseconds of the service's clock,
 * `nextTryAt` of the chain's time.
 */
export type PositionEntry = {
  positionId: bigint
  agentId: bigint
  vault: Address
  token: Address
  /** The prices that may fire a rule. Only the position on chain decides whether they do. */
  triggers: PriceTriggers
  /** Whether the position is sold at any price, because its owner closes it or a rule has sold a part of its share. */
  sellsAtAnyPrice: boolean
  /** The block of the newest known change. A reorg of it marks the entry. */
  changedBlock: bigint
  /** Until when every cycle reads the position, because the change may be undone by a reorg or missing on a node. */
  watchedUntil: number
  /** How many rules of the ladder the keeper knows to have fired. */
  firedRules: number
  closedAt: number | null
  /** The observation of the price at which the router reported that nothing is due. */
  triedRoundId: string | null
  /** Attempts in a row that did not complete the exit. */
  failures: number
  nextTryAt: number
  /** What the keeper saw when the last exit was executed. */
  evaluation: Evaluation | undefined
  outcome: ExitOutcome | undefined
}

/**
 * When a block was read: its time, and the chain's present time, which is later if its blocks are old. Unix seconds.
 */
export type ReadTime = { at: bigint; now: bigint }

/** Prices (8 decimals) at or below and at or above which a pending rule may fire; undefined without such a rule. */
export type PriceTriggers = { below: bigint | undefined; above: bigint | undefined }

/** A PnL is truncated to whole bps, so a rule may fire up to one bps before its trigger price. */
const MARGIN_BPS = 1n
/**
 * How long each cycle reads a position after a change: longer than nodes lag. The comparison of the whole book goes on
 * after it.
 */
export const WATCH_MS = 10_000
/**
 * How long each cycle reads a position after its exit was executed, which a reorg may move into another transaction.
 */
const EXIT_WATCH_MS = 60_000
const MAX_RETRY_SECONDS = 60
/** How long an exit waits after the router deferred it. */
const DEFERRED_RETRY_SECONDS = 5

/** The retry state of an exit that was not tried yet, or whose last try completed it. */
export const NOT_TRIED = { failures: 0, nextTryAt: 0, triedRoundId: null }

/** Returns the first prices at which a position's pending rules may fire, never later than the router fires them. */
function priceTriggersOf(position: WatchedPosition, decimals: number): PriceTriggers {
  const triggers: PriceTriggers = { below: undefined, above: undefined }
  if (position.tokenAmount === 0n) return triggers
  for (const rule of position.exitRules.slice(position.nextRuleIndex)) {
    const isStopLoss = rule.triggerType === TriggerType.StopLoss
    const triggerBps = isStopLoss ? rule.triggerBps + MARGIN_BPS : rule.triggerBps - MARGIN_BPS
    const price = triggerPriceOf({ ...rule, triggerBps }, position, decimals)
    if (isStopLoss) triggers.below = triggers.below === undefined || price > triggers.below ? price : triggers.below
    else triggers.above = triggers.above === undefined || price < triggers.above ? price : triggers.above
  }
  return triggers
}

/** Returns the entry of a position that the keeper sees for the first time. `decimals` belongs to its token. */
export const newEntry = (position: WatchedPosition, decimals: number, block: Block): PositionEntry => ({
  ...NOT_TRIED,
  positionId: position.positionId,
  agentId: position.agentId,
  vault: position.vault,
  token: position.token,
  triggers: priceTriggersOf(position, decimals),
  sellsAtAnyPrice: isOwnerClosing(position) || isExitInProgress(position),
  changedBlock: block.number,
  watchedUntil: 0,
  firedRules: position.nextRuleIndex,
  closedAt: null,
  evaluation: undefined,
  outcome: undefined,
})

/** Returns the entry updated from a read position; the same object if nothing changed. */
export function refreshedEntry(
  entry: PositionEntry,
  position: WatchedPosition,
  decimals: number,
  block: Block,
): PositionEntry {
  const { agentId, vault, token, triggers, sellsAtAnyPrice } = newEntry(position, decimals, block)
  const isSame =
    entry.agentId === agentId &&
    entry.vault === vault &&
    entry.token === token &&
    entry.triggers.below === triggers.below &&
    entry.triggers.above === triggers.above &&
    entry.sellsAtAnyPrice === sellsAtAnyPrice
  return isSame ? entry : { ...entry, ...changedAt(block, entry), agentId, vault, token, triggers, sellsAtAnyPrice }
}

/** The fields of an entry that has changed at a block. One that was marked a moment ago is watched already. */
const changedAt = ({ number }: Block, { watchedUntil }: Pick<PositionEntry, 'watchedUntil'>) => {
  const now = Date.now()
  return { changedBlock: number, watchedUntil: watchedUntil > now + WATCH_MS / 2 ? watchedUntil : now + WATCH_MS }
}

/** Returns the entry of a position that is closed. It keeps its outcome only if that is an executed exit. */
export const closedEntry = (entry: PositionEntry, block: Block): PositionEntry =>
  entry.closedAt === null ? { ...withoutOpenOutcome(entry), ...changedAt(block, entry), closedAt: Date.now() } : entry

/** Returns the entry without an outcome that a closed position cannot have. */
export const withoutOpenOutcome = (entry: PositionEntry): PositionEntry => ({
  ...entry,
  outcome: entry.outcome?.kind === 'executed' ? entry.outcome : undefined,
})

/**
 * Returns the entry of a position with a due exit: without its deferral, unless the router has just deferred it or the
 * exit waits for the pool, which only the next attempt can tell.
 */
export const dueEntry = (entry: PositionEntry, now: bigint): PositionEntry =>
  entry.outcome?.kind === 'deferred' && entry.outcome.reason !== 'poolPrice' && entry.nextTryAt <= toMs(now)
    ? { ...entry, outcome: undefined }
    : entry

/**
 * Returns the entry of a position without a due exit; the same object if nothing changed. An executed exit stays the
 * outcome until there is something other than `notReached` to report.
 */
export function waitingEntry(
  entry: PositionEntry,
  decision: 'notReached' | Deferral,
  { at, now }: ReadTime,
): PositionEntry {
  if (decision !== 'notReached') {
    const outcome = deferral(entry, decision, `${at}`)
    return outcome === entry.outcome ? entry : { ...entry, ...NOT_TRIED, outcome }
  }
  const keepsOutcome = entry.outcome === undefined || entry.outcome.kind === 'executed'
  const hasTried = entry.failures > 0 || entry.triedRoundId !== null
  const isWaitOver = entry.nextTryAt > 0 && entry.nextTryAt <= toMs(now)
  if (keepsOutcome && !hasTried && !isWaitOver) return entry
  return { ...entry, ...NOT_TRIED, outcome: keepsOutcome ? entry.outcome : undefined }
}

/** Returns what a cycle saw of a position. */
export const evaluationOf = ({ block, marketOf }: WatchedPositions, position: WatchedPosition): Evaluation => ({
  blockNumber: `${block.number}`,
  price: `${marketOf(position).quote.price}`,
  at: `${block.timestamp}`,
})

export const executedEntry = (
  entry: PositionEntry,
  evaluation: Evaluation | undefined,
  outcome: ExitOutcome & { kind: 'executed' },
): PositionEntry => ({
  ...entry,
  ...NOT_TRIED,
  watchedUntil: Date.now() + EXIT_WATCH_MS,
  firedRules: outcome.ruleIndex === undefined ? entry.firedRules : outcome.ruleIndex + 1,
  evaluation,
  outcome,
})

/** Returns the entry of an exit that the router deferred; it is tried again a few seconds later. */
export const deferredEntry = (entry: PositionEntry, reason: Deferral, { at, now }: ReadTime): PositionEntry => ({
  ...entry,
  nextTryAt: after(now, DEFERRED_RETRY_SECONDS),
  outcome: deferral(entry, reason, `${at}`),
})

/** Returns the entry of an exit that failed because of what the token's issuer did. */
export const heldEntry = (entry: PositionEntry, { at }: ReadTime): PositionEntry => ({
  ...entry,
  ...NOT_TRIED,
  outcome: deferral(entry, 'tokenRestricted', `${at}`),
})

/**
 * Whether an exit has failed because of what the token's issuer did, which still stands. One on paper does not fail:
 * it moves no tokens.
 */
export const isHeldByIssuer = ({ outcome }: PositionEntry, { restriction }: Pick<ExitMarket, 'restriction'>): boolean =>
  outcome?.kind === 'deferred' && outcome.reason === 'tokenRestricted' && preventsSale(restriction, 1n)

/** Returns the entry of an exit that failed; it is tried again with exponential backoff. */
export function failedEntry(entry: PositionEntry, { code, error }: RefusalBody, time: ReadTime): PositionEntry {
  const { retry, nextTryAt } = retryOf(entry, time)
  return { ...entry, ...retry, outcome: { kind: 'failed', at: `${time.at}`, code, message: error, nextTryAt } }
}

/**
 * Returns the entry of an exit that sold a part. The rest is tried again with exponential backoff, in which time the
 * pool may recover and the exit's floor widens.
 */
export function partlyExecutedEntry(
  entry: PositionEntry,
  evaluation: Evaluation | undefined,
  { at, now, ...sale }: ReadTime & { ruleIndex?: number; transactionHash: Hex; usdcOut: string; tokensLeft: string },
): PositionEntry {
  const { retry, nextTryAt } = retryOf(entry, { at, now })
  return { ...entry, ...retry, evaluation, outcome: { kind: 'partlyExecuted', at: `${at}`, ...sale, nextTryAt } }
}

/** Returns the entry of an exit that sells nothing at the pool's price; it is tried again with exponential backoff. */
export function poolPriceEntry(entry: PositionEntry, time: ReadTime): PositionEntry {
  const { outcome } = entry
  const { retry, nextTryAt } = retryOf(entry, time)
  // The rest of a partly executed exit still waits, but the part that was sold is the more useful outcome to show.
  if (outcome?.kind === 'partlyExecuted') return { ...entry, ...retry, outcome: { ...outcome, nextTryAt } }
  const since = outcome?.kind === 'deferred' && outcome.reason === 'poolPrice' ? outcome.at : `${time.at}`
  return { ...entry, ...retry, outcome: { kind: 'deferred', at: since, reason: 'poolPrice', nextTryAt } }
}

/** Returns when an exit is tried again, and that in seconds after the block that was read. */
function retryOf({ failures }: PositionEntry, { at, now }: ReadTime) {
  const seconds = Math.min(2 ** (failures + 1), MAX_RETRY_SECONDS)
  const retry = { failures: failures + 1, nextTryAt: after(now, seconds) }
  return { retry, nextTryAt: `${at + BigInt(seconds)}` }
}

const toMs = (seconds: bigint) => Number(seconds) * 1_000
const after = (now: bigint, seconds: number) => toMs(now + BigInt(seconds))

/** Whether a reorg removed an exit, or part of one, that was recorded before the position was read. */
export const isExitUndone = ({ firedRules, outcome }: PositionEntry, position: WatchedPosition): boolean =>
  (outcome?.kind === 'executed' &&
    (outcome.ruleIndex === undefined
      ? position.status === PositionStatus.Open // the sale for an owner is of the whole position
      : position.nextRuleIndex < firedRules)) ||
  (outcome?.kind === 'partlyExecuted' &&
    (outcome.ruleIndex === undefined
      ? position.tokenAmount > BigInt(outcome.tokensLeft)
      : position.nextRuleIndex === firedRules && !isExitInProgress(position)))

/**
 * Returns the entry of a position whose exit a reorg removed. The lane resends the keeper's transaction, so the exit is
 * not tried again at once.
 */
export const undoneEntry = (position: WatchedPosition, decimals: number, block: Block): PositionEntry => ({
  ...newEntry(position, decimals, block),
  ...changedAt(block, { watchedUntil: 0 }),
  nextTryAt: after(nowAt(block), DEFERRED_RETRY_SECONDS),
})

const deferral = ({ outcome }: PositionEntry, reason: Deferral, at: string): ExitOutcome =>
  outcome?.kind === 'deferred' && outcome.reason === reason ? outcome : { kind: 'deferred', at, reason }
