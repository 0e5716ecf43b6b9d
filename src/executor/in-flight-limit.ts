import { withDeadline } from '../timeout.ts'

/** An intent's place in the lane. Deadlines are epoch milliseconds. */
export type LaneTicket = {
  /** Resolves to whether the previous intent of the group finished in time. */
  waitForTurn(deadline: number): Promise<boolean>
  /** Resolves to whether a slot in flight became free in time. The slot is held until `release`. */
  waitForSlot(deadline: number): Promise<boolean>
  /** Frees everything the ticket holds. Only the first call has an effect. */
  release(): void
}

export type InFlightLimit = ReturnType<typeof createInFlightLimit>

const MIN_DEPTH = 4
const INITIAL_DEPTH = 16
const MAX_DEPTH = 128
const DEPTH_STEP = 8
/**
 * After a window without trouble the depth grows: it doubles until the first trouble, and after that it grows in steps.
 */
const DOUBLING_WINDOW_MS = 250
const STEP_WINDOW_MS = 1_000
const MAX_WAITING = 256
const MAX_PER_GROUP = 4

/**
 * Limits how many transactions are in flight (the depth). One lost nonce blocks all later ones, so trouble halves the
 * depth and success lets it grow. Intents of one group run one after the other.
 */
export function createInFlightLimit() {
  let depth = INITIAL_DEPTH
  let inFlight = 0
  let admitted = 0
  let isDoubling = true
  let windowStart = 0
  let lastTrouble = 0
  let wasFull = false
  const waiting: (() => void)[] = []
  const groups = new Map<string, { count: number; tail: Promise<void> }>()

  function fillSlots() {
    while (inFlight < depth && waiting.length > 0) {
      inFlight++
      waiting.shift()?.()
    }
  }

  function freeSlot() {
    inFlight--
    fillSlots()
  }

  async function takeSlot(deadline: number): Promise<boolean> {
    wasFull ||= inFlight >= depth
    if (inFlight < depth && waiting.length === 0) {
      inFlight++
      return true
    }
    const slot = Promise.withResolvers<void>()
    waiting.push(slot.resolve)
    if (await resolvesBefore(slot.promise, deadline)) return true
    const index = waiting.indexOf(slot.resolve)
    if (index >= 0) waiting.splice(index, 1)
    else freeSlot() // it was assigned just after the deadline
    return false
  }

  /** Admits an intent of a group; undefined if the lane or the group is at capacity. */
  function enter(group: string): LaneTicket | undefined {
    const queue = groups.get(group) ?? { count: 0, tail: Promise.resolve() }
    if (queue.count >= MAX_PER_GROUP || admitted >= depth + MAX_WAITING) return undefined
    const isFirst = queue.count === 0
    const previous = queue.tail
    const released = Promise.withResolvers<void>()
    queue.count++
    admitted++
    queue.tail = previous.then(() => released.promise)
    groups.set(group, queue)

    let holdsSlot = false
    let isReleased = false
    return {
      waitForTurn: async deadline => isFirst || resolvesBefore(previous, deadline),
      async waitForSlot(deadline) {
        holdsSlot = await takeSlot(deadline)
        return holdsSlot
      },
      release() {
        if (isReleased) return
        isReleased = true
        admitted--
        queue.count--
        if (queue.count === 0) groups.delete(group)
        released.resolve()
        if (holdsSlot) freeSlot()
      },
    }
  }

  /** Records that a transaction was included quickly. */
  function recordSuccess() {
    const now = Date.now()
    if (now - windowStart < (isDoubling ? DOUBLING_WINDOW_MS : STEP_WINDOW_MS)) return
    if (wasFull) depth = Math.min(MAX_DEPTH, isDoubling ? depth * 2 : depth + DEPTH_STEP)
    windowStart = now
    wasFull = false
    fillSlots()
  }

  /** Records a rejected nonce, an unknown outcome or a slow inclusion. */
  function recordTrouble() {
    const now = Date.now()
    isDoubling = false
    windowStart = now
    wasFull = false
    if (now - lastTrouble < STEP_WINDOW_MS) return
    lastTrouble = now
    depth = Math.max(MIN_DEPTH, Math.floor(depth / 2))
  }

  return { enter, recordSuccess, recordTrouble, depth: () => depth }
}

const resolvesBefore = (promise: Promise<void>, deadline: number): Promise<boolean> =>
  withDeadline(
    promise.then(() => true),
    deadline,
    () => false,
  )
