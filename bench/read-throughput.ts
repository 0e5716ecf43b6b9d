import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadGenerator } from './load-generator.ts'
import { median } from './load-generator.ts'
import type { Testbed } from './relay-throughput.ts'
import { registerAgents } from './signed-intents.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

export type Reads = { path: string; perSecond: number; ofBare: number; cpuMs: number }

const ROUNDS = 3
const REQUESTS = 20_000
const CLIENTS = 32

/**
 * Measures reads per second of a cached block, and of a bare Hono route in the same isolate. Returns medians of several
 * rounds.
 */
export async function measureReads({ devnet, vars, storage }: Testbed, loadGenerator: LoadGenerator): Promise<Reads[]> {
  await registerAgents(devnet, 1)
  const bundle = await bundleWorker('bench/worker-with-baseline.ts', mkdtempSync(join(storage, 'bundle-')))
  const workerd = await startWorkerd({ vars, bundle, persistTo: mkdtempSync(join(storage, 'reads-')) })
  const paths = ['/bare', '/agents/1', '/prices']
  const rounds: Record<string, { perSecond: number; cpuMs: number }[]> = {}
  try {
    for (let round = 0; round <= ROUNDS; round++)
      for (const path of paths) {
        const requests = Array.from({ length: REQUESTS }, () => ({ method: 'GET', path }) as const)
        const before = workerd.cpuSeconds()
        const { results, seconds } = await loadGenerator.run({
          origin: workerd.url,
          requests,
          clients: CLIENTS,
          keepBodies: false,
        })
        const failed = results.find(({ status }) => status !== 200)
        if (failed) throw new Error(`${path} returned ${failed.status}.`)
        const cpuMs = (1_000 * (workerd.cpuSeconds() - before)) / REQUESTS
        // The first round is a warm-up, in which the isolate compiles hot code.
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
