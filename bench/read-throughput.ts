import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Loader } from './load-process.ts'
import { median } from './load-process.ts'
import { registerAgents } from './population.ts'
import type { Ground } from './relay-throughput.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

export type Reads = { path: string; perSecond: number; ofBare: number; cpuMs: number }

const ROUNDS = 3
const REQUESTS = 6_000
const CLIENTS = 32

/** Requests per second of reads on a warm block, beside a bare Hono route in the same isolate. Medians of several rounds. */
export async function measureReads({ devnet, vars, storage }: Ground, loader: Loader): Promise<Reads[]> {
  await registerAgents(devnet, 1)
  const bundle = await bundleWorker('bench/worker-with-baseline.ts', mkdtempSync(join(storage, 'beside-')))
  const workerd = await startWorkerd({ vars, bundle, persistTo: mkdtempSync(join(storage, 'reads-')) })
  const paths = ['/bare', '/agents/1', '/prices']
  const rounds: Record<string, { perSecond: number; cpuMs: number }[]> = {}
  try {
    for (let round = 0; round <= ROUNDS; round++)
      for (const path of paths) {
        const shots = Array.from({ length: REQUESTS }, () => ({ method: 'GET', path }) as const)
        const before = workerd.cpuSeconds()
        const { hits, seconds } = await loader.fire({ origin: workerd.url, shots, clients: CLIENTS, keepBodies: false })
        const failed = hits.find(({ status }) => status !== 200)
        if (failed) throw new Error(`${path} was answered ${failed.status}`)
        const cpuMs = (1_000 * (workerd.cpuSeconds() - before)) / REQUESTS
        // The first round makes the isolate compile what is hot.
        if (round > 0) rounds[path] = [...(rounds[path] ?? []), { perSecond: REQUESTS / seconds, cpuMs }]
      }
  } finally {
    await workerd.stop()
  }
  const bare = rounds['/bare'] ?? []
  return paths.map(path => {
    const of = rounds[path] ?? []
    const ratios = of.map(({ perSecond }, round) => perSecond / (bare[round]?.perSecond ?? Number.NaN))
    return {
      path,
      perSecond: median(of.map(({ perSecond }) => perSecond)),
      ofBare: median(ratios),
      cpuMs: median(of.map(({ cpuMs }) => cpuMs)),
    }
  })
}
