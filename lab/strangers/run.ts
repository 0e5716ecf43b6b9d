import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Hex } from 'viem'
import { startCountingProxy } from '../../bench/counting-proxy.ts'
import { GIB_PER_OBJECT, PRICES } from '../../bench/counts/bill.ts'
import { between, type Counts, createMeter, mapCounts } from '../../bench/counts/meter.ts'
import { describeMachine, table, writeSection } from '../../bench/results-file.ts'
import { bundleWorker, startWorkerd } from '../../bench/workerd.ts'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { CLASSES, MANY_UNITS, type RequestClass } from './classes.ts'
import { type Agent, createStranger } from './client.ts'

// `npm run bench:strangers [-- --only open,ladder --print]`: what one attacker's dollar, or one address for free, costs
// the operator per hour, for each class of request, with the default limits. Measures the cost of a unit and multiplies
// it by what the limits allow in an hour. Writes its section of bench/results.md unless `--print` is given.
const { values } = parseArgs({
  options: { only: { type: 'string' }, print: { type: 'boolean', default: false } },
})

const BLOCK_MS = 250
const UNITS = 20
const IDLE_SECONDS = 10
const MAX_SETTLE_MS = 120_000
/** The time in which events are sent after the work that causes them. */
const EVENTS_MS = 1_000
/** As docs/operations.md computes: 0.01 gwei. */
const WEI_PER_GAS = 1e7
const DOLLARS_PER_ETHER = 3_000
const MAX_DOLLARS = { 'a dollar': 1, 'an address': 0.05 }

type Row = { class: RequestClass; unit: Counts; gas: number; units: number; limit: string }

const machine = describeMachine()
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-strangers-'))
const devnet = await startDevnet({ blockMs: BLOCK_MS })
const rows: Row[] = []
try {
  const node = await startCountingProxy(devnet.rpcUrl)
  const bundle = await bundleWorker(join(import.meta.dirname, '../../bench/counts/worker.ts'), folder)
  const vars = { ...workerVars(devnet.deployment), RPC_URL: node.url, WEBHOOK_LOCAL_TARGETS: 'true' }
  const { requestBudgets, gasBudgets } = parseConfig(vars)
  const worker = await startWorkerd({ vars, persistTo: join(folder, 'state'), bundle })
  const meter = createMeter(worker, node)

  /** Waits until the index has reached the head and sampled it, and the events have been sent. */
  async function settle() {
    const block = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
    for (const start = Date.now(); ; await sleep(BLOCK_MS)) {
      const reached = (await (await fetch(`${worker.url}/bench/indexed`)).json()) as { block: number }
      if (reached.block >= block) break
      if (Date.now() - start > MAX_SETTLE_MS) throw new Error('The index does not settle.')
    }
    await sleep(EVENTS_MS)
  }

  /** Counts a run, less what the idle service does in that time. `run` returns whether it sent transactions. */
  async function measure(run: () => Promise<boolean>, idlePerSecond?: Counts) {
    const [before, start] = [await meter.read(), Date.now()]
    if (await run()) await settle()
    else await sleep(EVENTS_MS)
    const seconds = (Date.now() - start) / 1_000
    const counted = between(before, await meter.read())
    const counts = mapCounts(counted, (value, name) => Math.max(0, value - (idlePerSecond?.[name] ?? 0) * seconds))
    return { counts, seconds }
  }

  try {
    const strangerAt = (index: number) => createStranger({ devnet, worker, network: index })
    const agents: Agent[] = []
    for (let agent = 0; agent < UNITS; agent++) agents.push(await strangerAt(agent).register())
    await settle()
    const selected = values.only?.split(',')
    for (const [index, row] of CLASSES.entries()) {
      if (selected && !selected.some(name => row.name.startsWith(name))) continue
      // Each time: the service has more to do without requests once there are positions, orders and webhooks.
      const idle = await measure(() => sleep(IDLE_SECONDS * 1_000, false))
      const idlePerSecond = mapCounts(idle.counts, value => value / idle.seconds)
      const units = row.measured ?? UNITS
      const run = await row.prepare(strangerAt(100 + index), agents, units)
      const hashes: Hex[] = []
      const { counts } = await measure(async () => {
        for (let unit = 0; unit < units; unit++) {
          const { status, transactionHashes = [] } = await run(unit)
          if (status !== row.status) throw new Error(`${row.name} returned ${status} instead of ${row.status}`)
          hashes.push(...transactionHashes)
        }
        return hashes.length > 0
      }, idlePerSecond)
      const gasUsed = await Promise.all(hashes.map(hash => devnet.client.getTransactionReceipt({ hash })))
      const gas = gasUsed.reduce((sum, receipt) => sum + Number(receipt.gasUsed), 0) / units
      const { units: perHour, limit } = row.perHour({ requestBudgets, gasBudgets, gasPerUnit: gas })
      rows.push({ class: row, unit: mapCounts(counts, value => value / units), gas, units: perHour, limit })
      console.log(row.name, JSON.stringify(rows.at(-1)?.unit), gas)
    }
  } finally {
    await worker.stop()
    await node.stop()
  }
} finally {
  await devnet.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** Returns the bill of an hour in dollars: gas, rows and objects. */
function billOf({ class: { heldObjects = 0 }, unit, gas, units }: Row) {
  const objectSeconds = (unit.objectActiveMs / 1_000) * units + heldObjects * 3_600
  const gasDollars = (gas * units * WEI_PER_GAS * DOLLARS_PER_ETHER) / 1e18
  const rowDollars =
    units *
    (unit.objectRowsRead * PRICES.objectRowsRead +
      unit.objectRowsWritten * PRICES.objectRowsWritten +
      unit.d1RowsRead * PRICES.d1RowsRead +
      unit.d1RowsWritten * PRICES.d1RowsWritten)
  const objectDollars =
    objectSeconds * GIB_PER_OBJECT * PRICES.objectGbSeconds +
    units * (unit.objectRequests + unit.objectAlarms) * PRICES.objectRequests
  return { gasDollars, rowDollars, objectDollars, objectSeconds }
}

const round = (value: number) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(2)))
const number = (value: number) => round(value).toLocaleString('en')
const dollars = (value: number) => `$${value < 0.0001 ? '0' : value.toPrecision(2)}`

