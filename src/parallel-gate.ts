/** Ends a turn. Calling it again does nothing. */
export type Leave = () => void

export type ParallelGateOptions = {
  /** How many turns run at a time, of all keys and of one key. */
  maxParallel: number
  maxParallelPerKey: number
  maxWaitingPerKey: number
  maxWaitMs: number
}

type Turn = { key: string; startedAt: number }

/** A turn that lasts longer has lost its request, and must not keep others out. */
const MAX_TURN_MS = 15_000

/**
 * Creates a gate that lets few requests work at a time. The keys take turns, so one with many requests delays its own. `enter`
 * returns the function that ends the turn, at once if there is room; undefined if the key has too many requests waiting or
 * waited too long. With `mustEnter` a request is let in after the wait.
 */
export function createParallelGate({
  maxParallel,
  maxParallelPerKey,
  maxWaitingPerKey,
  maxWaitMs,
}: ParallelGateOptions) {
  const running = new Set<Turn>()
  const runningByKey = new Map<string, number>()
  const waiting = new Map<string, (() => void)[]>()

  const hasRoom = (key: string) => running.size < maxParallel && (runningByKey.get(key) ?? 0) < maxParallelPerKey

  function start(key: string): Leave {
    const turn = { key, startedAt: Date.now() }
    running.add(turn)
    runningByKey.set(key, (runningByKey.get(key) ?? 0) + 1)
    return () => end(turn)
  }

  function end(turn: Turn) {
    if (!running.delete(turn)) return
    const left = (runningByKey.get(turn.key) ?? 0) - 1
    if (left > 0) runningByKey.set(turn.key, left)
    else runningByKey.delete(turn.key)
    startNext()
  }

  function startNext() {
    for (const [key, [next]] of waiting) if (next !== undefined && hasRoom(key)) return next()
  }

  function endLostTurns(now: number) {
    for (const turn of running) {
      if (now - turn.startedAt < MAX_TURN_MS) return
      end(turn)
    }
  }

  function removeWaiting(key: string, waiter: () => void) {
    const others = (waiting.get(key) ?? []).filter(other => other !== waiter)
    // The key goes to the end of the line.
    waiting.delete(key)
    if (others.length > 0) waiting.set(key, others)
  }

  /** Timers belong to the request that set them, and another one may call `enter`: so it only resolves the promise. */
  async function wait(key: string, mustEnter: boolean): Promise<Leave | undefined> {
    const { promise, resolve } = Promise.withResolvers<Leave | undefined>()
    const enter = () => {
      removeWaiting(key, enter)
      resolve(start(key))
    }
    const giveUp = () => {
      if (mustEnter) return enter()
      removeWaiting(key, enter)
      resolve(undefined)
    }
    const timer = setTimeout(giveUp, maxWaitMs)
    waiting.set(key, [...(waiting.get(key) ?? []), enter])
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    enter(key: string, { mustEnter = false } = {}): Leave | undefined | Promise<Leave | undefined> {
      if (!hasRoom(key)) endLostTurns(Date.now())
      const ahead = waiting.get(key)?.length ?? 0
      if (ahead === 0 && hasRoom(key)) return start(key)
      if (ahead >= maxWaitingPerKey && !mustEnter) return undefined
      return wait(key, mustEnter)
    },
  }
}
