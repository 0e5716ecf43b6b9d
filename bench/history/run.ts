import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { describeMachine, table, writeSection } from '../results-file.ts'
import { bundleWorker, startWorkerd } from '../workerd.ts'
import { startFakeNode } from './node.ts'

// `npm run bench:history`: what a page of history costs as the history grows, and how fast rows go into the database.
// `npm run bench:history -- --backfill 1000000`: so many events through the follower itself, from a node that has them.

const SIZES = [2_000, 200_000, 2_000_000]
const KINDS = ['newest', 'older', 'type', 'symbol', 'both', 'closed'] as const
/** Of ten pages each. */
const GROUPS = 6
const ROUNDS = 13

const at = process.argv.indexOf('--backfill')
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-history-'))
const persistTo = join(folder, 'state')
try {
  const bundle = await bundleWorker(join(import.meta.dirname, 'worker.ts'), folder)
  await (at < 0 ? measurePages(bundle) : measureBackfill(bundle, Number(process.argv[at + 1])))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

type Store = {
  size: number
  ask<T>(path: string): Promise<T>
  stop(): Promise<void>
  written: string
  mebibytes: string
}

async function measurePages(bundle: string) {
  const machine = describeMachine()
  const stores: Store[] = []
  try {
    for (const size of SIZES) stores.push(await filled(bundle, size))
    const times = new Map<string, number[]>()
    const rowsRead = new Map<string, number>()
    // In turns, so that whatever else the machine does befalls all sizes alike.
    for (let round = 0; round < ROUNDS; round++)
      for (const kind of KINDS)
        for (const { size, ask } of stores) {
          const found = await ask<{ ms: number[]; rowsRead: number }>(`/bench/pages?kind=${kind}&count=${GROUPS}`)
          const key = `${kind} ${size}`
          if (round > 0) times.set(key, [...(times.get(key) ?? []), ...found.ms])
          rowsRead.set(key, Math.max(rowsRead.get(key) ?? 0, found.rowsRead))
        }
    const p50 = (kind: string, size = 0) => median(times.get(`${kind} ${size}`) ?? [])
    const rows = stores.map(({ size, written, mebibytes }) => [
      size.toLocaleString('en'),
      ...KINDS.map(kind => `${p50(kind, size).toFixed(2)} ms, ${rowsRead.get(`${kind} ${size}`)} rows`),
      ...[written, mebibytes],
    ])
    const ratios = KINDS.map(kind => `${(p50(kind, SIZES.at(-1)) / p50(kind, SIZES[0])).toFixed(2)} times`)
    rows.push(['largest against smallest', ...ratios, '', ''])
    for (const row of rows) console.log(row.join(' | '))
    writeSection(
      'history',
      `## History

\`npm run bench:history\`: p50 of a page of 50 trades of one of 20 agents, at a random place, and the most rows that D1 says one read; the
databases are those of workerd, read in turns. Target: at 2,000,000 events at most twice the time of 2,000.

Machine: ${machine}.

${table(['events', 'newest', 'anywhere', 'of a type', 'of a symbol', 'of both', 'closed positions', 'written', 'database'], rows)}`,
    )
  } finally {
    for (const { stop } of stores) await stop()
  }
}

/** A database with so many events, in a workerd of its own. */
async function filled(bundle: string, size: number): Promise<Store> {
  const path = join(persistTo, `${size}`)
  const worker = await startWorkerd({ vars: {}, persistTo: path, bundle })
  const ask = async <T>(path: string) => (await (await fetch(`${worker.url}${path}`)).json()) as T
  const { ms, added } = await ask<{ ms: number; added: number }>(`/bench/fill?count=${size}`)
  const written = `${Math.round((added / ms) * 1000).toLocaleString('en')}/s`
  const mebibytes = `${((await sizeOf(path)) / 2 ** 20).toFixed(0)} MiB`
  console.log(`${size} events: ${written}, ${mebibytes}`)
  return { size, ask, stop: worker.stop, written, mebibytes }
}

async function measureBackfill(bundle: string, events: number) {
  const machine = describeMachine()
  const devnet = await startDevnet()
  const node = await startFakeNode(devnet.deployment, events / 2)
  const vars = { ...workerVars(devnet.deployment), RPC_URL: node.url, KEEPER_ENABLED: 'false', X402_ENABLED: 'false' }
  const worker = await startWorkerd({ vars, persistTo, bundle })
  try {
    const start = performance.now()
    await fetch(`${worker.url}/health`)
    for (let reach = 0; reach < events / 2; ) {
      await sleep(250)
      reach = (await (await fetch(`${worker.url}/bench/reach`)).json()) as number
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

\`npm run bench:history -- --backfill ${events}\`: events through the follower, from a node that answers at once and gives 20,000 logs at
most; two events are a trade.

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
