import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDevnet } from '../devnet/index.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { startCountingProxy } from './counting-proxy.ts'
import { liveLife } from './counts/life.ts'
import { type Measured, writeMeasured } from './counts/measured.ts'
import { createMeter } from './counts/meter.ts'
import { updateScalingPage } from './counts/scaling-page.ts'
import { describeMachine } from './results-file.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

// `npm run bench:counts`: counts the billed operations of each step of an agent's life, on workerd and a chain with a
// block every 0.25 s. Writes bench/counts.json and the tables of docs/scaling.md computed from it.

const BLOCK_MS = 250
const IDLE_SECONDS = 60

const machine = describeMachine()
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-counts-'))
const devnet = await startDevnet({ blockMs: BLOCK_MS })
try {
  const node = await startCountingProxy(devnet.rpcUrl)
  const bundle = await bundleWorker(join(import.meta.dirname, 'counts/worker.ts'), folder)
  const vars = { ...workerVars(devnet.deployment), ...unlimitedGas, RPC_URL: node.url, OPERATOR_SECRET: 'x'.repeat(32) }
  const worker = await startWorkerd({ vars, persistTo: join(folder, 'state'), bundle })
  try {
    const measured: Measured = {
      machine,
      ...(await liveLife({ devnet, worker, meter: createMeter(worker, node), idleSeconds: IDLE_SECONDS, sleep })),
    }
    writeMeasured(measured)
    updateScalingPage(measured)
    console.log('written to bench/counts.json and docs/scaling.md')
  } finally {
    await worker.stop()
    await node.stop()
  }
} finally {
  await devnet.stop()
  rmSync(folder, { recursive: true, force: true })
}
