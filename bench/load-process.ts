import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Hit, Load, Report } from './load-client.ts'

/** The process that makes the loads; one at a time. */
export type Loader = { fire(load: Load): Promise<Report>; stop(): void }

export function startLoader(): Loader {
  const child = fork(join(import.meta.dirname, 'load-client.ts'), { execArgv: [] })
  const ended = once(child, 'exit').then((): never => {
    throw new Error('the process that makes the load has ended')
  })
  ended.catch(() => {}) // it does at the end, when nobody waits
  return {
    async fire(load) {
      child.send(load)
      const [report] = (await Promise.race([once(child, 'message'), ended])) as [Report]
      return report
    },
    stop: () => void (child.connected && child.disconnect()),
  }
}

/** Milliseconds that this share of the hits took at most. */
export function quantile(hits: readonly Hit[], share: number): number {
  const sorted = hits.map(({ ms }) => ms).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