const text = table(
  [
    'class of request',
    'paid by',
    'limit',
    'units an hour',
    'gas',
    'rows written, objects and D1',
    'rows read, objects and D1',
    'object seconds',
    'requests to the node',
    'gas, rows, objects',
    'an hour',
    '',
  ],
  rows.map(row => {
    const { gasDollars, rowDollars, objectDollars, objectSeconds } = billOf(row)
    const { class: of, unit, gas, units, limit } = row
    const total = gasDollars + rowDollars + objectDollars
    return [
      of.name,
      of.payer,
      limit,
      number(units),
      number(gas * units),
      `${number(unit.objectRowsWritten * units)} + ${number(unit.d1RowsWritten * units)}`,
      `${number(unit.objectRowsRead * units)} + ${number(unit.d1RowsRead * units)}`,
      number(objectSeconds),
      number(unit.rpcRequests * units),
      `${dollars(gasDollars)}, ${dollars(rowDollars)}, ${dollars(objectDollars)}`,
      dollars(total),
      total <= MAX_DOLLARS[of.payer] ? 'met' : `missed: at most ${dollars(MAX_DOLLARS[of.payer])}`,
    ]
  }),
)
console.log(text)
if (!values.print)
  writeSection(
    'strangers',
    `## What a stranger can cost

\`npm run bench:strangers\`: what one attacker's dollar, or one address for free, costs the operator in an hour, with the default limits. The cost of a unit is the mean of ${UNITS} to ${MANY_UNITS} in a row, less the work of an idle service; the limits decide how many an hour has. A dollar is the fee of one agent, in its first hour, with unused budgets. An event stream and a webhook keep objects active for the whole hour.

Prices are those of docs/scaling.md, beyond what the plan includes; gas at 0.01 gwei and $${DOLLARS_PER_ETHER} per ETH, as in docs/limits.md. Requests to the node are counted without a price, because providers bill them differently. The platform bills every request, also a refused one, with $0.30 a million: 5,000 a minute are $0.09 an hour, which only a rule in front of the Worker bounds. docs/limits.md has what they add up to.

Targets: at most $1 an hour for a dollar, at most $0.05 an hour for free.

Machine: ${machine}.

${text}`,
  )
