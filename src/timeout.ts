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
