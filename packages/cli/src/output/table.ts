import { clean } from './clean.ts'
import { valueText } from './units.ts'

/** The response of an operation, as JSON. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
type JsonObject = { [name: string]: Json }

const MAX_WIDTH = 80
const MAX_COLUMNS = 8
/** The least room for a value beside a long name. */
const MIN_ROOM = 24
/** The widest cell of a table, and with --wide. */
const MAX_CELL = 26
const MAX_WIDE_CELL = 44
/** Shown whole, because nobody can use a part of it. */
const ADDRESS = /^0x[0-9a-f]{40}$/i
/** Hex that is longer than a signature, too long to read. */
const CALLDATA = /^0x[0-9a-f]{200,}$/i

/** The columns of a list, by its name; a list without an entry shows what fits. --wide shows every column. */
const chosenColumns: Record<string, readonly string[]> = {
  positions: [
    'positionId',
    'symbol',
    'usdcCostBasis',
    'entryPriceUsdc',
    'unrealizedPnlUsdc',
    'realizedPnlUsdc',
    'derived.returnBps',
    'openedAt',
  ],
  agents: ['agentId', 'agent.name', 'agent.trackName', 'agent.statusName', 'agent.createdAt'],
  tokens: ['symbol', 'name', 'price.priceUsd', 'price.updatedAt', 'price.stale', 'market.session', 'active'],
  prices: ['symbol', 'priceUsd', 'updatedAt', 'stale', 'market.session', 'change24hBps'],
  vaultTrackConfigs: ['trackName', 'initialAllocation', 'maxAllocation', 'maxTradeSizeBps', 'maxDailyLossBps'],
  vaults: ['slug', 'name', 'totalAssets', 'idleAssets', 'tradingPaused'],
  trades: ['timestamp', 'type', 'positionId', 'symbol', 'usdcAmount', 'priceUsdc', 'realizedPnlUsdc'],
  entries: ['rank', 'agentId', 'name', 'pnlUsdc', 'returnPpm', 'drawdownPpm', 'trades', 'hours'],
  orders: ['orderId', 'state', 'side', 'symbol', 'triggerUsd', 'distanceBps', 'usdcAmount', 'waitsFor.code'],
  points: ['timestamp', 'equityUsdc', 'realizedPnlUsdc', 'unrealizedPnlUsdc', 'drawdownBps', 'openCount'],
  endpoints: ['method', 'path', 'tool'],
}

export type TableOptions = { wide?: boolean | undefined }

/**
 * Renders a response for people: single values as `name  value` lines, each list of objects as a table under its name that
 * fits 80 columns. Amounts in USDC base units are shown in USDC, times relative to now.
 */
export function renderTable(value: Json, options: TableOptions = {}): string {
  if (Array.isArray(value))
    return value.every(isObject) ? renderRows('', value, options) : value.map(item => cellOf(item)).join('\n')
  if (!isObject(value)) return cellOf(value)
  const { lines, lists } = flatten(value)
  const width = Math.max(0, ...lines.map(([name]) => name.length))
  const indent = ' '.repeat(width + 2)
  const room = options.wide ? Number.POSITIVE_INFINITY : Math.max(MIN_ROOM, MAX_WIDTH - indent.length)
  const sections = lists.map(
    ([name, rows]) => `${name}\n${rows.length > 0 ? renderRows(name, rows, options) : '(none)'}`,
  )
  const singles = lines
    .map(([name, text]) => `${name.padEnd(width)}  ${wrapped(text, room).join(`\n${indent}`)}`.trimEnd())
    .join('\n')
  return [...sections, singles].filter(text => text !== '').join('\n\n')
}

/** Returns the lines of a text, broken at spaces; what has none, such as an address, stays whole. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' '))
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  return [...lines, line]
}

function flatten(value: JsonObject, prefix = ''): { lines: [string, string][]; lists: [string, JsonObject[]][] } {
  const lines: [string, string][] = []
  const lists: [string, JsonObject[]][] = []
  for (const [key, inner] of Object.entries(value)) {
    const name = clean(`${prefix}${key}`)
    // The same amount twice: the one in base units is shown in USDC already.
    if (key.endsWith('Human') && Object.hasOwn(value, key.slice(0, -'Human'.length))) continue
    const rows = rowsOf(inner)
    if (rows) lists.push([name, rows])
    else if (isObject(inner)) {
      const nested = flatten(inner, `${name}.`)
      lines.push(...nested.lines)
      lists.push(...nested.lists)
    } else lines.push([name, cellOf(inner, name)])
  }
  return { lines, lists }
}

/** Returns the rows of a list of objects, or of an object with one for each name; undefined for any other value. */
function rowsOf(value: Json): JsonObject[] | undefined {
  if (Array.isArray(value)) return value.some(isObject) ? value.filter(isObject) : undefined
  if (!isObject(value)) return undefined
  const entries = Object.entries(value)
  const [first] = entries
  if (entries.length < 2 || first === undefined) return undefined
  const fields = (row: Json) => (isObject(row) ? Object.keys(row).join() : undefined)
  if (fields(first[1]) === undefined || entries.some(([, row]) => fields(row) !== fields(first[1]))) return undefined
  return entries.map(([name, row]) => {
    const named = row as JsonObject
    return Object.values(named).includes(name) ? named : { name, ...named }
  })
}

type Column = { name: string; title: string; width: number }

function renderRows(list: string, rows: JsonObject[], { wide = false }: TableOptions): string {
  const cells = rows.map(row => new Map(flatten(row).lines))
  const names = [...new Set(cells.flatMap(row => [...row.keys()]))]
  const maxCell = wide ? MAX_WIDE_CELL : MAX_CELL
  const columnOf = (name: string): Column => {
    const title = wide ? name : name.slice(name.lastIndexOf('.') + 1)
    const width = Math.max(title.length, ...cells.map(row => shortened(row.get(name) ?? '', maxCell).length))
    return { name, title, width }
  }
  const columns = wide ? names.map(columnOf) : fitting(selected(list, names).map(columnOf))
  const line = (textOf: (column: Column) => string) =>
    columns
      .map(column => shortened(textOf(column), maxCell).padEnd(column.width))
      .join('  ')
      .trimEnd()
  return [line(({ title }) => title), ...cells.map(row => line(({ name }) => row.get(name) ?? ''))].join('\n')
}

function selected(list: string, names: readonly string[]): readonly string[] {
  const chosen = chosenColumns[list.slice(list.lastIndexOf('.') + 1)]
  const present = chosen?.filter(name => names.includes(name))
  return present && present.length > 0 ? present : names
}

/** Returns the first columns that fit. Single columns that are too wide are left out, never cut off at the edge. */
function fitting(columns: readonly Column[]): Column[] {
  const kept: Column[] = []
  let width = 0
  for (const column of columns) {
    const next = width + (kept.length > 0 ? 2 : 0) + column.width
    if (kept.length > 0 && (next > MAX_WIDTH || kept.length === MAX_COLUMNS)) continue
    kept.push(column)
    width = next
  }
  return kept
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function cellOf(value: Json, path = ''): string {
  if (Array.isArray(value)) return value.map(item => cellOf(item, path)).join(', ') || '-'
  if (typeof value === 'object' && value !== null) return clean(JSON.stringify(value))
  if (CALLDATA.test(`${value}`))
    return `${`${value}`.slice(0, 10)}… (${`${value}`.length / 2 - 1} bytes, whole with -o json)`
  return valueText(value, path)
}

const shortened = (text: string, length: number) =>
  text.length > length && !ADDRESS.test(text) ? `${text.slice(0, length - 1)}…` : text
