import type { Measured, StepName } from './measured.ts'
import type { Counts } from './meter.ts'

// Computes the monthly bill on the Workers Paid plan from measured counts. Prices and included amounts are from the
// platform's public pages; docs/scaling.md links them, with their date.

/** A month's activity. Positions and streams are averages over the month; each stream reconnects once an hour. */
type Month = {
  name: string
  intents: number
  registrations: number
  openPositions: number
  streams: number
  /** Reads over HTTP or MCP, without the quotes of the intents. */
  reads: number
}

export const MONTHS: Month[] = [
  {
    name: 'idle',
    intents: 0,
    registrations: 0,
    openPositions: 0,
    streams: 0,
    reads: 0,
  },
  {
    name: 'million',
    intents: 1_000_000,
    registrations: 1_000,
    openPositions: 1_000,
    streams: 1_000,
    reads: 10_000_000,
  },
  {
    name: 'positions',
    intents: 1_000_000,
    registrations: 1_000,
    openPositions: 10_000,
    streams: 1_000,
    reads: 10_000_000,
  },
]

/** Dollars per unit beyond what the plan includes. */
export const PRICES = {
  workerRequests: 0.3e-6,
  cpuMs: 0.02e-6,
  objectRequests: 0.15e-6,
  objectGbSeconds: 12.5e-6,
  objectRowsRead: 0.001e-6,
  objectRowsWritten: 1e-6,
  d1RowsRead: 0.001e-6,
  d1RowsWritten: 1e-6,
}

const HOURS = 730
export const GIB_PER_OBJECT = 0.128
/** Above the cost of a cached read; bench/results.md has the rate. */
const CPU_MS_PER_READ = 1
/**
 * The objects that are active around the clock while agents trade. A lane is active only while a transaction is
 * pending.
 */
const ALWAYS_ACTIVE = ['HistoryIndexer', 'Keeper', 'EventStreams'] as const
/**
 * An idle object that has no timer is not billed. After a call or an alarm, it may have one for this long: the counters
 * that it sends to `MetricTotals`.
 */
const SECONDS_AFTER_CALL = 5
/** How many streams an object holds. The first one is full before others are used. */
const STREAMS_PER_OBJECT = 3_000

type Line = { item: string; used: number; included?: string; price?: string; dollars: number }

/** Returns the lines of the bill and their sum in dollars, with the plan's fee. */
export function billFor({ steps, idleHour, holdingHour }: Measured, month: Month): { lines: Line[]; total: number } {
  // Opens, ladder updates and closes in equal parts.
  const intents = (['open', 'ladder', 'close'] as const satisfies StepName[]).map(step => steps[step])
  const sum = (name: keyof Counts): number =>
    (idleHour[name] + (month.openPositions > 0 ? holdingHour[name] : 0)) * HOURS +
    (intents.reduce((total, counts) => total + counts[name], 0) / intents.length) * month.intents +
    steps.register[name] * month.registrations +
    steps.stream[name] * month.streams * HOURS +
    steps.cron[name] * 60 * HOURS
  const requests = month.intents * 2 + month.registrations * 3 + month.reads + 60 * HOURS
  const cronsPerHour = 60
  const calls = (counts: Counts) => counts.objectRequests + counts.objectAlarms
  const idleSeconds =
    (idleHour.objectActiveMs + steps.cron.objectActiveMs * cronsPerHour) / 1_000 +
    (calls(idleHour) + calls(steps.cron) * cronsPerHour) * SECONDS_AFTER_CALL
  const activeSeconds =
    month.intents > 0 ? (ALWAYS_ACTIVE.length + Math.ceil(month.streams / STREAMS_PER_OBJECT)) * 3_600 : idleSeconds
  const lines = [
    line('Worker requests', requests, 10e6, PRICES.workerRequests),
    line('Worker CPU ms', sum('cpuMs') + month.reads * CPU_MS_PER_READ, 30e6, PRICES.cpuMs),
    line('object requests and alarms', sum('objectRequests') + sum('objectAlarms'), 1e6, PRICES.objectRequests),
    line('object duration GB-s', activeSeconds * HOURS * GIB_PER_OBJECT, 400e3, PRICES.objectGbSeconds),
    line('object rows read', sum('objectRowsRead'), 25e9, PRICES.objectRowsRead),
    line('object rows written', sum('objectRowsWritten'), 50e6, PRICES.objectRowsWritten),
    line('D1 rows read', sum('d1RowsRead'), 25e9, PRICES.d1RowsRead),
    line('D1 rows written', sum('d1RowsWritten'), 50e6, PRICES.d1RowsWritten),
  ]
  const all: Line[] = [
    { item: 'Workers Paid plan', used: 1, dollars: 5 },
    ...lines,
    { item: 'calls of the node, billed by its provider', used: sum('rpcCalls'), dollars: 0 },
  ]
  return { lines: all, total: all.reduce((total, { dollars }) => total + dollars, 0) }
}

const line = (item: string, used: number, included: number, price: number): Line => ({
  item,
  used,
  included: included.toLocaleString('en'),
  price: `$${Number((price * 1e6).toPrecision(3))} a million`,
  dollars: Math.max(0, used - included) * price,
})
