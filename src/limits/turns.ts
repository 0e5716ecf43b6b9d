import { sleep } from '../concurrency.ts'

/** Ends a turn. Calling it again does nothing. */
export type Leave = () => void

/** A request that waits, or that is worked on since `startedAt` (epoch milliseconds). */
type Turn = { key: string; startedAt: number }

/** How often a waiting request checks whether it is its turn, plus one millisecond for each request that waits. */
const POLL_MS = 10
/**
 * The runtime ends a request that outlives its response or its client by 30 seconds, and then nothing leaves for it. No
 * request takes that long otherwise, however busy the isolate is: reads, submissions and uploads have time limits.
 */
const MAX_TURN_MS = 60_000

/**
 * Creates the turns of an isolate: it works on `slots()` requests at a time, at most half of them of one key. A request
 * holds its slot until it leaves, however busy the isolate is, or for `maxTurnMs`. Of those that wait, the key that has
 * used least comes next.
 */
export function createTurns(
  slots: () => number,
  { usedBy = () => 0, maxTurnMs = MAX_TURN_MS }: { usedBy?: (key: string) => number; maxTurnMs?: number } = {},
) {
  /** The oldest turn first. */
  const running = new Set<Turn>()
  /** By key; the one that was served longest ago first. */
  const waiting = new Map<string, Set<Turn>>()

  /** Returns the key with a free slot that has used least; of equals, the one that was served longest ago. */
  function nextKey(): string | undefined {
    const maximum = slots()
    if (running.size >= maximum) return undefined
    const held = new Map<string, number>()
    for (const { key } of running) held.set(key, (held.get(key) ?? 0) + 1)
    let next: { key: string; used: number } | undefined
    for (const key of waiting.keys()) {
      const used = usedBy(key)
      if ((held.get(key) ?? 0) < maximum / 2 && used < (next?.used ?? Number.POSITIVE_INFINITY)) next = { key, used }
    }
    return next?.key
  }

  function startNext(): void {
    for (const turn of running) {
      if (Date.now() - turn.startedAt < maxTurnMs) break
      running.delete(turn)
    }
    for (let key = nextKey(); key !== undefined; key = nextKey()) {
      const turns = waiting.get(key) ?? new Set()
      const [turn] = turns
      waiting.delete(key)
      if (turn === undefined) continue
      turns.delete(turn)
      if (turns.size > 0) waiting.set(key, turns) // at the end of the line
      turn.startedAt = Date.now()
      running.add(turn)
    }
  }

  /**
   * Resolves with the end of the turn once there is a slot; undefined if there is none within `maxWaitMs`. Polls,
   * because the runtime would continue a request that another one wakes in the context of that one.
   */
  async function enter(key: string, maxWaitMs: number): Promise<Leave | undefined> {
    const deadline = Date.now() + maxWaitMs
    const turn: Turn = { key, startedAt: 0 }
    const turns = waiting.get(key) ?? new Set()
    const ahead = turns.size
    waiting.set(key, turns.add(turn))
    startNext()
    while (!running.has(turn) && Date.now() < deadline) {
      await sleep(Math.min(deadline - Date.now(), POLL_MS + Math.min(ahead, turns.size)))
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
