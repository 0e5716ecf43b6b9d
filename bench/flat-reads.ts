import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { privateKeyToAccount } from 'viem/accounts'
import { type Devnet, startDevnet } from '../devnet/index.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts'
import { between, type Counts, createMeter, mapCounts } from './counts/meter.ts'
import { agentIdAt, withRealAgents } from './counts/synthetic-agents.ts'
import { median } from './load-generator.ts'
import { describeMachine, table, writeSection } from './results-file.ts'
import { registerAgents, type SignedOpen, signOpens } from './signed-intents.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

// `npm run bench:flat`: counts the cost of a request with 100 and with 10,000 agents that have open positions, and with
// 2,000 and with 2,000,000 trades of a year. The agents are rows of the index; a proxy in front of the chain replaces
// their ids with the ids of a few real agents. The trades are copies of one on the chain, which began a year ago.

const AGENTS = [100, 10_000]
const TRADES = [2_000, 2_000_000]
const REAL_AGENTS = 20
const REPEATS = 20
const POLL_MS = 250
const YEAR_SECONDS = 365 * 86_400

type Row = { what: string; counts: Counts; bytes: number; ms: number }

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
  const ofAgents: Row[][] = []
  for (const size of AGENTS) ofAgents.push(await measureAgents(bundle, size))
  const { measured: ofTrades, rowsPerSecond, bytes } = await measureTrades(bundle, TRADES)
  const sizesOf = (sizes: number[]) => sizes.map(size => size.toLocaleString('en')).join(' → ')
  writeSection(
    'flat reads',
    `## Reads by the number of agents and trades

\`npm run bench:flat\`: the cost of one of each, from ${REPEATS} in a row; the times are medians. CPU is that of the whole workerd process,
including idle work in that time, so small differences mean nothing.

Machine: ${machine}.

With ${sizesOf(AGENTS)} agents that have an open position. The leaderboard parses the records of all agents.

${tableOf(ofAgents)}

With ${sizesOf(TRADES)} trades of one agent within a year. The chart has a point for each day. The database takes
${format(bytes / 2 ** 20)} MiB at the end; SQLite wrote ${format(rowsPerSecond)} of its rows a second, entries of indexes included.

${tableOf(ofTrades)}`,
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Returns a table with the figures of each size in each cell. */
function tableOf(measured: Row[][]): string {
  const columns: [string, (row: Row) => number][] = [
    ['requests to the node', ({ counts }) => counts.rpcRequests],
    ['bytes to and from it', ({ counts }) => counts.rpcBytes],
    ['D1 rows read', ({ counts }) => counts.d1RowsRead],
    ['D1 rows written', ({ counts }) => counts.d1RowsWritten],
    ['rows read in objects', ({ counts }) => counts.objectRowsRead],
    ['bytes of the response', ({ bytes }) => bytes],
    ['CPU ms', ({ counts }) => counts.cpuMs],
    ['ms', ({ ms }) => ms],
  ]
  const rows = (measured[0] ?? []).map(({ what }, index) => [
    what,
    ...columns.map(([, of]) => measured.map(size => format(of(size[index] as Row))).join(' → ')),
  ])
  return table(['', ...columns.map(([heading]) => heading)], rows)
}

/** Starts a Worker that reads the chain through a node, and counts what it does. */
async function startCounted(bundle: string, name: string, devnet: Devnet, node: CountingProxy) {
  const vars = {
    ...workerVars(devnet.deployment),
    ...unlimitedGas,
    RPC_URL: node.url,
    KEEPER_ENABLED: 'false',
    READ_LEASE_MS: '0',
  }
  const worker = await startWorkerd({ vars, persistTo: join(folder, name), bundle })
  const meter = createMeter(worker, node)
  async function read(path: string, body?: unknown) {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${worker.url}${path}`, { ...init, headers })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} returned ${response.status}: ${text}`)
    return text
  }
  /** Returns the cost of each of REPEATS calls in a row. */
  async function count(what: string, run: (time: number) => Promise<string>): Promise<Row> {
    const before = await meter.read()
    const times: number[] = []
    let bytes = 0
    for (let time = 0; time < REPEATS; time++) {
      const start = performance.now()
      bytes += (await run(time)).length
      times.push(performance.now() - start)
    }
    const counts = mapCounts(between(before, await meter.read()), value => value / REPEATS)
    const ms = median(times)
    console.log(name, what, JSON.stringify(counts), bytes / REPEATS, ms)
    return { what, counts, bytes: bytes / REPEATS, ms }
  }
  async function countReads(paths: Record<string, string>): Promise<Row[]> {
    const rows: Row[] = []
    for (const [what, path] of Object.entries(paths)) {
      await read(path)
      rows.push(await count(what, () => read(path)))
    }
    return rows
  }
  return { read, count, countReads, stop: () => worker.stop() }
}

