import { isTicker } from '@agent-trading-service/protocol/message-terms'
import { csvParseRows } from 'd3-dsv'
import { Temporal } from 'temporal-polyfill'
import { usdPrice } from '../devnet/controls.ts'

/** A file of prices cannot be played. The message says where and what to write instead. */
export class TapeError extends Error {
  override readonly name = 'TapeError'
}

/** A file of prices. `symbol` is set if every row is of this token; a time without an offset is of `timeZone`. */
export type PriceFile = { name: string; text: string; symbol?: string | undefined; timeZone?: string | undefined }

export type Candle = { open: bigint; high: bigint; low: bigint; close: bigint }
/**
 * A row of a file: a price at a time, or a candle that starts then. Times are Unix seconds, prices USD in 8 decimals.
 */
export type PriceRow = { where: string; time: number; symbol: string } & ({ price: bigint } | { candle: Candle }) &
  Shares

/** What happened to a share when the row starts: new shares for an old one, and US dollars paid out for each. */
type Shares = { split?: number; dividend?: number }

const FIELDS = ['time', 'symbol', 'price', 'open', 'high', 'low', 'close', 'split', 'dividend', 'adjClose'] as const
type Field = (typeof FIELDS)[number]
type Column = { field: Field; index: number; symbol?: string | undefined }

/** Names of columns in the exports of brokers, exchanges and data libraries, without case, spaces and punctuation. */
const NAMES: Record<string, Field> = {
  ...{ time: 'time', date: 'time', datetime: 'time', timestamp: 'time', opentime: 'time', t: 'time' },
  ...{ symbol: 'symbol', ticker: 'symbol', s: 'symbol' },
  ...{ price: 'price', open: 'open', high: 'high', low: 'low', close: 'close', last: 'close' },
  ...{ o: 'open', h: 'high', l: 'low', c: 'close' },
  ...{ stocksplits: 'split', split: 'split', dividends: 'dividend', dividend: 'dividend', adjclose: 'adjClose' },
}
const NO_PRICES: readonly Field[] = ['time', 'symbol', 'split', 'dividend', 'adjClose']
/** Binance's klines have no header: the time at which a candle opens comes first, and its volume after the prices. */
const KLINES: Column[] = (['time', 'open', 'high', 'low', 'close'] as const).map((field, index) => ({ field, index }))

/**
 * Reads prices or candles in CSV: of `ats tape record`, with a header of our own names, or as yfinance, Binance,
 * Alpaca, TradingView and investing.com export them. What a file does not say is never guessed. Returns its rows, and
 * notes on what was rounded. Throws TapeError.
 */
export function readPriceFile({ name, text, symbol, timeZone }: PriceFile): { rows: PriceRow[]; notes: string[] } {
  const table = csvParseRows(text.replace(/^\uFEFF/, ''))
    .map((cells, index) => ({ cells: cells.map(cell => cell.trim()), where: `Line ${index + 1} of ${name}` }))
    .filter(({ cells }) => cells.some(cell => cell !== ''))
  const { columns, data } = readHeader(
    table.map(({ cells }) => cells),
    name,
  )
  const lines = table.slice(data)
  const timeColumn = columns.find(({ field }) => field === 'time')?.index ?? 0
  const parseTime = timeParser(
    lines.map(({ cells }) => cells[timeColumn] ?? ''),
    { name, timeZone },
  )
  let rounded = 0
  const priceOf = (cell: string, where: string) => {
    const { price, isRounded } = parsePrice(cell, where)
    if (isRounded) rounded++
    return price
  }
  const series = seriesOf(columns)
  const rows = lines.flatMap(({ cells, where }) => {
    const time = parseTime(cells[timeColumn] ?? '', where)
    return series.flatMap(({ symbolOf, fields }): PriceRow[] => {
      if (fields.every(({ index }) => (cells[index] ?? '') === '') && series.length > 1) return []
      const own = symbolOf(cells)
      if (own === undefined && symbol === undefined)
        throw new TapeError(`${name} names no symbol. Name it with the file: --tape NVDA=${name}.`)
      const at = { where, time, symbol: symbol ?? parseSymbol(own ?? '', where), ...sharesOf(cells, fields, where) }
      const values = new Map(
        fields.flatMap(({ field, index }) =>
          NO_PRICES.includes(field) ? [] : [[field, priceOf(cells[index] ?? '', `${where}, ${field}`)] as const],
        ),
      )
      const [open, high, low, close] = [values.get('open'), values.get('high'), values.get('low'), values.get('close')]
      if (open === undefined || high === undefined || low === undefined || close === undefined)
        return [{ ...at, price: values.get('price') ?? 0n }]
      if (low > open || low > close || high < open || high < close)
        throw new TapeError(`${where}: low is the lowest and high the highest price of a candle.`)
      return [{ ...at, candle: { open, high, low, close } }]
    })
  })
  const notes =
    rounded === 0 ? [] : [`${name}: ${rounded} ${rounded === 1 ? 'price was' : 'prices were'} rounded to 8 decimals.`]
  return { rows, notes }
}

