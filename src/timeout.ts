/** Waits for a promise until the given time (milliseconds); when that comes first, answers what `late` says. */
export async function patience<T, L>(promise: Promise<T>, until: number, late: () => L): Promise<T | L> {
  const timeout = Promise.withResolvers<L>()
  const timer = setTimeout(() => timeout.resolve(late()), Math.max(0, until - Date.now()))
  try {
    return await Promise.race([promise, timeout.promise])
  } finally {
    clearTimeout(timer) // a timer that is left would keep the Durable Object in memory
  }
}
