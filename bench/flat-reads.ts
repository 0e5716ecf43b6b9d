import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDevnet } from '../devnet/index.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { startCountingProxy } from './counting-proxy.ts'
import { between, type Counts, createMeter } from './counts/meter.ts'
import { agentIdAt, withRealAgents } from './counts/synthetic-agents.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { registerAgents, signOpens } from './signed-intents.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

// `npm run bench:flat [-- sizes…]`: counts the cost of a request with 100 and with 10,000 agents that have open
// positions. The agents are rows of the index; a proxy in front of the chain replaces their ids with the ids of a few
// real agents.

const sizes = process.argv.slice(2).map(Number)
const SIZES = sizes.length > 0 ? sizes : [100, 10_000]
const REAL_AGENTS = 20
const REPEATS = 20

type Row = { what: string; counts: Counts; bytes: number }

const READS: Record<string, string> = {
  'GET /agents': '/agents?limit=50',
  'GET /agents of a vault and a status': '/agents?limit=50&vault=genesis&status=Active',
  'GET /vaults/{id}/stats': '/vaults/genesis/stats',
  'GET /leaderboard': '/leaderboard?limit=50&period=all',
  'GET /leaderboard with a filter that nobody matches': '/leaderboard?limit=50&period=all&vault=frontier',
}

const machine = describeMachine()
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-flat-'))
try {
  const bundle = await bundleWorker(join(import.meta.dirname, 'counts/worker.ts'), folder)
  const measured: Row[][] = []
  for (const size of SIZES) measured.push(await measure(bundle, size))
  const columns: [string, (row: Row) => number][] = [
    ['requests to the node', ({ counts }) => counts.rpcRequests],
    ['bytes to and from it', ({ counts }) => counts.rpcBytes],
    ['D1 rows read', ({ counts }) => counts.d1RowsRead],
    ['D1 rows written', ({ counts }) => counts.d1RowsWritten],
    ['rows read in objects', ({ counts }) => counts.objectRowsRead],
    ['bytes of the response', ({ bytes }) => bytes],
    ['CPU ms', ({ counts }) => counts.cpuMs],
  ]
  const rows = (measured[0] ?? []).map(({ what }, index) => [
    what,
    ...columns.map(([, of]) => measured.map(size => format(of(size[index] as Row))).join(' → ')),
  ])
  writeSection(
    'flat reads',
    `## Reads by the number of agents

\`npm run bench:flat\`: the cost of one of each with ${SIZES.map(size => size.toLocaleString('en')).join(' → ')} agents that have an open position, from
${REPEATS} in a row. The leaderboard parses the records of all agents. CPU is that of the whole workerd process, including idle work
in that time, so small differences mean nothing.

Machine: ${machine}.

${table(['', ...columns.map(([heading]) => heading)], rows)}`,
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Counts every read with this number of agents, on a separate chain and Worker. */
async function measure(bundle: string, size: number): Promise<Row[]> {
  const devnet = await startDevnet()
  const { deployment, client } = devnet
  const agents = await registerAgents(devnet, REAL_AGENTS)
  const opens = await signOpens(devnet, agents, REAL_AGENTS)
  const node = await startCountingProxy(devnet.rpcUrl, withRealAgents(agents.map(({ agentId }) => agentId)))
  const vars = {
    ...workerVars(deployment),
    ...unlimitedGas,
    RPC_URL: node.url,
    KEEPER_ENABLED: 'false',
    READ_LEASE_MS: '0',
  }
  const worker = await startWorkerd({ vars, persistTo: join(folder, `${size}`), bundle })
  const meter = createMeter(worker, node)
  const read = async (path: string, body?: unknown) => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${worker.url}${path}`, { ...init, headers })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} returned ${response.status}: ${text}`)
    return text
  }
  const rows: Row[] = []
  /** Returns the counts per run of a step that runs `times`. */
  async function count(what: string, times: number, run: () => Promise<number>) {
    const before = await meter.read()
    const bytes = await run()
    const counted = between(before, await meter.read())
    const counts = Object.fromEntries(Object.entries(counted).map(([name, value]) => [name, value / times])) as Counts
    rows.push({ what, counts, bytes: bytes / times })
    console.log(size, what, JSON.stringify(counts), bytes / times)
  }
  try {
    for (const { agentId, body } of opens) await read(`/agents/${agentId}/trade-intents`, body)
    await read('/bench/cron')
    const { number, timestamp } = await client.getBlock()
    const vault = deployment.vaults.genesis
    await read('/bench/fill', { count: size, vault, block: Number(number) - 1, timestamp: Number(timestamp) })
    for (const [what, path] of Object.entries(READS)) {
      await read(path)
      await count(what, REPEATS, async () => {
        let bytes = 0
        for (let time = 0; time < REPEATS; time++) bytes += (await read(path)).length
        return bytes
      })
    }
    const uris = Array.from({ length: size }, (_, index) => `svc://agents/${agentIdAt(index)}/positions`)
    for (let from = 0; from < size; from += 500) await read('/bench/subscribe', uris.slice(from, from + 500))
    await count('notification of one agent, with a subscriber for each', REPEATS, async () => {
      for (let time = 0; time < REPEATS; time++) await read('/bench/notify', [uris[time]])
      return 0
    })
    return rows
  } finally {
    await worker.stop()
    await node.stop()
    await devnet.stop()
  }
}

function format(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : `${Math.round(value * 10) / 10}`
}
