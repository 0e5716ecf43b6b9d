// How work that runs at the same time is shared, ordered, limited and bounded in time. Except for `withDeadline` and `sleep`,
// only for callers of one Durable Object or of one request: in the Worker, a promise of a request that is cancelled never
// settles, so requests must not await each other's promises.

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

/** Creates a semaphore with this many slots. Waiting callers get slots in their order, those with `isFirst` before the others. */
export function createSemaphore(slots: number) {
  let size = slots
  let held = 0
  const waiting: (() => void)[] = []
  const waitingFirst: (() => void)[] = []

  function fill() {
    while (held < size) {
      const next = waitingFirst.shift() ?? waiting.shift()
      if (next === undefined) return
      held++
      next()
    }
  }

  function release() {
    held--
    fill()
  }

  return {
    /**
     * Resolves to whether a slot became free by the deadline (epoch milliseconds; without one it waits as long as it takes).
     * The slot is held until `release`.
     */
    async acquire(deadline?: number, isFirst = false): Promise<boolean> {
      if (held < size) {
        held++
        return true
      }
      const slot = Promise.withResolvers<void>()
      const line = isFirst ? waitingFirst : waiting
      line.push(slot.resolve)
      const isHeld = slot.promise.then(() => true)
      if (await (deadline === undefined ? isHeld : withDeadline(isHeld, deadline, () => false))) return true
      const index = line.indexOf(slot.resolve)
      if (index >= 0) line.splice(index, 1)
      else release() // it was assigned just after the deadline
      return false
    },
    release,
    /** Changes the number of slots. Slots that are held beyond it stay held. */
    resize(slots: number) {
      size = slots
      fill()
    },
    size: () => size,
    isFull: () => held >= size,
  }
}

/** Settles as `promise` does, or once `deadline` (epoch milliseconds) passes with what `onTimeout` returns or throws. */
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
 * Resolves with the result of `work`. Rejects with a TimeoutError after `timeoutMs`, whatever `work` waits for. Then, and when
 * `work` fails, it aborts the controller, so that nothing that `work` started outlives the call. A `work` that succeeds while
 * requests are open aborts them itself. `within` is `withDeadline`, or a variant whose calls share a timer.
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
