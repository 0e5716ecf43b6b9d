import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { describeMachine, table, writeSection } from '../results.ts'
import { bundleWorker, startWorkerd } from '../workerd.ts'
import { startFakeNode } from './node.ts'

// `npm run bench:history`: what a page of history costs as the history grows, and how fast rows go into the database.
// `npm run bench:history -- --backfill 1000000`: so many events through the follower itself, from a node that has them.

const SIZES = [2_000, 200_000, 2_000_000]
const KINDS = ['newest', 'older', 'type', 'symbol', 'both', 'closed'] as const
/** Of ten pages each. */
const GROUPS = 60
const WARM_UP = 100

const at = process.argv.indexOf('--backfill')
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-history-'))
const persistTo = join(folder, 'state')
try {
  const bundle = await bundleWorker(join(import.meta.dirname, 'worker.ts'), folder)
  await (at < 0 ? measurePages(bundle) : measureBackfill(bundle, Number(process.argv[at + 1])))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function measurePages(bundle: string) {
  const machine = describeMachine()
  const worker = await startWorkerd({ vars: {}, persistTo, bundle })
  const ask = async <T>(path: string) => (await (await fetch(`${worker.url}${path}`)).json()) as T
  const rows: string[][] = []
  const p50s = new Map<string, number[]>()
  try {
    for (const size of SIZES) {
      const { ms, added } = await ask<{ ms: number; added: number }>(`/bench/fill?count=${size}`)
      const cells: string[] = []
      if (rows.length === 0) for (const kind of KINDS) await ask(`/bench/pages?kind=${kind}&count=${WARM_UP}`)
      for (const kind of KINDS) {
        const { ms, rowsRead } = await ask<{ ms: number[]; rowsRead: number }>(
          `/bench/pages?kind=${kind}&count=${GROUPS}`,
        )
        const p50 = median(ms)
        p50s.set(kind, [...(p50s.get(kind) ?? []), p50])
        cells.push(`${p50.toFixed(2)} ms, ${rowsRead} rows`)
      }
      const mebibytes = (await sizeOf(persistTo)) / 2 ** 20
      rows.push([
        size.toLocaleString('en'),
        ...cells,
        `${Math.round((added / ms) * 1000).toLocaleString('en')}/s`,
        `${mebibytes.toFixed(0)} MiB`,
      ])
      console.log(rows.at(-1)?.join(' | '))
    }
  } finally {
    await worker.stop()
  }
  const ratios = KINDS.map(kind => {
    const [first = 1, , last = 1] = p50s.get(kind) ?? []
    return `${(last / first).toFixed(2)} times`
  })
  rows.push(['largest against smallest', ...ratios, '', ''])
  writeSection(
    'history',
    `## History

\`npm run bench:history\`: p50 of a page of 50 trades of one of 20 agents, at a random place, and the most rows that D1 says one read; the
database is that of workerd. Target: at 2,000,000 events at most twice the time of 2,000.

Machine: ${machine}.

${table(['events', 'newest', 'anywhere', 'of a type', 'of a symbol', 'of both', 'closed positions', 'written', 'database'], rows)}`,
  )
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
