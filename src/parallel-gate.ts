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
/** A request that waits. `leave` is set once it has a turn. */
type Ticket = { leave?: Leave }

/** How often a waiting request checks whether it is its turn. */
const POLL_MS = 10
/** A turn that lasts longer belongs to a lost request and must not block others. */
const MAX_TURN_MS = 15_000

/**
 * Creates a gate that bounds how many requests are worked on at a time. Keys take turns, so a key with many requests
 * delays only its own. `enter` returns the function that ends the turn, immediately if there is room; undefined if the
 * key has too many waiting requests or the wait was too long. With `mustEnter` a request enters after the wait.
 */
export function createParallelGate({
  maxParallel,
  maxParallelPerKey,
  maxWaitingPerKey,
  maxWaitMs,
}: ParallelGateOptions) {
  const running = new Set<Turn>()
  const runningByKey = new Map<string, number>()
  const waiting = new Map<string, Ticket[]>()

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
    for (const [key, [ticket]] of waiting) {
      if (ticket === undefined || !hasRoom(key)) continue
      remove(key, ticket)
      ticket.leave = start(key)
      return
    }
  }

  function endLostTurns(now: number) {
    for (const turn of running) {
      if (now - turn.startedAt < MAX_TURN_MS) return
      end(turn)
    }
  }

  function remove(key: string, ticket: Ticket) {
    const others = (waiting.get(key) ?? []).filter(other => other !== ticket)
    // The key goes to the end of the line.
    waiting.delete(key)
    if (others.length > 0) waiting.set(key, others)
  }

  /** Polls, because a request that is woken by another one would continue in the context of that one. */
  async function wait(key: string, mustEnter: boolean): Promise<Leave | undefined> {
    const ticket: Ticket = {}
    waiting.set(key, [...(waiting.get(key) ?? []), ticket])
    const deadline = Date.now() + maxWaitMs
    while (ticket.leave === undefined && Date.now() < deadline) {
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
    }
    if (ticket.leave === undefined) remove(key, ticket)
    return ticket.leave ?? (mustEnter ? start(key) : undefined)
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