/** Returns the columns of a table that are read, and the index of its first row of data. */
function readHeader(table: readonly string[][], name: string): { columns: Column[]; data: number } {
  const [first = []] = table
  if (first.length > KLINES.length && first.every(cell => /^-?[\d.]+(e-?\d+)?$/i.test(cell)))
    return { columns: KLINES, data: 0 }
  const tickers = table.slice(0, 2).find(([cell]) => cell?.toLowerCase() === 'ticker')
  // yfinance writes the fields, the tickers and the name of the index, in either order of the first two.
  if (tickers !== undefined) {
    const fields = table.slice(0, 2).find(row => row !== tickers) ?? []
    const columns = columnsOf(fields.slice(1)).map(({ field, index }) => ({
      field,
      index: index + 1,
      symbol: tickers[index + 1],
    }))
    return { columns: [{ field: 'time', index: 0 }, ...columns], data: 3 }
  }
  const columns = columnsOf(first)
  const has = (field: Field) => columns.some(column => column.field === field)
  const isCandle = has('open') && has('high') && has('low')
  // investing.com calls the close the price.
  const read =
    isCandle && !has('close')
      ? columns.map(column => (column.field === 'price' ? { ...column, field: 'close' as const } : column))
      : columns
  if (!has('time') || !(has('price') || (isCandle && has('close'))))
    throw new TapeError(
      `The first line of ${name} is time,symbol,price or time,symbol,open,high,low,close, or that of an export of yfinance, Binance, Alpaca, TradingView or investing.com.`,
    )
  return { columns: isCandle ? read.filter(({ field }) => field !== 'price') : read, data: 1 }
}

/** Returns the columns that have a known name; of two with the same name, the first. */
function columnsOf(names: readonly string[]): Column[] {
  return names.flatMap((name, index) => {
    const field = NAMES[name.toLowerCase().replaceAll(/[^a-z]/g, '')]
    return field === undefined ? [] : [{ field, index }]
  })
}

/** Groups columns of prices by token: one for each ticker of the header, or one whose symbol is in a column. */
function seriesOf(columns: readonly Column[]) {
  const isOfToken = ({ field }: Column) => field !== 'time' && field !== 'symbol'
  const symbolColumn = columns.find(({ field }) => field === 'symbol')
  return [...Map.groupBy(columns.filter(isOfToken), ({ symbol }) => symbol)].map(([symbol, fields]) => ({
    fields,
    symbolOf: (cells: readonly string[]) => (symbolColumn ? cells[symbolColumn.index] : symbol),
  }))
}

/** Returns the split and the dividend of a row. Of prices that fall by their dividends, none can be reinvested. */
function sharesOf(cells: readonly string[], fields: readonly Column[], where: string): Shares {
  const numberOf = (field: Field) => {
    const index = fields.find(column => column.field === field)?.index
    const text = index === undefined ? '' : (cells[index] ?? '')
    const value = Number(text)
    if (value >= 0 && value < 1e6) return value
    throw new TapeError(`${where}, ${field}: ${JSON.stringify(text)} is not a number from 0 to a million.`)
  }
  const [split, dividend] = [numberOf('split'), numberOf('dividend')]
  if (dividend > 0 && fields.some(({ field }) => field === 'adjClose'))
    throw new TapeError(
      `${where}: next to "Adj Close", prices are not adjusted for the dividend. Export adjusted ones: auto_adjust=True.`,
    )
  return { ...(split > 0 && split !== 1 && { split }), ...(dividend > 0 && { dividend }) }
}

