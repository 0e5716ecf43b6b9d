/** Resolves with `promise`, or with `onTimeout()` once `deadline` (epoch milliseconds) passes. */
export async function withDeadline<Value, Late>(
  promise: Promise<Value>,
  deadline: number,
  onTimeout: () => Late,
): Promise<Value | Late> {
  const timeout = Promise.withResolvers<Late>()
  const timer = setTimeout(() => timeout.resolve(onTimeout()), Math.max(0, deadline - Date.now()))
  try {
    return await Promise.race([promise, timeout.promise])
  } finally {
    clearTimeout(timer) // a pending timer would keep a Durable Object in memory
  }
}
