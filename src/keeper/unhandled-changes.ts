import type { PositionChange } from '../chain/read-changed-position-ids.ts'

/** Changes by the events of some blocks. Several events of a block that change the same are one. */
export type EventChanges = ReadonlyMap<string, PositionChange>

export const NO_CHANGES: EventChanges = new Map()

export const changesByKey = (changes: readonly PositionChange[]): EventChanges =>
  new Map(changes.map(change => [`${change.blockHash} ${change.kind} ${change.id}`, change]))

/** Returns the changes that were not handled, and those that were and that a reorg has removed since `fromBlock`. */
export function differenceOf(changes: EventChanges, handled: EventChanges, fromBlock: bigint): PositionChange[] {
  const added = [...changes].filter(([key]) => !handled.has(key))
  const removed = [...handled].filter(([key, { blockNumber }]) => blockNumber >= fromBlock && !changes.has(key))
  return [...added, ...removed].map(([, change]) => change)
}