/** Counts every read with this number of agents, on a separate chain and Worker. */
async function measureAgents(bundle: string, size: number): Promise<Row[]> {
  const devnet = await startDevnet()
  const { deployment, client } = devnet
  const agents = await registerAgents(devnet, REAL_AGENTS)
  const opens = await signOpens(devnet, agents, REAL_AGENTS)
  const node = await startCountingProxy(devnet.rpcUrl, withRealAgents(agents.map(({ agentId }) => agentId)))
  const { read, count, countReads, stop } = await startCounted(bundle, `${size} agents`, devnet, node)
  try {
    for (const { agentId, body } of opens) await read(`/agents/${agentId}/trade-intents`, body)
    await read('/bench/cron')
    const { number, timestamp } = await client.getBlock()
    const vault = deployment.vaults.genesis
    await read('/bench/fill', { count: size, vault, block: Number(number) - 1, timestamp: Number(timestamp) })
    const rows = await countReads(READS)
    const uris = Array.from({ length: size }, (_, index) => `svc://agents/${agentIdAt(index)}/positions`)
    for (let from = 0; from < size; from += 500) await read('/bench/subscribe', uris.slice(from, from + 500))
    const notified = await count('notification of one agent, with a subscriber for each', time =>
      read('/bench/notify', [uris[time]]).then(() => ''),
    )
    return [...rows, notified]
  } finally {
    await stop()
    await node.stop()
    await devnet.stop()
  }
}

/** Counts the reads of an agent's history with each number of trades, on one chain that began a year ago. */
async function measureTrades(
  bundle: string,
  sizes: number[],
): Promise<{ measured: Row[][]; rowsPerSecond: number; bytes: number }> {
  const to = Math.floor(Date.now() / 1_000)
  const from = to - YEAR_SECONDS
  const devnet = await startDevnet({ startsAt: from })
  const { deployment, client } = devnet
  const [agent] = await registerAgents(devnet, 1)
  if (agent === undefined) throw new Error('No agent was registered.')
  const [open] = await signOpens(devnet, [agent], 1)
  await sendOpen(devnet, open as SignedOpen)
  await devnet.increaseTime(to - Number((await client.getBlock()).timestamp))
  await devnet.refreshPrices()
  const node = await startCountingProxy(devnet.rpcUrl)
  const { read, countReads, stop } = await startCounted(bundle, 'trades', devnet, node)
  const agentId = Number(agent.agentId)
  const path = `/agents/${agentId}`
  try {
    const block = Number(await client.getBlockNumber({ cacheTime: 0 })) - 1
    await read('/bench/cron')
    while (JSON.parse(await read('/bench/indexed')).block < block) await sleep(POLL_MS)
    // The hourly pass does not read trades up to this block.
    await read('/bench/fill', { count: 1, vault: deployment.vaults.genesis, block, timestamp: to })
    const old = btoa(`${Math.floor(block / 4)}-0`).replace(/=+$/, '')
    const measured: Row[][] = []
    let [first, rowsPerSecond, bytes] = [0, 0, 0]
    for (const count of sizes) {
      const start = Date.now()
      const text = await read('/bench/fill-trades', { agentId, first, count, block, from: from + 86_400, to })
      const filled = JSON.parse(text) as { rowsWritten: number; bytes: number }
      rowsPerSecond = filled.rowsWritten / ((Date.now() - start) / 1_000)
      bytes = filled.bytes
      first = count
      measured.push(
        await countReads({
          'GET /agents/{agentId}/trades, newest page': `${path}/trades?limit=50`,
          'GET /agents/{agentId}/trades, a page of the first quarter': `${path}/trades?limit=50&cursor=${old}`,
          'GET /trades': '/trades?limit=50',
          'chart of a year: GET /agents/{agentId}/equity-history': `${path}/equity-history?interval=1d&from=${from}&to=${to}`,
        }),
      )
    }
    return { measured, rowsPerSecond, bytes }
  } finally {
    await stop()
    await node.stop()
    await devnet.stop()
  }
}

/** Sends an OpenPosition to the chain itself: the service would compare its deadline with the present. */
async function sendOpen({ client, deployment }: Devnet, { call }: SignedOpen): Promise<void> {
  const executor = privateKeyToAccount(deployment.accounts.executor.privateKey)
  const nonce = await client.getTransactionCount({ address: executor.address })
  const fees = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 0n }
  const serializedTransaction = await executor.signTransaction({
    type: 'eip1559',
    chainId: deployment.chainId,
    gas: 3_000_000n,
    nonce,
    ...fees,
    ...call,
  })
  const hash = await client.sendRawTransaction({ serializedTransaction })
  const { status } = await client.waitForTransactionReceipt({ hash, timeout: 30_000 })
  if (status !== 'success') throw new Error('The position was not opened.')
}

function format(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : `${Math.round(value * 10) / 10}`
}
