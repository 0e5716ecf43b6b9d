import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { isExitInProgress, type WatchedPosition } from '@agent-trading-service/protocol/position'
import type { Hex } from 'viem'
import type { RefusalBody } from '../errors/refusal.ts'
import { type KeeperEntry, NOT_TRIED, newEntry } from './keeper-entry.ts'
import type { Evaluation } from './last-evaluation.ts'
import type { Deferral, ExitOutcome } from './last-exit-result.ts'

const MAX_RETRY_SECONDS = 60
/** How long an exit waits after the router deferred it. */
const DEFERRED_RETRY_MS = 5_000

/**
 * Returns the entry of a position that closed. It keeps its outcome only if that is an executed exit. `fingerprint` is of
 * the closed position: that of the open one would hide that a reorg has opened it again.
 */
export const closedEntry = (entry: KeeperEntry, now: number, fingerprint: Hex | undefined): KeeperEntry => ({
  ...entry,
  closedAt: now,
  fingerprint,
  outcome: entry.outcome?.kind === 'executed' ? entry.outcome : undefined,
})

/**
 * Returns the entry of a position with a due exit: without its deferral, unless the router has just deferred it or the
 * exit waits for the pool, which only the next attempt can tell.
 */
export const dueEntry = (entry: KeeperEntry, now: number): KeeperEntry =>
  entry.outcome?.kind === 'deferred' && entry.outcome.reason !== 'poolPrice' && entry.nextTryAt <= now
    ? { ...entry, outcome: undefined }
    : entry

/**
 * Returns the entry of a position without a due exit; the same object if nothing changed. An executed exit stays the
 * outcome until there is something other than `notReached` to report.
 */
export function waitingEntry(entry: KeeperEntry, decision: 'notReached' | Deferral, at: string): KeeperEntry {
  if (decision !== 'notReached') {
    const outcome = deferral(entry, decision, at)
    return outcome === entry.outcome ? entry : { ...entry, ...NOT_TRIED, outcome }
  }
  const keepsOutcome = entry.outcome === undefined || entry.outcome.kind === 'executed'
  if (keepsOutcome && entry.failures === 0 && entry.triedRoundId === null) return entry
  return { ...entry, ...NOT_TRIED, outcome: keepsOutcome ? entry.outcome : undefined }
}

export const executedEntry = (
  entry: KeeperEntry,
  evaluation: Evaluation | undefined,
  outcome: ExitOutcome & { kind: 'executed' },
): KeeperEntry => ({
  ...entry,
  ...NOT_TRIED,
  fingerprint: undefined, // it is from before the exit
  firedRules: outcome.ruleIndex === undefined ? entry.firedRules : outcome.ruleIndex + 1,
  evaluation,
  outcome,
})

/** Returns the entry of an exit that the router deferred; it is tried again a few seconds later. */
export const deferredEntry = (entry: KeeperEntry, reason: Deferral, at: bigint): KeeperEntry => ({
  ...entry,
  nextTryAt: Date.now() + DEFERRED_RETRY_MS,
  outcome: deferral(entry, reason, `${at}`),
})

/** Returns the entry of an exit that failed; it is tried again with exponential backoff. */
export function failedEntry(entry: KeeperEntry, { code, error }: RefusalBody, at: bigint): KeeperEntry {
  const { seconds, ...retry } = retryOf(entry)
  const nextTryAt = `${at + seconds}`
  return { ...entry, ...retry, outcome: { kind: 'failed', at: `${at}`, code, message: error, nextTryAt } }
}

/**
 * Returns the entry of an exit that sold a part. The rest is tried again with exponential backoff, in which time the
 * pool may recover and the exit's floor widens.
 */
export function partlyExecutedEntry(
  entry: KeeperEntry,
  evaluation: Evaluation | undefined,
  { at, ...sale }: { at: bigint; ruleIndex?: number; transactionHash: Hex; usdcOut: string; tokensLeft: string },
): KeeperEntry {
  const { seconds, ...retry } = retryOf(entry)
  const nextTryAt = `${at + seconds}`
  return {
    ...entry,
    ...retry,
    fingerprint: undefined,
    evaluation,
    outcome: { kind: 'partlyExecuted', at: `${at}`, ...sale, nextTryAt },
  }
}

/** Returns the entry of an exit that sells nothing at the pool's price; it is tried again with exponential backoff. */
export function poolPriceEntry(entry: KeeperEntry, at: bigint): KeeperEntry {
  const { outcome } = entry
  const { seconds, ...retry } = retryOf(entry)
  const nextTryAt = `${at + seconds}`
  // The rest of a partly executed exit still waits, but the part that was sold is the more useful outcome to show.
  if (outcome?.kind === 'partlyExecuted') return { ...entry, ...retry, outcome: { ...outcome, nextTryAt } }
  const since = outcome?.kind === 'deferred' && outcome.reason === 'poolPrice' ? outcome.at : `${at}`
  return { ...entry, ...retry, outcome: { kind: 'deferred', at: since, reason: 'poolPrice', nextTryAt } }
}

/** Returns when an exit is tried again, with the delay in seconds. */
function retryOf({ failures }: KeeperEntry) {
  const seconds = Math.min(2 ** (failures + 1), MAX_RETRY_SECONDS)
  return { failures: failures + 1, nextTryAt: Date.now() + seconds * 1000, seconds: BigInt(seconds) }
}

/** Whether a reorg removed an exit, or part of one, that was recorded before the position was read. */
export const isExitUndone = ({ firedRules, outcome }: KeeperEntry, position: WatchedPosition): boolean =>
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
export const undoneEntry = (position: WatchedPosition, decimals: number, now: number): KeeperEntry => ({
  ...newEntry(position, decimals),
  nextTryAt: now + DEFERRED_RETRY_MS,
})

const deferral = ({ outcome }: KeeperEntry, reason: Deferral, at: string): ExitOutcome =>
  outcome?.kind === 'deferred' && outcome.reason === reason ? outcome : { kind: 'deferred', at, reason }
