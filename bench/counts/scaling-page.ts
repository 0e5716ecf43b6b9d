import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from '../results-file.ts'
import { billFor, MONTHS } from './bill.ts'
import { type Measured, STEPS, type StepName } from './measured.ts'
import type { Counts } from './meter.ts'

// Generates the tables of docs/scaling.md from bench/counts.json. A test compares them with the page.

const file = join(import.meta.dirname, '../../docs/scaling.md')

const COLUMNS: [heading: string, name: keyof Counts][] = [
  ['calls of objects', 'objectRequests'],
  ['alarms', 'objectAlarms'],
  ['rows read in objects', 'objectRowsRead'],
  ['rows written in objects', 'objectRowsWritten'],
  ['D1 rows read', 'd1RowsRead'],
  ['D1 rows written', 'd1RowsWritten'],
  ['HTTP requests to the node', 'rpcRequests'],
  ['calls in them', 'rpcCalls'],
  ['KiB to and from it', 'rpcBytes'],
  ['CPU ms', 'cpuMs'],
]

const figure = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : `${Math.round(value * 10) / 10}`
const cell = (counts: Counts, name: keyof Counts) => figure(name === 'rpcBytes' ? counts[name] / 1_024 : counts[name])

/** Returns the generated parts of the page by the names of their markers. */
export function scalingTables(measured: Measured): Record<string, string> {
  const rows = Object.entries(STEPS).map(([step, label]) => [
    label,
    ...COLUMNS.map(([, name]) => cell(measured.steps[step as StepName], name)),
  ])
  rows.push(
    ['idle hour', ...COLUMNS.map(([, name]) => cell(measured.idleHour, name))],
    ['hour with open positions, beyond that', ...COLUMNS.map(([, name]) => cell(measured.holdingHour, name))],
  )
  const objects = Object.entries(measured.idleObjects)
    .filter(([, of]) => of.requests + of.alarms > 0)
    .map(([name, of]) => [
      `\`${name}\``,
      figure(of.requests),
      figure(of.alarms),
      figure(of.rowsRead),
      figure(of.rowsWritten),
      `${figure(of.activeMs / 36_000)} %`,
    ])
  return {
    counts: `${table(['one', ...COLUMNS.map(([heading]) => heading)], rows)}\n\nMachine: ${measured.machine}.`,
    idle: table(['class', 'calls', 'alarms', 'rows read', 'rows written', 'time in calls and alarms'], objects),
    ...Object.fromEntries(MONTHS.map(month => [`bill ${month.name}`, billTable(measured, month)])),
  }
}

function billTable(measured: Measured, month: (typeof MONTHS)[number]): string {
  const { lines, total } = billFor(measured, month)
  const rows = lines.map(({ item, used, included, price, dollars }) => [
    item,
    figure(used),
    included ?? '',
    price ?? '',
    `$${dollars.toFixed(2)}`,
  ])
  return table(
    ['item', 'used', 'included', 'then', 'a month'],
    [...rows, ['**total**', '', '', '', `**$${total.toFixed(2)}**`]],
  )
}

const markers = (name: string): [start: string, end: string] => [`<!-- ${name} -->\n`, `<!-- /${name} -->`]

/** Returns the page with its generated parts. */
export function withTables(page: string, tables: Record<string, string>): string {
  return Object.entries(tables).reduce((text, [name, content]) => {
    const [start, end] = markers(name)
    const [from, to] = [text.indexOf(start), text.indexOf(end)]
    if (from < 0 || to < from) throw new Error(`docs/scaling.md has no part between ${start.trim()} and ${end}.`)
    return `${text.slice(0, from)}${start}\n${content}\n\n${text.slice(to)}`
  }, page)
}

/** Writes the tables into docs/scaling.md. */
export const updateScalingPage = (measured: Measured): void =>
  writeFileSync(file, withTables(readFileSync(file, 'utf8'), scalingTables(measured)))