const MICROSECONDS_PER: Record<number, number> = { 9: 1e6, 10: 1e6, 13: 1e3, 16: 1 }
const ISO_DATE = /^\d{4}-\d{2}-\d{2}/
const HAS_OFFSET = /(?:Z|[+-]\d{2}:?\d{2})$/
const SLASHED = /^(\d{1,2})\/(\d{1,2})\/(\d{4})\b/
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Returns the function that parses the times of a file, of which it has seen all, to Unix seconds. */
function timeParser(texts: readonly string[], { name, timeZone }: Pick<PriceFile, 'name' | 'timeZone'>) {
  const isDayFirst = dayFirst(texts)
  return (text: string, where: string): number => {
    const unit = /^\d+$/.test(text) ? MICROSECONDS_PER[text.length] : undefined
    if (unit !== undefined) return wholeSeconds((Number(text) * unit) / 1e6, text, where)
    const iso = isoOf(text, isDayFirst)
    if (iso === 'ambiguous')
      throw new TapeError(
        `${where}: ${JSON.stringify(text)} may name the day or the month first, and no other row of ${name} tells. Write ISO 8601, such as 2026-03-09.`,
      )
    if (!ISO_DATE.test(iso))
      throw new TapeError(
        `${where}: ${JSON.stringify(text)} is not a time. Write Unix seconds, or ISO 8601 in whole seconds.`,
      )
    const hasOffset = HAS_OFFSET.test(iso) && iso.length > 10
    if (!hasOffset && timeZone === undefined)
      throw new TapeError(
        `${where}: ${JSON.stringify(text)} has no offset from UTC, so its time depends on a zone. Name the zone of ${name} with --tz, such as --tz America/New_York.`,
      )
    try {
      const instant = hasOffset ? Temporal.Instant.from(iso) : inZone(iso, timeZone ?? '')
      return wholeSeconds(instant.epochMilliseconds / 1_000, text, where)
    } catch (cause) {
      if (cause instanceof TapeError) throw cause
      throw new TapeError(`${where}: ${JSON.stringify(text)} is not a time${timeZone ? ` of ${timeZone}` : ''}.`, {
        cause,
      })
    }
  }
}

/** An hour that clocks skip or repeat is refused. */
const inZone = (iso: string, timeZone: string) =>
  Temporal.PlainDateTime.from(iso).toZonedDateTime(timeZone, { disambiguation: 'reject' }).toInstant()

function wholeSeconds(seconds: number, text: string, where: string): number {
  if (Number.isInteger(seconds) && seconds > 0 && seconds < 2 ** 32) return seconds
  throw new TapeError(`${where}: ${JSON.stringify(text)} is not in whole seconds between 1970 and 2106.`)
}

/** Returns whether dates such as 05/07/2025 name the day first; undefined if no row tells. */
function dayFirst(texts: readonly string[]): boolean | undefined {
  const parts = texts.map(text => SLASHED.exec(text)).filter(match => match !== null)
  if (parts.some(([, first]) => Number(first) > 12)) return true
  return parts.some(([, , second]) => Number(second) > 12) ? false : undefined
}

/** Returns a date with slashes, or with the name of a month, as ISO 8601; another text as it is. */
function isoOf(text: string, isDayFirst: boolean | undefined): string {
  const [named, month = '', day = '', year] = /^([A-Z][a-z]{2}) (\d{1,2}), (\d{4})$/.exec(text) ?? []
  if (named) return dateOf(year ?? '', `${MONTHS.indexOf(month) + 1}`, day)
  const [slashed, first = '', second = '', slashedYear = ''] = SLASHED.exec(text) ?? []
  if (slashed === undefined) return text
  if (isDayFirst === undefined) return 'ambiguous'
  const [slashedMonth, slashedDay] = isDayFirst ? [second, first] : [first, second]
  return `${dateOf(slashedYear, slashedMonth, slashedDay)}${text.slice(slashed.length)}`
}

const dateOf = (year: string, month: string, day: string) => `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`

function parseSymbol(text: string, where: string): string {
  if (isTicker(text)) return text
  throw new TapeError(
    `${where}: ${JSON.stringify(text)} is not a symbol. Write it as the token does, such as NVDA or BRK.B.`,
  )
}

const THOUSANDS = /^\d{1,3}(?:,\d{3})+(?=\.|$)/
const DECIMALS = 8

/** Parses a price in USD. One of more than 8 decimals is rounded to the nearest. */
function parsePrice(text: string, where: string): { price: bigint; isRounded: boolean } {
  const plain = THOUSANDS.test(text) ? text.replaceAll(',', '') : text
  const [, whole = '', kept = '', rest = ''] = /^(\d+)\.(\d{8})(\d+)$/.exec(plain) ?? []
  try {
    if (rest === '') return { price: usdPrice(plain), isRounded: false }
    const price = BigInt(whole + kept) + (rest.charAt(0) >= '5' ? 1n : 0n)
    if (price === 0n) throw new Error(`${text} is less than a price of ${DECIMALS} decimals can say.`)
    return { price, isRounded: /[1-9]/.test(rest) }
  } catch (cause) {
    throw new TapeError(`${where}: ${(cause as Error).message}`, { cause })
  }
}
