import { armBefore } from '../alarm.ts'
import { logUnexpected } from '../rpc/node-errors.ts'
import type { Journal } from './store.ts'

export type LaneAlarm = ReturnType<typeof createLaneAlarm>

const RECONCILE_INTERVAL_MS = 1_000
/**
 * While attempts are pending, a timer runs the passes; the alarm, which is a stored row, only follows if the process
 * dies.
 */
const PENDING_ALARM_MS = 5_000
/**
 * The pause between passes that only look for reorgs is the age of the oldest transaction that is not final: the index
 * reports reorgs too.
 */
const MIN_FINALITY_INTERVAL_MS = 5_000
const MAX_FINALITY_INTERVAL_MS = 300_000
const PRUNE_INTERVAL_MS = 60_000
/** How often a lane without anything in flight wakes to delete rows, as long as it has some. */
const IDLE_PRUNE_INTERVAL_MS = 3_600_000

/**
 * What a pass of reconciliation needs: whether there is a reason for one, whether the chain may have had a reorg, and
 * the pass.
 */
type Passes = { needsPass: () => boolean; suspectsReorg: () => boolean; reconcile: () => Promise<void> }

/**
 * Schedules the lane's passes: every second while attempts are pending or a reorg is suspected, less and less often
 * until all are final, then once an hour while there are rows to delete. Providers bill each request of a pass, so one
 * runs only if something needs it.
 */
export function createLaneAlarm(
  storage: Pick<DurableObjectStorage, 'getAlarm' | 'setAlarm'>,
  journal: Journal,
  { needsPass, suspectsReorg, reconcile }: Passes,
) {
  let isTimerSet = false
  let prunedAt = 0
  /** When a pass looks for reorgs (epoch milliseconds); at once after a restart, unless the transactions are young. */
  let finalityDueAt = 0

  function pruneSometimes() {
    const now = Date.now()
    if (now - prunedAt < PRUNE_INTERVAL_MS) return
    prunedAt = now
    journal.prune()
  }

  /**
   * Returns the pause until the next pass that looks for reorgs. It depends on the journal alone, because idle objects
   * are evicted.
   */
  const finalityInterval = (): number =>
    Math.max(MIN_FINALITY_INTERVAL_MS, Math.min(Date.now() - oldestSince(), MAX_FINALITY_INTERVAL_MS))

  const oldestSince = () => journal.attempts.oldestWatchedSince() ?? Date.now()
  const nextFinalityPass = () => Math.max(finalityDueAt, oldestSince() + MIN_FINALITY_INTERVAL_MS)

  const hasPending = () =>
    journal.attempts.pendingTotals().count > 0 || journal.intents.withoutPendingAttempt().length > 0

  function setTimer() {
    if (isTimerSet) return
    isTimerSet = true
    setTimeout(() => {
      isTimerSet = false
      runTimer().catch(logUnexpected)
    }, RECONCILE_INTERVAL_MS)
  }

  async function runTimer(): Promise<void> {
    if (needsPass()) await reconcile().catch(logUnexpected)
    if (hasPending() || suspectsReorg()) await armOften()
  }

  function armOften(): Promise<void> {
    setTimer()
    return armBefore(storage, Date.now() + PENDING_ALARM_MS)
  }

  async function armNext(): Promise<void> {
    const now = Date.now()
    if (hasPending() || suspectsReorg()) await armOften()
    else if (journal.attempts.hasWatched()) await armBefore(storage, Math.max(nextFinalityPass(), now))
    else if (!journal.intents.isEmpty()) await armBefore(storage, now + IDLE_PRUNE_INTERVAL_MS)
  }

  return {
    /** Arms the alarm of a new process, which has no timer yet. */
    armAfterRestart: () => (hasPending() ? armBefore(storage, Date.now()) : armNext()),

    /** Arms the alarm for the next work of the journal: it may have been lost. */
    armNext,

    /** Starts the passes of every second, unless they run. */
    async passOften(): Promise<void> {
      if (!isTimerSet) await armOften()
    },

    armForPruning: () => armBefore(storage, Date.now() + IDLE_PRUNE_INTERVAL_MS),

    /**
     * Runs an alarm that has fired and arms the next one. It reconciles if `needsPass`, or if it is time to look for
     * reorgs.
     */
    async run(): Promise<void> {
      const isFinalityDue = journal.attempts.hasWatched() && Date.now() >= nextFinalityPass()
      try {
        if (isFinalityDue) finalityDueAt = Date.now() + finalityInterval()
        if (isFinalityDue || needsPass()) await reconcile()
        pruneSometimes()
      } catch (error) {
        logUnexpected(error)
      } finally {
        await armNext()
      }
    },
  }
}
