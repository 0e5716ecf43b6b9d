import { clean } from './clean.ts'

/** The response of an operation, as JSON. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
type JsonObject = { [name: string]: Json }

const MAX_CELL = 44
/** Hex that is longer than a signature, too long to read. */
const CALLDATA = /^0x[0-9a-f]{200,}$/i
const USDC_DECIMALS = 1_000_000n

/**
 * Renders a response for people: single values as `name  value` lines, each list of objects as a table under its name.
 * Amounts in USDC base units are shown in USDC.
 */
export function renderTable(value: Json): string {
  if (Array.isArray(value))
    return value.every(isObject) ? renderRows(value) : value.map(item => cellOf(item)).join('\n')
  if (!isObject(value)) return cellOf(value)
  const { lines, lists } = flatten(value)
  const width = Math.max(0, ...lines.map(([name]) => name.length))
  const sections = lists.map(([name, rows]) => `${name}\n${rows.length > 0 ? renderRows(rows) : '(none)'}`)
  const singles = lines.map(([name, text]) => `${name.padEnd(width)}  ${text}`.trimEnd()).join('\n')
  return [...sections, singles].filter(text => text !== '').join('\n\n')
}

function flatten(value: JsonObject, prefix = ''): { lines: [string, string][]; lists: [string, JsonObject[]][] } {
  const lines: [string, string][] = []
  const lists: [string, JsonObject[]][] = []
  for (const [key, inner] of Object.entries(value)) {
    const name = clean(`${prefix}${key}`)
    if (Array.isArray(inner) && inner.some(isObject)) lists.push([name, inner.filter(isObject)])
    else if (isObject(inner)) {
      const nested = flatten(inner, `${name}.`)
      lines.push(...nested.lines)
      lists.push(...nested.lists)
    } else lines.push([name, cellOf(inner, key)])
  }
  return { lines, lists }
}

function renderRows(rows: JsonObject[]): string {
  const cells = rows.map(row => new Map(flatten(row).lines))
  const names = [...new Set(cells.flatMap(row => [...row.keys()]))]
  const columns = names.map(name => ({
    name,
    width: Math.max(name.length, ...cells.map(row => Math.min(MAX_CELL, (row.get(name) ?? '').length))),
  }))
  const line = (textOf: (name: string) => string) =>
    columns
      .map(({ name, width }) => shortened(textOf(name)).padEnd(width))
      .join('  ')
      .trimEnd()
  return [line(name => name), ...cells.map(row => line(name => row.get(name) ?? ''))].join('\n')
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function cellOf(value: Json, name = ''): string {
  if (value === null) return '-'
  if (Array.isArray(value)) return value.map(item => cellOf(item)).join(', ') || '-'
  if (typeof value === 'object') return clean(JSON.stringify(value))
  if (isBaseUnits(name) && /^-?\d+$/.test(`${value}`)) return humanUsdc(BigInt(value as string))
  if (CALLDATA.test(`${value}`))
    return `${`${value}`.slice(0, 10)}… (${`${value}`.length / 2 - 1} bytes, whole with -o json)`
  return clean(`${value}`)
}

/** Fields with USDC in their name are in base units; usdcAmount alone is what a person asked for. */
const isBaseUnits = (name: string) => /usdc/i.test(name) && name !== 'usdcAmount'

function humanUsdc(amount: bigint): string {
  const [sign, size] = amount < 0n ? ['-', -amount] : ['', amount]
  const fraction = `${size % USDC_DECIMALS}`.padStart(6, '0').replace(/0{1,4}$/, '')
  return `${sign}${size / USDC_DECIMALS}.${fraction}`
}

const shortened = (text: string) => (text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text)
