// How work that runs at the same time is shared, ordered, limited and bounded in time. Except for `withDeadline` and
// `sleep`, only for callers of one Durable Object or of one request: in the Worker, a promise of a request that is
// cancelled never settles, so requests must not await each other's promises.

/** Resolves with the results of promises under their names. Rejects as soon as one does. */
export async function allNamed<const Reads extends Record<string, unknown>>(reads: Reads) {
  const results = await Promise.all(Object.values(reads))
  const named = Object.fromEntries(Object.keys(reads).map((name, index) => [name, results[index]]))
  return named as { [name in keyof Reads]: Awaited<Reads[name]> }
}

/** Splits items into batches of at most `size`. */
export const batchesOf = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(size * index, size * (index + 1)))

type Work<Args extends unknown[], Result> = (...args: Args) => Promise<Result>

/** Returns `work` as a single flight: a call during a run shares the run, whatever its arguments. */
export function singleFlight<Args extends unknown[], Result>(work: Work<Args, Result>): Work<Args, Result> {
  let running: Promise<Result> | undefined
  return (...args) => {
    running ??= work(...args).finally(() => {
      running = undefined
    })
    return running
  }
}

/**
 * Returns `work` as a single flight whose results are never older than the call: calls during a run share the next run,
 * which has the arguments of the first of them. It starts `pauseMs` after the end of the run, also if that one failed.
 */
export function singleFlightAgain<Args extends unknown[], Result>(
  work: Work<Args, Result>,
  pauseMs = 0,
): Work<Args, Result> {
  let idle: Promise<void> | undefined
  let next: Promise<Result> | undefined

  function start(args: Args): Promise<Result> {
    next = undefined
    const run = work(...args)
    const current = settled(run)
      .then(() => (pauseMs > 0 ? sleep(pauseMs) : undefined))
      .then(() => {
        if (idle === current) idle = undefined
      })
    idle = current
    return run
  }

  return (...args) => {
    if (next !== undefined) return next
    if (idle === undefined) return start(args)
    next = idle.then(() => start(args))
    return next
  }
}

/** Returns a function that runs work one piece after the other, in the order of the calls. */
export function createQueue(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last = Promise.resolve()
  return work => {
    const result = last.then(work)
    last = settled(result)
    return result
  }
}

/** Returns a function that runs work of the same key one piece after the other, in the order of the calls. */
export function createKeyedQueue<Key>(): <Result>(key: Key, work: () => Promise<Result>) => Promise<Result> {
  const lasts = new Map<Key, Promise<void>>()
  return (key, work) => {
    const result = (lasts.get(key) ?? Promise.resolve()).then(work)
    const last = settled(result).then(() => {
      if (lasts.get(key) === last) lasts.delete(key)
    })
    lasts.set(key, last)
    return result
  }
}

/**
 * How a caller waits for a slot: until `deadline` (epoch milliseconds), until `displaced` resolves, or as long as it
 * takes. Callers with `isFirst` get slots before the others, and of these and of those the ones with the lowest rank.
 */
type SlotWait = { deadline?: number; displaced?: Promise<unknown>; isFirst?: boolean; rank?: number }

/** While others wait, callers with `isFirst` hold at most this part of the slots. */
const MAX_FIRST_PART = 0.75

/** Creates a semaphore with this many slots. Waiting callers of the same rank get slots in their order. */
export function createSemaphore(slots: number) {
  let size = slots
  const held = { first: 0, other: 0 }
  type Wait = { rank: number; take: () => void }
  /** In the order in which they get slots. */
  const waiting = { first: [] as Wait[], other: [] as Wait[] }
  const isFull = () => held.first + held.other >= size

  function fill() {
    while (!isFull()) {
      const mayBeFirst = waiting.other.length === 0 || held.first < size * MAX_FIRST_PART
      const line = waiting.first.length > 0 && mayBeFirst ? 'first' : 'other'
      const next = waiting[line].shift()
      if (next === undefined) return
      held[line]++
      next.take()
    }
  }

  function release(isFirst = false) {
    held[isFirst ? 'first' : 'other']--
    fill()
  }

  return {
    /** Resolves to whether the caller got a slot. It is held until `release`. */
    async acquire({ deadline, displaced, isFirst = false, rank = 0 }: SlotWait = {}): Promise<boolean> {
      const name = isFirst ? 'first' : 'other'
      if (!isFull()) {
        held[name]++
        return true
      }
      const slot = Promise.withResolvers<boolean>()
      const wait = { rank, take: () => slot.resolve(true) }
      const line = waiting[name]
      line.splice(line.findLastIndex(other => other.rank <= rank) + 1, 0, wait)
      void displaced?.then(() => slot.resolve(false))
      const { promise } = slot
      if (await (deadline === undefined ? promise : withDeadline(promise, deadline, () => false))) return true
      const index = line.indexOf(wait)
      if (index >= 0) line.splice(index, 1)
      else release(isFirst) // it was assigned just after the wait ended
      return false
    },
    /** Returns a slot, of a caller that was `isFirst` if it says so. */
    release,
    /** Changes the number of slots. Slots that are held beyond it stay held. */
    resize(slots: number) {
      size = slots
      fill()
    },
    size: () => size,
    isFull,
  }
}

