import { createSemaphore, withDeadline } from '../concurrency.ts'
import { EXIT_KINDS, type IntentKind } from './relay-types.ts'

/** An intent's place in the lane. Deadlines are epoch milliseconds. */
export type LaneTicket = {
  /** Resolves to whether the previous intent of the group finished in time, and no other intent took the place. */
  waitForTurn(deadline: number): Promise<boolean>
  /**
   * Resolves to whether a slot in flight became free in time, and no other intent took the place. The slot is held
   * until `release`.
   */
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
/** How many risk-reducing intents may wait, and how many others. */
const MAX_WAITING = 256
const MAX_PER_GROUP = 4

/** A place of an intent that has no slot yet. */
type Place = { rank: number; displace: () => void }

/**
 * Limits how many transactions are in flight (the depth). One lost nonce blocks all later ones, so trouble halves the
 * depth and success lets it grow. Intents of one group run one after the other. Risk-reducing ones have places of their
 * own and go first. Of both kinds, those of agents that used less gas go first, and where all places are taken they
 * displace the others: no crowd keeps those out that use little.
 */
export function createInFlightLimit() {
  const slots = createSemaphore(INITIAL_DEPTH)
  let isDoubling = true
  let windowStart = 0
  let lastTrouble = 0
  let wasFull = false
  const waiting = { exits: new Set<Place>(), others: new Set<Place>() }
  const groups = new Map<string, { count: number; tail: Promise<void> }>()

  /** Returns the place of the highest rank, the newest of equals, if that is above a rank. */
  function lastPlaceAbove(rank: number, line: Set<Place>): Place | undefined {
    let last: Place | undefined
    for (const place of line) if (place.rank > rank && place.rank >= (last?.rank ?? 0)) last = place
    return last
  }

  /**
   * Admits an intent of a group whose agent has used this much gas; undefined if the lane or the group is at capacity.
   */
  function enter({ group, kind }: { group: string; kind: IntentKind }, usedGas = 0): LaneTicket | undefined {
    const isFirst = EXIT_KINDS.includes(kind)
    const line = isFirst ? waiting.exits : waiting.others
    const queue = groups.get(group) ?? { count: 0, tail: Promise.resolve() }
    if (queue.count >= MAX_PER_GROUP) return undefined
    if (line.size >= MAX_WAITING) {
      const last = lastPlaceAbove(usedGas, line)
      if (last === undefined) return undefined
      last.displace()
    }
    const isAlone = queue.count === 0
    const previous = queue.tail
    const released = Promise.withResolvers<void>()
    queue.count++
    queue.tail = previous.then(() => released.promise)
    groups.set(group, queue)

    let holdsSlot = false
    let isReleased = false
    const displaced = Promise.withResolvers<false>()
    const place = {
      rank: usedGas,
      displace() {
        line.delete(place)
        displaced.resolve(false)
      },
    }
    line.add(place)
    return {
      waitForTurn: async deadline =>
        isAlone || resolvesBefore(Promise.race([previous.then(() => true), displaced.promise]), deadline),
      async waitForSlot(deadline) {
        wasFull ||= slots.isFull()
        const wait = { deadline, displaced: displaced.promise, isFirst, rank: usedGas }
        holdsSlot = line.has(place) && (await slots.acquire(wait))
        line.delete(place)
        return holdsSlot
      },
      release() {
        if (isReleased) return
        isReleased = true
        line.delete(place)
        queue.count--
        if (queue.count === 0) groups.delete(group)
        released.resolve()
        if (holdsSlot) slots.release(isFirst)
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

const resolvesBefore = (promise: Promise<boolean>, deadline: number): Promise<boolean> =>
  withDeadline(promise, deadline, () => false)
