import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startDevnet } from '../devnet/index.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { median } from './load-generator.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { agentsFor, registerAgents, type SignedOpen, signOpens } from './signed-intents.ts'
import { openStreamClients } from './stream-clients.ts'
import { startWorkerd } from './workerd.ts'

// `npm run bench:streams`: measures how long an event takes to reach many streams, and how much of workerd's memory a
// stream uses. `-- --streams 2000` opens fewer, `-- --print` leaves bench/results.md as it is. Opens at most as many as
// the machine's limit of open files allows.

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '10000' },
    objects: { type: 'string', default: '16' },
    print: { type: 'boolean', default: false },
  },
})
/** workerd uses two file descriptors for each connection. */
const FILES_PER_STREAM = 2
/** What else workerd opens: databases, connections to the node, requests. */
const OTHER_FILES = 400
const maxStreams = Math.floor((maxOpenFiles() - OTHER_FILES) / FILES_PER_STREAM)
const streams = Math.min(Number(values.streams), maxStreams)
const objects = Number(values.objects)
const INTENTS = 7
/** Streams that open before the first measurement, so that it does not include one-time allocations. */
const WARM_UP = 200
const KIB = 1024

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)

const machine = describeMachine()
say(machine)
if (streams < Number(values.streams))
  say(`This machine allows ${maxOpenFiles()} open files per process, which suffices for ${streams} streams.`)
const storage = mkdtempSync(join(tmpdir(), 'agent-trading-service-streams-'))
const devnet = await startDevnet({ blockMs: 250 })
const vars = {
  ...workerVars(devnet.deployment),
  ...unlimitedGas,
  X402_ENABLED: 'false',
  KEEPER_ENABLED: 'false',
  EVENT_STREAM_OBJECTS: `${objects}`,
  // All clients connect at once, and none has a verified signature.
  MAX_PARALLEL_REQUESTS: '0',
}
const workerd = await startWorkerd({ vars, persistTo: storage, inspectorPort: 0 })
try {
  const agents = await registerAgents(devnet, agentsFor(INTENTS))
  const intents = await signOpens(devnet, agents, INTENTS)
  await untilEvents(({ blockNumber }) => blockNumber !== null)
  const warmUp = await openStreamClients(workerd.url, WARM_UP)
  await submit(intents[0])
  await warmUp.untilAllHave(1)
  warmUp.close()
  await untilEvents(({ streams }) => streams === 0)

  const before = { resident: residentBytes(), heap: await workerd.heapBytes() }
  const usedBefore = workerd.cpuSeconds()
  const openedAt = performance.now()
  const clients = await openStreamClients(workerd.url, streams)
  const openingSeconds = (performance.now() - openedAt) / 1_000
  const openingCpu = workerd.cpuSeconds() - usedBefore
  const opened = { resident: residentBytes(), heap: await workerd.heapBytes() }
  say(`${streams} streams opened in ${openingSeconds.toFixed(1)} s, ${openingCpu.toFixed(1)} s of CPU`)

  const fanOuts: { wall: number; sinceResponse: number; cpu: number; events: number }[] = []
  for (const intent of intents.slice(1)) {
    const [had = 0] = clients.ids.map(ids => ids.length)
    const used = workerd.cpuSeconds()
    const reached = clients.untilAllHave(had + 1)
    await submit(intent)
    const respondedAt = performance.now()
    const { first, last } = await reached
    await quiet(clients.ids)
    const events = (clients.ids[0]?.length ?? 0) - had
    fanOuts.push({ wall: last - first, sinceResponse: last - respondedAt, cpu: workerd.cpuSeconds() - used, events })
    say(`${(last - first).toFixed(0)} ms from the first stream to the last, ${events} events`)
  }
  const received = new Set(clients.ids.map(ids => ids.join()))
  if (received.size !== 1) throw new Error('The streams received different events, or in a different order.')
  const after = { resident: residentBytes(), heap: await workerd.heapBytes() }
  clients.close()

  const perStream = (from: number, to: number) => `${((to - from) / streams / KIB).toFixed(1)} KiB`
  const times = fanOuts.map(({ wall }) => wall)
  const cpuPerEvent = fanOuts.map(({ cpu, events }) => (cpu / events / streams) * 1e6)
  const section = [
    '## Event streams',
    `\`npm run bench:streams\`: ${streams} clients of GET /events, each with its own address, in ${objects} objects that share one thread of workerd with the Worker and the lanes. Each of ${fanOuts.length} intents causes a few events, which every stream must receive with the same ids in the same order. Clients, service and chain share the cores of this machine.`,
    `Machine: ${machine}.`,
    table(
      ['', 'measured', 'target', ''],
      [
        ['opening all streams', `${openingSeconds.toFixed(1)} s, ${openingCpu.toFixed(1)} s of CPU`, '', ''],
        [
          'time of an event from the first stream to the last, median and maximum',
          `${median(times).toFixed(0)} and ${Math.max(...times).toFixed(0)} ms`,
          '2,000 ms',
          Math.max(...times) < 2_000 ? 'met' : 'missed',
        ],
        ['CPU of workerd per event and stream', `${median(cpuPerEvent).toFixed(0)} µs`, '', ''],
        [
          'JavaScript heap per stream, object and Worker together',
          `${perStream(before.heap, opened.heap)}, ${perStream(before.heap, after.heap)} after the events`,
          '40 KiB',
          (after.heap - before.heap) / streams < 40 * KIB ? 'met' : 'missed',
        ],
        [
          'resident memory of workerd per stream, an upper bound: includes the socket and the 64 KiB buffer through which the Worker copies a response',
          `${perStream(before.resident, opened.resident)}, ${perStream(before.resident, after.resident)} after the events`,
          '',
          '',
        ],
      ],
    ),
  ].join('\n\n')
  console.log(`\n${section}`)
  if (!values.print) writeSection('streams', section)
} finally {
  await workerd.stop()
  await devnet.stop()
  rmSync(storage, { recursive: true, force: true, maxRetries: 5 })
}

async function submit(intent: SignedOpen | undefined) {
  const response = await fetch(`${workerd.url}/agents/${intent?.agentId}/trade-intents`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(intent?.body),
  })
  if (response.status !== 201) throw new Error(`The intent was refused: ${await response.text()}`)
}

/**
 * Resolves once every stream has as many events as the first one and nothing has arrived for a second, or after half a
 * minute.
 */
async function quiet(ids: readonly string[][]) {
  const deadline = performance.now() + 30_000
  for (let before = -1; performance.now() < deadline; ) {
    const received = sum(ids)
    if (received === before && received === (ids[0]?.length ?? 0) * ids.length) return
    before = received
    await new Promise(resolve => setTimeout(resolve, 1_000))
  }
}

function sum(ids: readonly string[][]): number {
  return ids.reduce((total, { length }) => total + length, 0)
}

/** Resolves once the service's readiness shows this state of the event streams. */
async function untilEvents(is: (events: { streams: number; blockNumber: string | null }) => boolean) {
  for (;;) {
    const response = await fetch(`${workerd.url}/health/ready`)
    const { events } = (await response.json()) as { events?: Parameters<typeof is>[0] }
    if (events && is(events)) return
    await new Promise(resolve => setTimeout(resolve, 500))
  }
}

function maxOpenFiles(): number {
  const [, limit] = /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
}

function residentBytes(): number {
  return KIB * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${workerd.pid}/status`, 'utf8'))?.[1])
}
