import { logUnexpected } from './background-errors.ts'
import type { Journal } from './store.ts'

export type LaneAlarm = ReturnType<typeof createLaneAlarm>

const RECONCILE_INTERVAL_MS = 1_000
/** Short, because transactions in flight at a restart are usually mined within a block. */
const RESTART_DELAY_MS = 300
/** The pauses between passes that only look for reorgs double up to this one, and beyond it without new blocks. */
const MIN_FINALITY_INTERVAL_MS = 2_000
const MAX_FINALITY_INTERVAL_MS = 15_000
const MAX_STILL_INTERVAL_MS = 60_000
const PRUNE_INTERVAL_MS = 60_000

/**
 * Schedules the lane's alarm: every second while attempts are pending, less and less often until they are final, then when
 * rows can be deleted. Providers bill each request of a pass, so an alarm makes one only if something needs it.
 */
export function createLaneAlarm(storage: Pick<DurableObjectStorage, 'setAlarm'>, journal: Journal) {
  let armedAt: number | undefined
  let prunedAt = 0
  let finalityIntervalMs = MIN_FINALITY_INTERVAL_MS
  /** Due at once after a restart. */
  let finalityDueAt = 0
  let lastHeadNumber: number | undefined

  async function armBefore(time: number): Promise<void> {
    if (armedAt !== undefined && armedAt <= time) return
    armedAt = time
    await storage.setAlarm(time)
  }

  function pruneSometimes() {
    const now = Date.now()
    if (now - prunedAt < PRUNE_INTERVAL_MS) return
    prunedAt = now
    journal.prune()
  }

  /** Decides when the next pass looks for reorgs. Without new blocks nothing becomes final. */
  function postponeFinality(headNumber: number | undefined) {
    finalityDueAt = Date.now() + finalityIntervalMs
    const longest = headNumber === lastHeadNumber ? MAX_STILL_INTERVAL_MS : MAX_FINALITY_INTERVAL_MS
    finalityIntervalMs = Math.min(finalityIntervalMs * 2, longest)
    lastHeadNumber = headNumber
  }

  /** Returns when the next pass looks for reorgs. Transactions that follow each other do not make it earlier. */
  function startFinality(): number {
    finalityDueAt = Math.min(finalityDueAt, Date.now() + finalityIntervalMs)
    return finalityDueAt
  }

  async function armNext(): Promise<void> {
    const now = Date.now()
    if (journal.attempts.pendingTotals().count > 0 || journal.intents.withoutPendingAttempt().length > 0)
      return armBefore(now + RECONCILE_INTERVAL_MS)
    if (journal.attempts.hasWatched()) return armBefore(startFinality())
    finalityIntervalMs = MIN_FINALITY_INTERVAL_MS
    finalityDueAt = Number.POSITIVE_INFINITY
    const pruneAt = journal.intents.nextPruneAt()
    if (pruneAt !== undefined) await armBefore(Math.max(pruneAt * 1000, now + PRUNE_INTERVAL_MS))
  }

  return {
    armAfterRestart: () => armBefore(Date.now() + RESTART_DELAY_MS),

    armForPending() {
      startFinality()
      return armBefore(Date.now() + RECONCILE_INTERVAL_MS)
    },

    armForPruning: () => armBefore(Date.now() + PRUNE_INTERVAL_MS),

    /**
     * Runs an alarm that has fired and arms the next one. It reconciles if `needsPass`, or if it is time to look for reorgs.
     * `headNumber` returns the number of the last head.
     */
    async run({
      needsPass,
      reconcile,
      headNumber,
    }: {
      needsPass: () => boolean
      reconcile: () => Promise<void>
      headNumber: () => number | undefined
    }): Promise<void> {
      armedAt = undefined
      try {
        if (needsPass() || Date.now() >= finalityDueAt) await reconcile().finally(() => postponeFinality(headNumber()))
        pruneSometimes()
      } catch (error) {
        logUnexpected(error)
      } finally {
        await armNext()
      }
    },
  }
}
