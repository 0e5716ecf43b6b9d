import { clean } from './clean.ts'
import { valueText } from './units.ts'

/** The response of an operation, as JSON. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
type JsonObject = { [name: string]: Json }

const MAX_WIDTH = 80
/** The least room for a value beside a long name. */
const MIN_ROOM = 24
/** The widest cell of a table, and with --wide. */
const MAX_CELL = 27
const MAX_WIDE_CELL = 44
/** The least of a cell that is worth showing. */
const MIN_CELL = 7
/** Shown whole, because nobody can use a part of it: addresses, ids and hashes, URLs. */
const WHOLE = /^(0x[0-9a-f]{40}|0x[0-9a-f]{64}(-\d+)?|https?:.*)$/i
/** Hex that is longer than a signature, too long to read. */
const CALLDATA = /^0x[0-9a-f]{200,}$/i

const rule = ['triggerType', 'triggerBps', 'exitBps']
const lane = ['address', 'balanceWei', 'nextNonce', 'hasRole']
const entryAndExit = ['entryPriceUsdc as entry', 'exitPriceUsdc as exit', 'realizedPnlUsdc as pnl']

/**
 * The columns of each list, by its name, or by the read that returns it and its name. `a|b` is the first that a row
 * has, and `as` gives a title. All of them are shown; --wide shows every field.
 */
export const chosenColumns: Record<string, readonly string[]> = {
  positions: [
    'positionId',
    'symbol',
    'usdcCostBasis as cost',
    'entryPriceUsdc as entry',
    'unrealizedPnlUsdc as pnl',
    'derived.returnBps as return',
    'openedAt',
  ],
  'listClosedPositions.positions': [
    'positionId as id',
    'symbol',
    ...entryAndExit,
    'derived.returnBps as return',
    'closedBy',
    'closedAt',
  ],
  agents: ['agentId', 'agent.name', 'agent.trackName', 'agent.statusName', 'agent.createdAt'],
  given: ['agentId', 'agent.name', 'agent.trackName', 'agent.statusName', 'agent.createdAt'],
  deposits: ['requestId', 'assets', 'controller', 'madeAt'],
  redemptions: ['requestId', 'shares', 'controller', 'madeAt'],
  restricted: ['vault', 'symbol', 'kind', 'account'],
  tokens: ['symbol', 'name', 'price.priceUsd', 'price.updatedAt', 'price.stale', 'market.session', 'active'],
  actions: ['state', 'effectiveAt', 'oldMultiplier as from', 'newMultiplier as to', 'announcedAt'],
  prices: ['symbol', 'priceUsd', 'updatedAt', 'source', 'stale', 'market.session', 'change24hBps'],
  vaultTrackConfigs: ['trackName', 'initialAllocation', 'maxAllocation', 'maxTradeSizeBps', 'maxDailyLossBps'],
  vaults: ['slug', 'name', 'totalAssets', 'idleAssets', 'tradingPaused'],
  trades: ['timestamp', 'type', 'positionId as id', 'symbol', 'usdcAmount', 'priceUsdc', 'realizedPnlUsdc as pnl'],
  entries: ['rank', 'agentId', 'name', 'pnlUsdc', 'returnPpm', 'drawdownPpm', 'trades', 'hours'],
  orders: [
    'orderId',
    'side',
    'symbol',
    'triggerUsd as trigger',
    'distanceBps as distance',
    'usdcAmount as usdc',
    'waitsFor.code as waitsFor',
  ],
  'pastOrders.orders': [
    'orderId',
    'state',
    'endReason|lastRefusal.code as reason',
    'side',
    'symbol',
    'usdcAmount as usdc',
    'endedAt',
  ],
  points: ['timestamp', 'equityUsdc', 'realizedPnlUsdc as realized', 'unrealizedPnlUsdc as unrealized', 'drawdownBps'],
  candles: ['t as time', 'o as open', 'h as high', 'l as low', 'c as close', 'n as posts'],
  endpoints: ['method', 'path', 'tool'],
  events: ['timestamp', 'mode|mandate.mode|untilNonce|signer|to|owner as change', 'type'],
  offers: ['agentId', 'agent.name', 'agent.owner'],
  budgets: ['budget', 'minute.limitGas', 'minute.leftGas', 'hour.limitGas', 'hour.leftGas'],
  risk: ['figure', 'before', 'after'],
  'whatIf.intents': ['kind', 'executed', 'positionId', 'usdcOut', 'code'],
  'whatIf.exits': ['positionId', 'symbol', 'status'],
  'whatIf.orders': ['orderId', 'symbol', 'status'],
  attempts: ['transactionHash', 'state'],
  calls: ['title', 'contract', 'name'],
  effects: ['title', 'contract', 'name'],
  executions: ['part', 'transactionHash'],
  exits: rule,
  exitRules: rule,
  pendingRules: rule,
  allowedTokens: ['symbol', 'address'],
  pnlByDay: ['day', 'realizedPnlUsdc'],
  pnlByToken: ['symbol', 'trades', 'realizedPnlUsdc'],
  deployed: ['symbol', 'valueUsdc', 'priceUsd', 'priceStale'],
  contributions: ['agentId', 'name', 'pnlUsdc'],
  sharePrices: ['timestamp', 'blockNumber', 'sharePriceUsdc', 'totalAssets', 'totalShares'],
  byStatus: ['statusName', 'count'],
  days: ['day', 'checks', 'ready'],
  incidents: ['startedAt', 'endedAt', 'version', 'problems'],
  intake: ['kind', 'covers', 'open', 'reason', 'since'],
  kinds: ['x402Version', 'scheme', 'network'],
  deployments: ['chainId', 'baseUrl'],
  toolsets: ['name', 'description', 'isDefault'],
  services: ['name', 'endpoint', 'version'],
  registrations: ['agentId', 'agentRegistry'],
  lanes: lane,
  nodes: ['place', 'problem'],
  findings: ['check', 'subject', 'verdict', 'sentence'],
  closedIntake: ['kind', 'reason', 'since'],
  webhooks: ['webhookId', 'state'],
  'getWebhookPlaces.agents': ['agentId', 'active', 'places'],
  vectors: ['primaryType', 'digest'],
  EIP712Domain: ['name', 'type'],
  TransferWithAuthorization: ['name', 'type'],
  roles: ['power', 'account', 'contract as on'],
  keys: ['name', 'address'],
  messages: ['digest', 'outcome'],
}

