import { fork } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import type { Load, LoadReport, LoadResult } from './load-child.ts'

/** A child process that runs loads, one at a time. */
export type LoadGenerator = { run(load: Load): Promise<LoadReport>; stop(): void }

/** Starts the child process; with `isNice` it yields to what it measures, as a load from other machines would. */
export function startLoadGenerator({ isNice = false } = {}): LoadGenerator {
  const child = fork(join(import.meta.dirname, 'load-child.ts'), { execArgv: [] })
  if (isNice && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  const ended = once(child, 'exit').then((): never => {
    throw new Error('The load generator has exited.')
  })
  ended.catch(() => {}) // after the last load nothing awaits it
  return {
    async run(load) {
      child.send(load)
      const [report] = (await Promise.race([once(child, 'message'), ended])) as [LoadReport]
      return report
    },
    stop: () => void (child.connected && child.disconnect()),
  }
}

/** Returns the milliseconds within which this share of the requests completed. */
export function quantile(results: readonly LoadResult[], share: number): number {
  const sorted = results.map(({ ms }) => ms).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
