import { sleep } from '../concurrency.ts'

/** Ends a turn. Calling it again does nothing. */
export type Leave = () => void

/** A request that waits, or that is worked on since `startedAt` (epoch milliseconds). A later one has a higher number. */
type Turn = { key: string; number: number; startedAt: number }

/** How often a waiting request checks whether it is its turn, plus one millisecond for each one ahead of it. */
const POLL_MS = 10
/**
 * The runtime ends a request that outlives its response or its client by 30 seconds, and then nothing leaves for it. No request
 * takes that long otherwise, however busy the isolate is: reads, submissions and uploads have time limits.
 */
const MAX_TURN_MS = 60_000

/**
 * Creates a cap on how many requests are worked on at a time: `slots()`, at most half of them of one key. A request holds its
 * slot until it leaves, however busy the isolate is, or for `maxTurnMs`. The keys of waiting requests take turns.
 */
export function createParallelCap(slots: () => number, maxTurnMs = MAX_TURN_MS) {
  /** The oldest turn first. */
  const running = new Set<Turn>()
  /** The key that comes next first. */
  const waiting = new Map<string, Set<Turn>>()
  let lastNumber = 0

  function hasRoom(key: string): boolean {
    const maximum = slots()
    if (running.size >= maximum) return false
    let held = 0
    for (const turn of running) if (turn.key === key) held++
    return held < maximum / 2
  }

  function startNext(): void {
    for (const turn of running) {
      if (Date.now() - turn.startedAt < maxTurnMs) break
      running.delete(turn)
    }
    for (const [key, turns] of waiting) {
      const [turn] = turns
      if (turn === undefined || !hasRoom(key)) continue
      turns.delete(turn)
      waiting.delete(key)
      if (turns.size > 0) waiting.set(key, turns) // at the end of the line
      turn.startedAt = Date.now()
      running.add(turn)
    }
  }

  /**
   * Resolves with the end of the turn once there is a slot; undefined if there is none within `maxWaitMs`. Polls, because the
   * runtime would continue a request that another one wakes in the context of that one.
   */
  async function enter(key: string, maxWaitMs: number): Promise<Leave | undefined> {
    const deadline = Date.now() + maxWaitMs
    const turn: Turn = { key, number: ++lastNumber, startedAt: 0 }
    const turns = waiting.get(key) ?? new Set()
    waiting.set(key, turns.add(turn))
    startNext()
    while (!running.has(turn) && Date.now() < deadline) {
      const [first = turn] = turns
      await sleep(Math.min(deadline - Date.now(), POLL_MS + turn.number - first.number))
      startNext()
    }
    if (running.has(turn))
      return () => {
        if (running.delete(turn)) startNext()
      }
    turns.delete(turn)
    if (turns.size === 0) waiting.delete(key)
    return undefined
  }

  return { enter, isCrowded: () => waiting.size > 0 }
}
