import type { LaneStatus } from '../executor/lane-status.ts'
import type { KeeperStore } from './store.ts'

export type KeeperStatus = {
  /** The last cycle; `at` is its block's time in Unix seconds. */
  lastEvaluation: { blockNumber: string; at: string } | undefined
  openPositions: number
  /** The number of positions whose exit is in flight. */
  pendingExits: number
  /** The lane of the keeper's account. */
  lanes: LaneStatus[]
}

/** Returns what readiness reports about the keeper. */
export function keeperStatusOf(store: KeeperStore, lanes: LaneStatus[]): KeeperStatus {
  const cycle = store.lastCycle()
  return {
    lastEvaluation: cycle && { blockNumber: cycle.blockNumber, at: cycle.at },
    openPositions: store.openCount(),
    pendingExits: store.batches().flatMap(({ positionIds }) => positionIds).length,
    lanes,
  }
}
