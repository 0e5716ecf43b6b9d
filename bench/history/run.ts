import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { describeMachine, table, writeSection } from '../results-file.ts'
import { bundleWorker, startWorkerd } from '../workerd.ts'
import { startSyntheticNode } from './synthetic-node.ts'

// `npm run bench:history`: times pages of history at growing sizes, and the speed of writing rows.
// `npm run bench:history -- --backfill 1000000`: times the backfill of that many events from a synthetic node.

const SIZES = [2_000, 200_000, 2_000_000]
const KINDS = ['newest', 'older', 'type', 'symbol', 'both', 'closed'] as const
/** Groups of ten pages per measurement. */
const GROUPS = 6
const ROUNDS = 13

const backfillFlag = process.argv.indexOf('--backfill')
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-history-'))
const persistTo = join(folder, 'state')
try {
  const bundle = await bundleWorker(join(import.meta.dirname, 'worker.ts'), folder)
  await (backfillFlag < 0 ? measurePages(bundle) : measureBackfill(bundle, Number(process.argv[backfillFlag + 1])))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** A database with `size` events, and the Worker that reads it. */
type FilledDatabase = {
  size: number
  get<T>(path: string): Promise<T>
  stop(): Promise<void>
  writeRate: string
  mebibytes: string
}

async function measurePages(bundle: string) {
  const machine = describeMachine()
  const databases: FilledDatabase[] = []
  try {
    for (const size of SIZES) databases.push(await fillDatabase(bundle, size))
    const times = new Map<string, number[]>()
    const rowsRead = new Map<string, number>()
    // The sizes are measured alternately, so that other load on the machine affects all of them alike.
    for (let round = 0; round < ROUNDS; round++)
      for (const kind of KINDS)
        for (const { size, get } of databases) {
          const found = await get<{ ms: number[]; rowsRead: number }>(`/bench/pages?kind=${kind}&count=${GROUPS}`)
          const key = `${kind} ${size}`
          if (round > 0) times.set(key, [...(times.get(key) ?? []), ...found.ms])
          rowsRead.set(key, Math.max(rowsRead.get(key) ?? 0, found.rowsRead))
        }
    const p50 = (kind: string, size = 0) => median(times.get(`${kind} ${size}`) ?? [])
    const rows = databases.map(({ size, writeRate, mebibytes }) => [
      size.toLocaleString('en'),
      ...KINDS.map(kind => `${p50(kind, size).toFixed(2)} ms, ${rowsRead.get(`${kind} ${size}`)} rows`),
      writeRate,
      mebibytes,
    ])
    const ratios = KINDS.map(kind => `${(p50(kind, SIZES.at(-1)) / p50(kind, SIZES[0])).toFixed(2)} times`)
    rows.push(['largest / smallest', ...ratios, '', ''])
    for (const row of rows) console.log(row.join(' | '))
    writeSection(
      'history',
      `## History

\`npm run bench:history\`: the p50 of a page of 50 trades of one of 20 agents, from a random position, and the most rows that D1 read for
one page. The databases run in workerd and are read alternately. Target: at 2,000,000 events at most twice the time at 2,000.

Machine: ${machine}.

${table(['events', 'newest', 'random position', 'by type', 'by symbol', 'by both', 'closed positions', 'write rate', 'database'], rows)}`,
    )
  } finally {
    for (const { stop } of databases) await stop()
  }
}

/** Fills a database with events, in its own workerd. */
async function fillDatabase(bundle: string, size: number): Promise<FilledDatabase> {
  const path = join(persistTo, `${size}`)
  const worker = await startWorkerd({ vars: {}, persistTo: path, bundle })
  const get = async <T>(path: string) => (await (await fetch(`${worker.url}${path}`)).json()) as T
  const { ms, added } = await get<{ ms: number; added: number }>(`/bench/fill?count=${size}`)
  const writeRate = `${Math.round((added / ms) * 1000).toLocaleString('en')}/s`
  const mebibytes = `${((await sizeOf(path)) / 2 ** 20).toFixed(0)} MiB`
  console.log(`${size} events: ${writeRate}, ${mebibytes}`)
  return { size, get, stop: worker.stop, writeRate, mebibytes }
}

async function measureBackfill(bundle: string, events: number) {
  const machine = describeMachine()
  const devnet = await startDevnet()
  const node = await startSyntheticNode(devnet.deployment, events / 2)
  const vars = { ...workerVars(devnet.deployment), RPC_URL: node.url, KEEPER_ENABLED: 'false', X402_ENABLED: 'false' }
  const worker = await startWorkerd({ vars, persistTo, bundle })
  try {
    const start = performance.now()
    await fetch(`${worker.url}/health`)
    for (let indexedBlock = 0; indexedBlock < events / 2; ) {
      await sleep(250)
      indexedBlock = (await (await fetch(`${worker.url}/bench/cursor`)).json()) as number
    }
    const seconds = (performance.now() - start) / 1000
    const size = (await sizeOf(persistTo)) / 2 ** 20
    const rows = [
      [
        events.toLocaleString('en'),
        `${seconds.toFixed(0)} s`,
        `${Math.round(events / seconds).toLocaleString('en')}/s`,
        `${worker.cpuSeconds().toFixed(0)} s`,
        `${size.toFixed(0)} MiB`,
      ],
    ]
    console.log(rows[0]?.join(' | '))
    writeSection(
      'history-backfill',
      `### Backfill

\`npm run bench:history -- --backfill ${events}\`: the follower indexes events of a node that responds at once, with at most 20,000 logs per
response. Two events make a trade.

Machine: ${machine}.

${table(['events', 'time', 'rate', 'CPU of workerd', 'database'], rows)}`,
    )
  } finally {
    await worker.stop()
    await node.stop()
    await devnet.stop()
  }
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

async function sizeOf(path: string): Promise<number> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true })
  const sizes = entries.filter(entry => entry.isFile()).map(entry => stat(join(entry.parentPath, entry.name)))
  return (await Promise.all(sizes)).reduce((sum, { size }) => sum + size, 0)
}