/** `of` is the read that responded, where its list has columns of its own. */
export type TableOptions = { wide?: boolean | undefined; of?: string | undefined }

/**
 * Renders a response for people: single values as `name value` lines, each list of objects as a table under its name
 * that fits 80 columns. Amounts in USDC base units are shown in USDC, times relative to now.
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

/** Returns the lists of a response that are shown as tables, by name. */
export const listsOf = (value: Json): [name: string, rows: JsonObject[]][] =>
  isObject(value) ? flatten(value).lists.map(([path, rows]) => [path.slice(path.lastIndexOf('.') + 1), rows]) : []

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
  if (areColumns(entries)) {
    const [[, longest]] = entries
    return longest.map((_, row) => Object.fromEntries(entries.map(([name, column]) => [name, column[row] ?? null])))
  }
  const [first] = entries
  if (entries.length < 2 || first === undefined) return undefined
  const fields = (row: Json) => (isObject(row) ? Object.keys(row).join() : undefined)
  if (fields(first[1]) === undefined || entries.some(([, row]) => fields(row) !== fields(first[1]))) return undefined
  return entries.map(([name, row]) => {
    const named = row as JsonObject
    return Object.values(named).includes(name) ? named : { name, ...named }
  })
}

/** Tells whether an object has a list of values for each column, all of the same length, as candles have. */
function areColumns(entries: [string, Json][]): entries is [[string, Json[]], ...[string, Json[]][]] {
  const lengths = entries.map(([, column]) => (Array.isArray(column) && !column.some(isObject) ? column.length : -1))
  return lengths.length > 1 && lengths[0] !== -1 && new Set(lengths).size === 1
}

/** `names` are the fields of which a row shows the first that it has. */
type Column = { names: readonly string[]; title: string; width: number }
type Row = ReadonlyMap<string, string>

function renderRows(list: string, rows: JsonObject[], { wide = false, of = '' }: TableOptions): string {
  const cells: Row[] = rows.map(row => new Map(flatten(row).lines))
  const present = [...new Set(cells.flatMap(row => [...row.keys()]))]
  const maxCell = wide ? MAX_WIDE_CELL : MAX_CELL
  const name = list.slice(list.lastIndexOf('.') + 1)
  const chosen = chosenColumns[`${of}.${name}`] ?? chosenColumns[name]
  const specified = wide || chosen === undefined ? present : chosen
  const described = specified.map(column => {
    const [fields = '', title] = column.split(' as ')
    return { names: fields.split('|').filter(field => present.includes(field)), title }
  })
  const shown = described.filter(({ names }) => names.length > 0)
  const columns = shown.map(({ names, title = wide ? names[0] : shortTitle(names, shown) }) => {
    const width = Math.max(`${title}`.length, ...cells.map(row => shortened(textOf(row, names), maxCell).length))
    return { names, title: `${title}`, width }
  })
  const kept = wide ? columns : fitting(columns)
  const line = (cell: (column: Column) => string) =>
    kept
      .map(column => shortened(cell(column), column.width).padEnd(column.width))
      .join('  ')
      .trimEnd()
  return [line(({ title }) => title), ...cells.map(row => line(({ names }) => textOf(row, names)))].join('\n')
}

const textOf = (row: Row, names: readonly string[]) =>
  names.map(name => row.get(name) ?? '').find(text => text !== '' && text !== '-') ?? row.get(names[0] ?? '') ?? ''

/** Returns as much of the end of a field's name as tells it from the other columns. */
function shortTitle([name = '']: readonly string[], shown: readonly { names: readonly string[] }[]): string {
  const endOf = (path: string, parts: number) => path.split('.').slice(-parts).join('.')
  const others = shown.flatMap(({ names }) => names.slice(0, 1)).filter(other => other !== name)
  const parts = [1, 2, 3].find(count => !others.some(other => endOf(other, count) === endOf(name, count)))
  return endOf(name, parts ?? 9)
}

/** Returns the columns that fit. One that is too wide gets the room that is left, if its cells may be cut off. */
function fitting(columns: readonly Column[]): Column[] {
  const kept: Column[] = []
  let left = MAX_WIDTH
  for (const column of columns) {
    const room = left - (kept.length > 0 ? 2 : 0)
    if (kept.length > 0 && column.width > room && room < Math.max(MIN_CELL, column.title.length)) continue
    const width = kept.length > 0 ? Math.min(column.width, room) : column.width
    kept.push({ ...column, width })
    left = room - width
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
  text.length > length && !WHOLE.test(text) ? `${text.slice(0, length - 1)}…` : text
