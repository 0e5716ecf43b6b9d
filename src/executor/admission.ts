import { withDeadline } from '../timeout.ts'

/** What an intent holds while it is under way; each part is released exactly once. */
export type Ticket = {
  /** Resolves to whether the group's turn came in time. */
  turn(until: number): Promise<boolean>
  /** Resolves to whether there is room in flight in time; the room is held until `leave`. */
  room(until: number): Promise<boolean>
  leave(): void
}

export type Admission = ReturnType<typeof createAdmission>

const FLOOR = 4
const START = 16
const CEILING = 128
const STEP = 8
/** A window in which everything went well lets the depth grow: doubling until the first trouble, then by steps. */
const DOUBLING_WINDOW_MS = 250
const STEP_WINDOW_MS = 1_000
const QUEUE_LIMIT = 256
const GROUP_LIMIT = 4

/**
 * How much is let into flight. The depth adapts: one lost nonce holds up everything behind it, so trouble halves it and
 * calm lets it grow. Groups take turns with themselves: an intent waits until its predecessor of the group is settled.
 */
export function createAdmission() {
  let depth = START
  let held = 0
  let admitted = 0
  let slowStart = true
  let windowStart = 0
  let lastTrouble = 0
  let wasFull = false
  const waiting: (() => void)[] = []
  const groups = new Map<string, { count: number; tail: Promise<void> }>()

  const wake = () => {
    while (held < depth && waiting.length > 0) {
      held++
      waiting.shift()?.()
    }
  }

  /** Takes an intent of a group in, or answers undefined when the lane or the group has enough. */
  function enter(group: string): Ticket | undefined {
    const queue = groups.get(group) ?? { count: 0, tail: Promise.resolve() }
    if (queue.count >= GROUP_LIMIT || admitted >= depth + QUEUE_LIMIT) return undefined
    const isFirst = queue.count === 0
    const before = queue.tail
    const done = Promise.withResolvers<void>()
    queue.count++
    admitted++
    queue.tail = before.then(() => done.promise)
    groups.set(group, queue)

    let hasRoom = false
    let hasLeft = false
    return {
      turn: async until => isFirst || inTime(before, until),
      async room(until) {
        wasFull ||= held >= depth
        if (held < depth && waiting.length === 0) held++
        else {
          const turn = Promise.withResolvers<void>()
          waiting.push(turn.resolve)
          if (!(await inTime(turn.promise, until))) {
            const place = waiting.indexOf(turn.resolve)
            if (place >= 0) waiting.splice(place, 1)
            else release()
            return false
          }
        }
        hasRoom = true
        return true
      },
      leave() {
        if (hasLeft) return
        hasLeft = true
        admitted--
        queue.count--
        if (queue.count === 0) groups.delete(group)
        done.resolve()
        if (hasRoom) release()
      },
    }
  }

  const release = () => {
    held--
    wake()
  }

  /** A transaction was included in good time. */
  function calm() {
    const now = Date.now()
    if (now - windowStart < (slowStart ? DOUBLING_WINDOW_MS : STEP_WINDOW_MS)) return
    if (wasFull) depth = Math.min(CEILING, slowStart ? depth * 2 : depth + STEP)
    windowStart = now
    wasFull = false
    wake()
  }

  /** A nonce bounced, an outcome is unknown, or an answer took too long. */
  function trouble() {
    const now = Date.now()
    slowStart = false
    windowStart = now
    wasFull = false
    if (now - lastTrouble < STEP_WINDOW_MS) return
    lastTrouble = now
    depth = Math.max(FLOOR, Math.floor(depth / 2))
  }

  return { enter, calm, trouble, depth: () => depth }
}

const inTime = (promise: Promise<void>, until: number): Promise<boolean> =>
  withDeadline(
    promise.then(() => true),
    until,
    () => false,
  )
