import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from './load-generator.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

// `npm run bench:signatures`: measures the CPU time of one recovery and one signature in workerd, in JavaScript and in
// WebAssembly.

const ROUNDS = 5
const CALLS = 1_000

const machine = describeMachine()
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-signatures-'))
const bundle = await bundleWorker('bench/signature-worker.ts', join(folder, 'bundle'))
const workerd = await startWorkerd({ vars: {}, bundle, persistTo: join(folder, 'storage') })

async function run(implementation: 'javascript' | 'webassembly', work: string, calls: number): Promise<number> {
  const before = workerd.cpuSeconds()
  const response = await fetch(`${workerd.url}/signatures/${implementation}/${work}/${calls}`)
  const { implementation: used } = (await response.json()) as { implementation: string }
  if (used.toLowerCase() !== implementation) throw new Error(`${used} was measured instead of ${implementation}.`)
  return 1_000 * (workerd.cpuSeconds() - before)
}

const memoryMb = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${workerd.pid}/status`, 'utf8'))?.[1]) / 1_000

try {
  const memoryBefore = memoryMb()
  const loadMs = await run('webassembly', 'load', 1)
  const loadMb = memoryMb() - memoryBefore
  const perCall = async (implementation: 'javascript' | 'webassembly', work: string) => {
    await run(implementation, work, CALLS / 4) // the isolate compiles hot code
    const rounds: number[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push((await run(implementation, work, CALLS)) / CALLS)
    return median(rounds)
  }
  const rows: string[][] = []
  for (const work of ['recover', 'sign']) {
    const [slow, fast] = [await perCall('javascript', work), await perCall('webassembly', work)]
    rows.push([work, `${slow.toFixed(2)} ms`, `${fast.toFixed(2)} ms`, `${(slow / fast).toFixed(1)} times`])
  }
  const section = `## Signatures

\`npm run bench:signatures\`: CPU of workerd per call, medians of ${ROUNDS} rounds of ${CALLS} calls. The first call in an isolate
instantiates the WebAssembly: ${loadMs.toFixed(0)} ms of CPU with its request, ${loadMb.toFixed(1)} MB of memory.

Machine: ${machine}.

${table(['', 'JavaScript', 'WebAssembly', 'faster'], rows)}`
  writeSection('signatures', section)
  console.log(section)
} finally {
  await workerd.stop()
  rmSync(folder, { recursive: true, force: true })
}