/**
 * Settles as `promise` does, or once `deadline` (epoch milliseconds) passes with what `onTimeout` returns or throws.
 */
export async function withDeadline<Value, Late>(
  promise: Promise<Value>,
  deadline: number,
  onTimeout: () => Late,
): Promise<Value | Late> {
  const timeout = createTimeout(onTimeout)
  const timer = setTimeout(timeout.end, Math.max(0, deadline - Date.now()))
  try {
    return await Promise.race([promise, timeout.promise])
  } finally {
    clearTimeout(timer) // a pending timer would keep a Durable Object in memory
  }
}

/**
 * Returns a function like `withDeadline` whose calls share one timer. Only for a Durable Object: in the Worker, a timer
 * ends with the request that set it.
 */
export function createSharedDeadlines(): typeof withDeadline {
  const waits = new Set<{ deadline: number; end: () => void }>()
  let timer: ReturnType<typeof setTimeout> | undefined
  let firesAt = Number.POSITIVE_INFINITY

  function armFor(deadline: number) {
    if (deadline >= firesAt) return
    clearTimeout(timer)
    firesAt = deadline
    timer = setTimeout(endDue, Math.max(0, deadline - Date.now()))
  }

  function disarm() {
    clearTimeout(timer)
    firesAt = Number.POSITIVE_INFINITY
  }

  function endDue() {
    disarm()
    const now = Date.now()
    for (const { deadline, end } of waits)
      if (deadline <= now) end()
      else armFor(deadline)
  }

  return async (promise, deadline, onTimeout) => {
    const timeout = createTimeout(onTimeout)
    const wait = { deadline, end: timeout.end }
    waits.add(wait)
    armFor(deadline)
    try {
      return await Promise.race([promise, timeout.promise])
    } finally {
      waits.delete(wait)
      if (waits.size === 0) disarm() // a pending timer would keep the object in memory
    }
  }
}

/**
 * Resolves with the result of `work`. Rejects with a TimeoutError after `timeoutMs`, whatever `work` waits for. Then,
 * and when `work` fails, it aborts the controller, so that nothing that `work` started outlives the call. A `work` that
 * succeeds while requests are open aborts them itself. `within` is `withDeadline`, or a variant whose calls share a
 * timer.
 */
export async function abortAfter<Value>(
  timeoutMs: number,
  work: (controller: AbortController) => Promise<Value>,
  within = withDeadline,
): Promise<Value> {
  const controller = new AbortController()
  try {
    return await within(work(controller), Date.now() + timeoutMs, () => {
      throw new DOMException('no response in time', 'TimeoutError')
    })
  } catch (error) {
    controller.abort(error)
    throw error
  }
}

/** Returns whether an error is the timeout of `abortAfter`. */
export const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError'

/** Returns a promise that `end` settles with what `onTimeout` returns or throws. */
function createTimeout<Late>(onTimeout: () => Late): { promise: Promise<Late>; end: () => void } {
  const { promise, resolve, reject } = Promise.withResolvers<Late>()
  const end = () => {
    try {
      resolve(onTimeout())
    } catch (error) {
      reject(error)
    }
  }
  return { promise, end }
}

export const sleep = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds))

/** Resolves after a pause, or as soon as the signal is aborted. */
export function sleepUnlessAborted(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer) // a pending timer would keep a Durable Object in memory
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    signal.addEventListener('abort', end)
  })
}

const settled = (promise: Promise<unknown>): Promise<void> =>
  promise.then(
    () => {},
    () => {},
  )
