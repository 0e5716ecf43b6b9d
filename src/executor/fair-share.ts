import type { BucketSize } from '../limits/bucket.ts'

/** What a budget holds, for a minute and for longer. */
type Capacity = { minute: BucketSize; sustained: BucketSize }
/**
 * The part of a budget that is kept for members that used less than their share, the more of it the less they used, and
 * how many members find their share in that part, whatever the others do.
 */
export type Kept = { part: number; shares: number }

/** What a restart needs: the gas in the budget of the minute, and the clock of the division. */
type SharedLevel = { minute: number; clock: number; at: number }

export type FairShare = ReturnType<typeof createFairShare>

/**
 * Divides a gas budget fairly among members that do not know each other. What a member used drains at the same rate for
 * all members that have something left to drain, and together they drain the budget evenly (processor sharing: a member
 * that uses less than its share is never behind). A member that has used nothing may fill the whole budget, and one
 * that has used its share or more not the part that is kept, so that who used little is served before who used much.
 * Times are in milliseconds.
 */
export function createFairShare({ minute: ofMinute, sustained }: Capacity, kept: Kept, stored?: SharedLevel) {
  let minute = stored?.minute ?? 0
  /** How much each member has drained since the start, had it always had something to drain. */
  let clock = stored?.clock ?? 0
  let at = stored?.at ?? 0
  /** The gas that all members have not drained yet. */
  let total = 0
  /** When each member has drained everything, on the clock, roughly in that order. */
  const ends = new Map<string, number>()
  /** No end is before this one. */
  let firstEnd = Number.POSITIVE_INFINITY

  function setEnd(member: string, end: number) {
    ends.delete(member)
    ends.set(member, end)
    firstEnd = Math.min(firstEnd, end)
  }

  /** Moves the clock to a time. */
  function advance(now: number) {
    const elapsed = Math.max(0, now - at)
    at = Math.max(at, now)
    minute = Math.max(0, minute - (ofMinute.holds * elapsed) / (1_000 * ofMinute.seconds))
    let drained = (sustained.holds * elapsed) / (1_000 * sustained.seconds)
    // Sorting what is nearly in order costs little, and happens once for each member that ends.
    const order = (firstEnd - clock) * ends.size <= drained ? [...ends].sort(([, one], [, other]) => one - other) : []
    for (const [member, end] of order) {
      firstEnd = end
      const untilEnd = Math.max(0, end - clock) * ends.size
      if (untilEnd > drained) break
      drained -= untilEnd
      total -= untilEnd
      clock = Math.max(clock, end)
      ends.delete(member)
    }
    if (ends.size === 0) {
      total = 0
      firstEnd = Number.POSITIVE_INFINITY
      return
    }
    clock += drained / ends.size
    total -= drained
  }

  const usedBy = (member: string) => Math.max(0, (ends.get(member) ?? clock) - clock)

  return {
    /** Restores what a member had used when it was stored. */
    restore(member: string, end: number) {
      if (end <= clock) return
      setEnd(member, end)
      total += end - clock
    },

    /**
     * Returns what a member may use now, and the most that it could if nobody else used the budget. `held` is the gas
     * in flight of the member and of all members.
     */
    roomOf(member: string, now: number, held: { own: number; all: number }) {
      advance(now)
      const share = (sustained.holds * kept.part) / kept.shares
      const part = 1 - kept.part * Math.min(1, (usedBy(member) + held.own) / share)
      const roomIn = (capacity: number, level: number) => ({
        most: capacity * part,
        left: capacity * part - level - held.all,
      })
      return { minute: roomIn(ofMinute.holds, minute), sustained: roomIn(sustained.holds, total) }
    },

    /** Returns what a member has used and not drained. */
    usedBy(member: string, now: number): number {
      advance(now)
      return usedBy(member)
    },

    /** Charges a member, and returns its end for storage. */
    charge(member: string, gas: number, now: number): number {
      advance(now)
      minute += gas
      total += gas
      const end = Math.max(clock, ends.get(member) ?? 0) + gas
      setEnd(member, end)
      return end
    },

    /** Returns what a restart needs, apart from the members' ends. */
    level: (): SharedLevel => ({ minute, clock, at }),
  }
}
