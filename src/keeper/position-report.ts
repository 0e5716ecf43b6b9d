import type { Evaluation } from './last-evaluation.ts'
import type { ExitOutcome } from './last-exit-result.ts'
import { type KeeperStore, marketKey } from './store.ts'

/** What the keeper knows about one position. Each part is undefined until there is something to report. */
export type PositionReport = { evaluation: Evaluation | undefined; outcome: ExitOutcome | undefined }

/**
 * Returns what the keeper knows about a position; undefined if it never saw the position, or deleted its entry after
 * the position closed.
 */
export function findPositionReport(store: KeeperStore, positionId: bigint): PositionReport | undefined {
  const entry = store.entry(positionId)
  if (entry === undefined) return undefined
  const { closedAt, token, evaluation, outcome } = entry
  const cycle = store.lastCycle()
  const price = cycle?.prices[token]
  if (closedAt !== null || cycle === undefined || price === undefined) return { evaluation, outcome }
  const { blockNumber, at, deferrals } = cycle
  const isInFlight = store.batches().some(({ positionIds }) => positionIds.includes(positionId))
  // An exit that waits for its next try is reached.
  const isWaiting = isInFlight || entry.nextTryAt > Date.now()
  return {
    evaluation: { blockNumber, price, at },
    outcome: deferrals?.[marketKey(entry)] ?? outcome ?? (isWaiting ? undefined : { kind: 'notReached', at }),
  }
}
