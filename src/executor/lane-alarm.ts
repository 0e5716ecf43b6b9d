import { logUnexpected } from './background-errors.ts'
import type { Journal } from './store.ts'

export type LaneAlarm = ReturnType<typeof createLaneAlarm>

const RECONCILE_INTERVAL_MS = 1_000
/** Short, because transactions in flight at a restart are usually mined within a block. */
const RESTART_DELAY_MS = 300
const MIN_FINALITY_INTERVAL_MS = 2_000
const MAX_FINALITY_INTERVAL_MS = 60_000
const PRUNE_INTERVAL_MS = 60_000

/**
 * Schedules the lane's alarm: every second while attempts are pending, every few seconds until they are final, then when
 * rows can be deleted.
 */
export function createLaneAlarm(storage: Pick<DurableObjectStorage, 'setAlarm'>, journal: Journal) {
  let armedAt: number | undefined
  let prunedAt = 0
  let finalityIntervalMs = MIN_FINALITY_INTERVAL_MS
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

  async function armNext(headNumber: number | undefined): Promise<void> {
    const now = Date.now()
    if (journal.attempts.pendingTotals().count > 0 || journal.intents.withoutPendingAttempt().length > 0)
      return armBefore(now + RECONCILE_INTERVAL_MS)
    if (journal.attempts.hasWatched()) {
      // Without new blocks nothing becomes final, so the interval doubles.
      const isStill = headNumber === lastHeadNumber
      finalityIntervalMs = isStill
        ? Math.min(finalityIntervalMs * 2, MAX_FINALITY_INTERVAL_MS)
        : MIN_FINALITY_INTERVAL_MS
      lastHeadNumber = headNumber
      return armBefore(now + finalityIntervalMs)
    }
    const pruneAt = journal.intents.nextPruneAt()
    if (pruneAt !== undefined) await armBefore(Math.max(pruneAt * 1000, now + PRUNE_INTERVAL_MS))
  }

  return {
    armAfterRestart: () => armBefore(Date.now() + RESTART_DELAY_MS),

    armForPending() {
      finalityIntervalMs = MIN_FINALITY_INTERVAL_MS
      return armBefore(Date.now() + RECONCILE_INTERVAL_MS)
    },

    armForPruning: () => armBefore(Date.now() + PRUNE_INTERVAL_MS),

    /** Runs an alarm that has fired and arms the next one. `headNumber` returns the number of the last head. */
    async run(reconcile: () => Promise<void>, headNumber: () => number | undefined): Promise<void> {
      armedAt = undefined
      try {
        await reconcile()
        pruneSometimes()
      } catch (error) {
        logUnexpected(error)
      } finally {
        await armNext(headNumber())
      }
    },
  }
}
