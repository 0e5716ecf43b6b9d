/** Settles as `promise` does, or once `deadline` (epoch milliseconds) passes with what `onTimeout` returns or throws. */
export async function withDeadline<Value, Late>(
  promise: Promise<Value>,
  deadline: number,
  onTimeout: () => Late,
): Promise<Value | Late> {
  const timeout = Promise.withResolvers<Late>()
  const end = () => {
    try {
      timeout.resolve(onTimeout())
    } catch (error) {
      timeout.reject(error)
    }
  }
  const timer = setTimeout(end, Math.max(0, deadline - Date.now()))
  try {
    return await Promise.race([promise, timeout.promise])
  } finally {
    clearTimeout(timer) // a pending timer would keep a Durable Object in memory
  }
}

export const sleep = (milliseconds: number) => new Promise<void>(resolve => setTimeout(resolve, milliseconds))
