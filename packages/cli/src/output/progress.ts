const FRAME_MS = 250

/**
 * Shows on a terminal what is waited for, with the seconds so far, while a promise is pending. The line is then
 * removed.
 */
export async function withProgress<T>(text: string, promise: Promise<T>): Promise<T> {
  const { stderr } = process
  if (!stderr.isTTY) return promise
  const started = Date.now()
  const draw = () => stderr.write(`\r\x1b[K${text}… ${Math.floor((Date.now() - started) / 1000)} s`)
  draw()
  const timer = setInterval(draw, FRAME_MS)
  try {
    return await promise
  } finally {
    clearInterval(timer)
    stderr.write('\r\x1b[K')
  }
}
