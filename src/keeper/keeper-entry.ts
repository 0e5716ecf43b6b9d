import type { WatchedPosition } from '../protocol/position.ts'
import type { Evaluation } from './last-evaluation.ts'
import type { ExitOutcome } from './last-exit-result.ts'

/** What the keeper stores about one position. `closedAt` and `nextTryAt` are milliseconds of the service's clock. */
export type KeeperEntry = {
  positionId: bigint
  token: string
  /** How many rules of the ladder the keeper knows to have fired. */
  firedRules: number
  closedAt: number | null
  /** The oracle round at which the router reported that nothing is due. */
  triedRoundId: string | null
  /** Attempts in a row that did not complete the exit. */
  failures: number
  nextTryAt: number
  /** What the keeper saw when the last exit was executed. */
  evaluation: Evaluation | undefined
  outcome: ExitOutcome | undefined
}

/** The retry state of an exit that was not tried yet, or whose last try completed it. */
export const NOT_TRIED = { failures: 0, nextTryAt: 0, triedRoundId: null }

/** Returns the entry of a position that the keeper sees for the first time. */
export const newEntry = ({ positionId, token, nextRuleIndex }: WatchedPosition): KeeperEntry => ({
  ...NOT_TRIED,
  positionId,
  token,
  firedRules: nextRuleIndex,
  closedAt: null,
  evaluation: undefined,
  outcome: undefined,
})
