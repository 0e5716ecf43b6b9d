/** By how much two clocks may differ until one counts as wrong, in seconds. */
export const MAX_SKEW_SECONDS = 60
/** A block this old (seconds) says little about the time at which the next one executes. */
const MAX_BLOCK_AGE_SECONDS = 30
/** How far ahead of a block the oracle takes reports: where blocks are made on demand, an older block counts as old. */
export const MAX_REPORT_LEAD_SECONDS = 5
/** How long the time of a node's response counts. */
const MEMORY_MS = 600_000

/** A time of the chain, in Unix seconds. */
type BlockTime = { timestamp: bigint }

/** How far the clock is ahead of each node's, in milliseconds, and when that was noticed (epoch milliseconds). */
const leads = new Map<string, { leadMs: number; at: number }>()

/** Records the `Date` header of a node's response that has just arrived. Nodes without one are ignored. */
export function noteNodeTime(node: string, date: string | null): void {
  const time = date === null ? Number.NaN : Date.parse(date)
  if (!Number.isNaN(time)) leads.set(node, { leadMs: Date.now() - time, at: Date.now() })
}

/**
 * Returns by how many seconds the clock is ahead of the nodes' clocks, negative if it is behind. It is 0 unless all of
 * them say so by more than a minute, and then what the nearest one says; and 0 if the newest block's time confirms the
 * clock.
 */
export function clockSkewSeconds(newest?: BlockTime): number {
  const clock = Date.now()
  if (newest && Math.abs(clock / 1000 - Number(newest.timestamp)) <= MAX_SKEW_SECONDS) return 0
  const seconds = [...leads.values()]
    .filter(({ at }) => Math.abs(clock - at) < MEMORY_MS)
    .map(({ leadMs }) => Math.trunc(leadMs / 1000))
  if (seconds.length === 0) return 0
  const [least, most] = [Math.min(...seconds), Math.max(...seconds)]
  if (least > MAX_SKEW_SECONDS) return least
  return most < -MAX_SKEW_SECONDS ? most : 0
}

/** Returns the time in Unix seconds, corrected if the nodes agree that the clock is wrong. */
export const clockSeconds = (newest?: BlockTime): number => Math.floor(Date.now() / 1000) - clockSkewSeconds(newest)

/**
 * Returns the present time in Unix seconds, given the newest block: the later of its time and the clock's. A
 * transaction executes no earlier. Chains that make blocks on demand have an old newest block, and the time of a
 * development chain may be ahead of the clock.
 */
export function nowAt(newest: BlockTime): bigint {
  const clock = BigInt(clockSeconds(newest))
  return newest.timestamp > clock ? newest.timestamp : clock
}

/** Returns how many seconds old the newest block is. */
export const ageSeconds = (newest: BlockTime): number => Number(nowAt(newest) - newest.timestamp)

/** Returns the time at which a call would execute next, if the newest block is so old that its own would mislead. */
export const timeIfOld = (
  newest: BlockTime,
  { makesBlocksOnDemand = false }: { makesBlocksOnDemand?: boolean } = {},
): bigint | undefined =>
  ageSeconds(newest) > (makesBlocksOnDemand ? MAX_REPORT_LEAD_SECONDS : MAX_BLOCK_AGE_SECONDS)
    ? nowAt(newest)
    : undefined
