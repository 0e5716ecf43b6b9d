import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from './load-generator.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

// `npm run bench:signatures`: measures the CPU time of one recovery, one signature and one hash in workerd, in
// JavaScript and in WebAssembly.

const ROUNDS = 5
/** How often each work is done in a round. CPU time is counted in steps of 10 ms. */
const WORKS = [
  { work: 'recover', label: 'recover', calls: 1_000 },
  { work: 'sign', label: 'sign', calls: 1_000 },
  { work: 'keccak256', label: 'keccak-256 of 1,000 bytes', calls: 20_000 },
]

const machine = describeMachine()
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-signatures-'))
const bundle = await bundleWorker('bench/signature-worker.ts', join(folder, 'bundle'))
const workerd = await startWorkerd({ vars: {}, bundle, persistTo: join(folder, 'storage') })

async function run(implementation: 'javascript' | 'webassembly', work: string, calls: number): Promise<number> {
  const before = workerd.cpuSeconds()
  const response = await fetch(`${workerd.url}/signatures/${implementation}/${work}/${calls}`)
  const { implementations } = (await response.json()) as { implementations: string[] }
  if (implementations.some(name => name.toLowerCase() !== implementation))
    throw new Error(`${implementations.join(' and ')} was measured instead of ${implementation}.`)
  return 1_000 * (workerd.cpuSeconds() - before)
}

const memoryMb = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${workerd.pid}/status`, 'utf8'))?.[1]) / 1_000

try {
  const memoryBefore = memoryMb()
  const loadMs = await run('webassembly', 'load', 1)
  const loadMb = memoryMb() - memoryBefore
  const perCall = async (implementation: 'javascript' | 'webassembly', work: string, calls: number) => {
    await run(implementation, work, calls / 4) // the isolate compiles hot code
    const rounds: number[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push((await run(implementation, work, calls)) / calls)
    return median(rounds)
  }
  const rows: string[][] = []
  for (const { work, label, calls } of WORKS) {
    const [slow, fast] = [await perCall('javascript', work, calls), await perCall('webassembly', work, calls)]
    rows.push([label, `${slow.toPrecision(2)} ms`, `${fast.toPrecision(2)} ms`, `${(slow / fast).toFixed(1)} times`])
  }
  const section = `## Signatures

\`npm run bench:signatures\`: CPU of workerd per call, medians of ${ROUNDS} rounds of 1,000 calls, 20,000 for hashes. The first call in
an isolate instantiates the WebAssembly: ${loadMs.toFixed(0)} ms of CPU with its request, ${loadMb.toFixed(1)} MB of memory.

Machine: ${machine}.

${table(['', 'JavaScript', 'WebAssembly', 'faster'], rows)}`
  writeSection('signatures', section)
  console.log(section)
} finally {
  await workerd.stop()
  rmSync(folder, { recursive: true, force: true })
}
