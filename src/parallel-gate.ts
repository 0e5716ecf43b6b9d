import { sleep } from './concurrency.ts'

/** Ends a turn. Calling it again does nothing. */
export type Leave = () => void

export type ParallelGateOptions = {
  /** How many turns hold a place at a time, and how long one holds it: a longer turn waits for something else. */
  places: number
  /** How many turns hold a place in the second after a request with priority; one of them may open a stream. */
  placesBesidePriority: number
  maxHoldMs: number
  /** How many turns run at a time, with a place or without. One key has at most half of the places and of the turns. */
  maxParallel: number
  maxWaitingPerKey: number
  maxWaitMs: number
}

type Turn = { key: string; opensStream: boolean; startedAt: number }
/** A request that waits; a later one has a higher number. `leave` is set once it has a turn. */
type Ticket = { number: number; opensStream: boolean; leave?: Leave }

/** How often a waiting request checks whether it is its turn: one millisecond per request ahead, within these bounds. */
const MIN_POLL_MS = 10
const MAX_POLL_MS = 50
/** For how long a request with priority reduces the places. */
const PRIORITY_MS = 1_000
/** A turn that lasts longer belongs to a lost request and must not block others. */
const MAX_TURN_MS = 15_000

/**
 * Creates a gate that bounds how many requests are worked on at a time. Keys take turns, so a key with many requests
 * delays only its own. `enter` returns the function that ends the turn, immediately if there is room; undefined if the
 * key has too many waiting requests or the wait was too long. With `mustEnter` a request enters after the wait; if too many
 * requests of its key wait, it waits without a place in the queue.
 */
export function createParallelGate({
  places: allPlaces,
  placesBesidePriority,
  maxHoldMs,
  maxParallel,
  maxWaitingPerKey,
  maxWaitMs,
}: ParallelGateOptions) {
  /** The turns from the oldest to the newest; those with a place are the newest. */
  const running = new Set<Turn>()
  const holding = new Set<Turn>()
  const runningByKey = new Map<string, number>()
  const waiting = new Map<string, Set<Ticket>>()
  let lastNumber = 0
  let lastPriorityAt = Number.NEGATIVE_INFINITY

  const hasPriority = () => Date.now() - lastPriorityAt < PRIORITY_MS

  function hasRoom(key: string, opensStream: boolean): boolean {
    if (running.size >= maxParallel || (runningByKey.get(key) ?? 0) >= maxParallel / 2) return false
    const places = hasPriority() ? placesBesidePriority : allPlaces
    if (holding.size >= places) return false
    let held = 0
    for (const turn of holding) {
      if (turn.key === key) held++
      if (opensStream && turn.opensStream && hasPriority()) return false
    }
    return held < places / 2
  }

  function start(key: string, opensStream: boolean): Leave {
    const turn = { key, opensStream, startedAt: Date.now() }
    running.add(turn)
    holding.add(turn)
    runningByKey.set(key, (runningByKey.get(key) ?? 0) + 1)
    return () => end(turn)
  }

  function end(turn: Turn) {
    if (!running.delete(turn)) return
    holding.delete(turn)
    const left = (runningByKey.get(turn.key) ?? 0) - 1
    if (left > 0) runningByKey.set(turn.key, left)
    else runningByKey.delete(turn.key)
    startNext()
  }

  function startNext() {
    for (const [key, tickets] of waiting) {
      const [ticket] = tickets
      if (ticket === undefined || !hasRoom(key, ticket.opensStream)) continue
      remove(key, ticket)
      ticket.leave = start(key, ticket.opensStream)
      return
    }
  }

  /** Frees the places of slow turns, and ends lost turns. */
  function freePlaces(now: number) {
    for (const turn of holding) {
      if (now - turn.startedAt < maxHoldMs) break
      holding.delete(turn)
    }
    for (const turn of running) {
      if (now - turn.startedAt < MAX_TURN_MS) break
      end(turn)
    }
  }

  function remove(key: string, ticket: Ticket) {
    const tickets = waiting.get(key)
    tickets?.delete(ticket)
    // The key goes to the end of the line.
    waiting.delete(key)
    if (tickets !== undefined && tickets.size > 0) waiting.set(key, tickets)
  }

  /** Polls, because a request that is woken by another one would continue in the context of that one. */
  async function wait(key: string, opensStream: boolean, mustEnter: boolean): Promise<Leave | undefined> {
    const ticket: Ticket = { number: ++lastNumber, opensStream }
    const tickets = waiting.get(key) ?? new Set()
    waiting.set(key, tickets.add(ticket))
    const deadline = Date.now() + maxWaitMs
    while (ticket.leave === undefined && Date.now() < deadline) {
      const [first = ticket] = tickets
      await sleep(Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, ticket.number - first.number)))
      freePlaces(Date.now())
      startNext()
    }
    if (ticket.leave === undefined) remove(key, ticket)
    return ticket.leave ?? (mustEnter ? start(key, opensStream) : undefined)
  }

  return {
    /** Notes a request with priority: it needs no turn, and for a second fewer of the others run. */
    notePriority() {
      lastPriorityAt = Date.now()
    },
    /** Tells whether there was a request with priority within the last second. */
    hasPriority,
    enter(
      key: string,
      { mustEnter = false, opensStream = false } = {},
    ): Leave | undefined | Promise<Leave | undefined> {
      freePlaces(Date.now())
      const ahead = waiting.get(key)?.size ?? 0
      if (ahead === 0 && hasRoom(key, opensStream)) return start(key, opensStream)
      if (ahead < maxWaitingPerKey) return wait(key, opensStream, mustEnter)
      return mustEnter ? sleep(maxWaitMs).then(() => start(key, opensStream)) : undefined
    },
  }
}
