import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../devnet/anvil.ts'
import { type CpuProfile, profileWorkerd, selfTimes } from './cpu-profile.ts'
import { startLoadGenerator } from './load-generator.ts'
import { type LoadProfile, type Measurement, startTestbed, type Testbed } from './relay-throughput.ts'
import { bundleWorker } from './workerd.ts'

// `npm run bench:costs [-- --peer] [--baseline worker.js] [--runs 3] [--latency] [--counts] [--profile x.cpuprofile]`:
// measures the cost of one relayed intent: CPU, requests to the node, statements and rows of SQLite. A short run for
// work on the lane; --baseline measures another bundle in turn with this one. `npm run bench` measures the targets.
const { values } = parseArgs({
  options: {
    intents: { type: 'string', default: '600' },
    profile: { type: 'string' },
    baseline: { type: 'string' },
    peer: { type: 'boolean', default: false },
    counts: { type: 'boolean', default: false },
    latency: { type: 'boolean', default: false },
    runs: { type: 'string', default: '1' },
  },
})
const intents = Number(values.intents)
const CROWD: LoadProfile = { intents, warmUp: 300, clients: 64 }
const PACED: LoadProfile = { intents: 300, perSecond: 100 }

const figure = ({ perSecond, p50, p99, succeeded, wrongIds, cpu, busy }: Measurement) =>
  `${perSecond.toFixed(0)}/s, p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${succeeded} succeeded, ${wrongIds} wrong ids, CPU in ms per intent: ${cpu.subject.toFixed(2)}, anvil ${cpu.anvil.toFixed(2)}, client ${cpu.client.toFixed(2)}; ${busy.toFixed(2)} cores`
const say = (name: string, measurement: Measurement) => console.log(`${name}: ${figure(measurement)}`)

/** Each measurement has a new chain: its prices are never older than a trade accepts, and it has no other history. */
async function onNewChain(use: (testbed: Testbed) => Promise<void>): Promise<void> {
  const testbed = await startTestbed(loadGenerator)
  try {
    await use(testbed)
  } finally {
    await testbed.stop()
  }
}

const loadGenerator = startLoadGenerator()
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-costs-'))
try {
  for (let run = 1; run <= Number(values.runs); run++) {
    if (values.latency)
      await onNewChain(async ({ raw }) => {
        say('presigned, 64 clients', await raw(CROWD))
        say('presigned, 100 a second', await raw(PACED))
      })
    if (values.peer)
      await onNewChain(testbed => testbed.peer(async measure => say('Express peer', await measure(CROWD))))
    for (const bundle of [values.baseline ?? [], undefined].flat())
      await onNewChain(testbed =>
        testbed.service(
          1,
          async measure => {
            const name = bundle ?? 'this build'
            say(`${name}, 64 clients`, await measure(CROWD))
            if (values.latency) say(`${name}, 100 a second`, await measure(PACED))
          },
          { bundle },
        ),
      )
  }
  if (values.counts) {
    const bundle = await bundleWorker('bench/worker-with-counters.ts', folder)
    await onNewChain(testbed =>
      testbed.service(
        1,
        async (measure, { url }) => {
          const countsOf = async (profile: LoadProfile) => {
            await fetch(`${url}/counts`)
            const { succeeded } = await measure(profile)
            console.log(`${succeeded} succeeded`)
            const counts = (await (await fetch(`${url}/counts`)).json()) as Record<string, number>
            const sent = profile.intents + (profile.warmUp ?? 0)
            for (const [name, count] of Object.entries(counts).toSorted())
              console.log(`  ${name.padEnd(48)} ${(count / sent).toFixed(3)}`)
          }
          console.log('per intent, 64 clients:')
          await countsOf(CROWD)
          console.log('per intent, 4 clients:')
          await countsOf({ intents: 40, clients: 4 })
        },
        { bundle },
      ),
    )
  }
  const { profile: profilePath } = values
  if (profilePath !== undefined) {
    const inspectorPort = await freePort()
    await onNewChain(testbed =>
      testbed.service(
        1,
        async measure => {
          await measure({ intents: 400, clients: 64 })
          const profile: CpuProfile = await profileWorkerd(inspectorPort, () => measure({ intents, clients: 64 }))
          writeFileSync(profilePath, JSON.stringify(profile))
          console.log(selfTimes(profile, intents))
        },
        { inspectorPort },
      ),
    )
  }
} finally {
  loadGenerator.stop()
  rmSync(folder, { recursive: true })
}
