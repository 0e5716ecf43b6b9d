import { createSemaphore, withDeadline } from '../concurrency.ts'
import { EXIT_KINDS, type RelayRequest } from './relay-types.ts'

/** An intent's place in the lane. Deadlines are epoch milliseconds. */
export type LaneTicket = {
  /** Resolves to whether the previous intent of the group finished in time. */
  waitForTurn(deadline: number): Promise<boolean>
  /** Resolves to whether a slot in flight became free in time. The slot is held until `release`. */
  waitForSlot(deadline: number): Promise<boolean>
  /** Frees everything the ticket holds. Only the first call has an effect. */
  release(): void
}

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
/** Further places for risk-reducing intents. */
const MAX_WAITING_TO_EXIT = 128
const MAX_PER_GROUP = 4

/**
 * Limits how many transactions are in flight (the depth). One lost nonce blocks all later ones, so trouble halves the
 * depth and success lets it grow. Intents of one group run one after the other. Risk-reducing ones have further
 * places and go first.
 */
export function createInFlightLimit() {
  const slots = createSemaphore(INITIAL_DEPTH)
  let admitted = 0
  let isDoubling = true
  let windowStart = 0
  let lastTrouble = 0
  let wasFull = false
  const groups = new Map<string, { count: number; tail: Promise<void> }>()

  /** Admits an intent of a group; undefined if the lane or the group is at capacity. */
  function enter({ group, kind }: Pick<RelayRequest, 'group' | 'kind'>): LaneTicket | undefined {
    const isExit = EXIT_KINDS.includes(kind)
    const maxWaiting = isExit ? MAX_WAITING + MAX_WAITING_TO_EXIT : MAX_WAITING
    const queue = groups.get(group) ?? { count: 0, tail: Promise.resolve() }
    if (queue.count >= MAX_PER_GROUP || admitted >= slots.size() + maxWaiting) return undefined
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
        wasFull ||= slots.isFull()
        holdsSlot = await slots.acquire(deadline, isExit)
        return holdsSlot
      },
      release() {
        if (isReleased) return
        isReleased = true
        admitted--
        queue.count--
        if (queue.count === 0) groups.delete(group)
        released.resolve()
        if (holdsSlot) slots.release()
      },
    }
  }

  /** Records that a transaction was included quickly. */
  function recordSuccess() {
    const now = Date.now()
    if (now - windowStart < (isDoubling ? DOUBLING_WINDOW_MS : STEP_WINDOW_MS)) return
    const depth = slots.size()
    if (wasFull) slots.resize(Math.min(MAX_DEPTH, isDoubling ? depth * 2 : depth + DEPTH_STEP))
    windowStart = now
    wasFull = false
  }

  /** Records a rejected nonce, an unknown outcome or a slow inclusion. */
  function recordTrouble() {
    const now = Date.now()
    isDoubling = false
    windowStart = now
    wasFull = false
    if (now - lastTrouble < STEP_WINDOW_MS) return
    lastTrouble = now
    slots.resize(Math.max(MIN_DEPTH, Math.floor(slots.size() / 2)))
  }

  return { enter, recordSuccess, recordTrouble, depth: slots.size }
}

const resolvesBefore = (promise: Promise<void>, deadline: number): Promise<boolean> =>
  withDeadline(
    promise.then(() => true),
    deadline,
    () => false,
  )
