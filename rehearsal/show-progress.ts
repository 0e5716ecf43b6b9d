const FRAME_MS = 500

/** Returns how long something takes, rounded up to seconds or minutes. */
export const timeLeftText = (seconds: number): string =>
  seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`

/**
 * Shows on a terminal how much of a market is played and about how long the rest takes, until the returned function is
 * called. Elsewhere nothing is shown.
 */
export function showProgress(partDone: () => number): () => void {
  const { stderr } = process
  if (!stderr.isTTY) return () => {}
  const startedAt = performance.now()
  const timer = setInterval(() => {
    const part = partDone()
    const seconds = (performance.now() - startedAt) / 1000
    const left = part > 0 ? `, about ${timeLeftText((seconds / part) * (1 - part))} left` : ''
    stderr.write(`\r\x1b[K${Math.floor(part * 100)} % played${left}`)
  }, FRAME_MS).unref()
  return () => {
    clearInterval(timer)
    stderr.write('\r\x1b[K')
  }
}
