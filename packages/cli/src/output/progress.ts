const FRAME_MS = 250

/**
 * Shows on stderr what is waited for, with the seconds so far, while a promise is pending. On a terminal the line is
 * redrawn and then removed; elsewhere it is written once.
 */
export async function withProgress<T>(text: string, promise: Promise<T>): Promise<T> {
  const { stderr } = process
  if (!stderr.isTTY) {
    stderr.write(`${text}…\n`)
    return promise
  }
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
