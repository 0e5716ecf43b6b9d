import { isTicker, quoteText } from '@agent-trading-service/protocol/message-terms'
import { dsvFormat } from 'd3-dsv'
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

type ReadFile = { name: string; rows: PriceRow[]; notes: string[]; areAtDates: boolean }

const FIELDS = ['time', 'symbol', 'price', 'open', 'high', 'low', 'close', 'split', 'dividend', 'adjClose'] as const
type Field = (typeof FIELDS)[number]
type Column = { field: Field; index: number; symbol?: string | undefined }
type Line = { cells: string[]; where: string }

/** Names of columns in the exports of brokers, exchanges and data libraries, without case, spaces and punctuation. */
const NAMES: Record<string, Field> = {
  ...{ time: 'time', date: 'time', datetime: 'time', timestamp: 'time', opentime: 'time', t: 'time' },
  ...{ windowstart: 'time', unix: 'time', start: 'time', timeopen: 'time', snappedat: 'time' },
  ...{ symbol: 'symbol', ticker: 'symbol', s: 'symbol' },
  ...{ price: 'price', open: 'open', high: 'high', low: 'low', close: 'close', last: 'close', closelast: 'close' },
  latest: 'close',
  ...{ o: 'open', h: 'high', l: 'low', c: 'close' },
  ...{ stocksplits: 'split', split: 'split', splitcoefficient: 'split', splitfactor: 'split', splitratio: 'split' },
  ...{ dividends: 'dividend', dividend: 'dividend', dividendamount: 'dividend', divcash: 'dividend' },
  ...{ exdividend: 'dividend', adjclose: 'adjClose', adjustedclose: 'adjClose' },
}
const NO_PRICES: readonly Field[] = ['time', 'symbol', 'split', 'dividend', 'adjClose']
/** Binance's klines have no header: the time at which a candle opens comes first, and its volume after the prices. */
const KLINES: Column[] = (['time', 'open', 'high', 'low', 'close'] as const).map((field, index) => ({ field, index }))

/**
 * Reads prices or candles in CSV: of `ats tape record`, with a header of our own names, or as yfinance, Binance,
 * Alpaca, TradingView and investing.com export them. What a file does not say is never guessed. Returns its rows,
 * notes on what was rounded, and whether it has prices whose times are the starts of days. Throws TapeError.
 */
export function readPriceFile({ name, text, symbol, timeZone }: PriceFile): ReadFile {
  const table = readTable(text, name)
  const { columns, data } = readHeader(
    table.map(({ cells }) => cells),
    name,
  )
  // Exports that were put together repeat the header.
  const header = data === 1 ? `${table[0]?.cells}` : ''
  const lines = table.slice(data).filter(({ cells }) => `${cells}` !== header)
  refuseMalformedLines(table, data)
  const timeOf = timeText(columns, lines)
  const parseTime = timeParser(lines.map(timeOf), { name, timeZone })
  // What a comma means in a price of three digits after it, another price of the file tells.
  const separatesThousands = lines.some(({ cells }) =>
    columns.some(({ field, index }) => !NO_PRICES.includes(field) && TELLS_COMMA.test(cells[index] ?? '')),
  )
  let rounded = 0
  const priceOf = (cell: string, where: string) => {
    const { price, isRounded } = parsePrice(cell, where, separatesThousands)
    if (isRounded) rounded++
    return price
  }
  const series = seriesOf(columns)
  const named = new Set<string>()
  const adjustments = new Map<string, number>()
  const rows = lines.flatMap(line => {
    const { cells, where } = line
    const time = parseTime(timeOf(line), where)
    return series.flatMap(({ symbolOf, fields }): PriceRow[] => {
      if (fields.every(({ index }) => (cells[index] ?? '') === '') && series.length > 1) return []
      const own = symbolOf(cells)
      if (own === undefined && symbol === undefined)
        throw new TapeError(`${name} names no symbol. Name it with the file: --tape NVDA=${name}.`)
      if (symbol !== undefined && own !== undefined && named.add(own).size > 1)
        throw new TapeError(
          `${where}: ${name} has prices of ${[...named].map(shown).join(' and ')}, which are not all of ${symbol}. Pass it without a symbol, or delete what is not of ${symbol}.`,
        )
      const at = { where, time, symbol: symbol ?? parseSymbol(own ?? '', where), ...sharesOf(cells, fields, where) }
      refuseUnadjusted(cells, fields, at, adjustments)
      const values = new Map(
        fields.flatMap(({ field, index }) =>
          NO_PRICES.includes(field) ? [] : [[field, priceOf(cells[index] ?? '', `${where}, ${field}`)] as const],
        ),
      )
      const [open, high, low, close] = [values.get('open'), values.get('high'), values.get('low'), values.get('close')]
      if (open === undefined || high === undefined || low === undefined || close === undefined)
        return [{ ...at, price: values.get('price') ?? 0n }]
      if (low > open || low > close || high < open || high < close)
        throw new TapeError(
          `${where}: low is the lowest and high the highest price of a candle. Correct the row, or delete it.`,
        )
      return [{ ...at, candle: { open, high, low, close } }]
    })
  })
  const priced = new Set(rows.map(({ symbol }) => symbol))
  const empty = series.find(({ symbol: own }) => own !== undefined && symbol === undefined && !priced.has(own))
  if (rows.length === 0 || empty !== undefined)
    throw new TapeError(
      `${name} has no prices${empty === undefined ? '' : ` of ${shown(empty.symbol ?? '')}`}. Export it again, or leave it out.`,
    )
  const notes =
    rounded === 0 ? [] : [`${name}: ${rounded} ${rounded === 1 ? 'price was' : 'prices were'} rounded to 8 decimals.`]
  const areAtDates = rows.some(row => 'price' in row) && lines.every(line => DAY_START.test(timeOf(line)))
  return { name, rows, notes, areAtDates }
}

/** The longest part of a file that a message repeats. */
const MAX_QUOTED = 60
const quote = (text: string) => quoteText(text, MAX_QUOTED)
const shown = (symbol: string) => (isTicker(symbol) ? symbol : quote(symbol))

/** Returns the lines that are not blank. Columns are apart by commas, or by what the first line has instead of them. */
function readTable(text: string, name: string): Line[] {
  const plain = text.replace(/^\uFEFF/, '')
  const [first = ''] = plain.split(/[\r\n]/, 1)
  const separator = first.includes(',') ? ',' : ([';', '\t'].find(each => first.includes(each)) ?? ',')
  return dsvFormat(separator).parseRows(plain, (row, index) => {
    const cells = row.map(cell => cell.trim())
    return cells.some(cell => cell !== '') ? { cells, where: `Line ${index + 1} of ${name}` } : undefined
  })
}

/**
 * Refuses lines with more cells than the first one, whose prices may have commas that are no separators, and cells of
 * several lines: a quote that does not end has taken them.
 */
function refuseMalformedLines([first, ...others]: readonly Line[], data: number): void {
  const lines = others.slice(Math.max(0, data - 1))
  const long = lines.find(({ cells }) => cells.slice(first?.cells.length).some(Boolean))
  if (long !== undefined)
    throw new TapeError(
      `${long.where} has ${long.cells.length} cells, but the first line ${first?.cells.length}. Write a decimal point, or quote cells with commas.`,
    )
  const open = lines.find(({ cells }) => cells.some(cell => /[\r\n]/.test(cell)))
  if (open !== undefined) throw new TapeError(`${open.where}: a quote does not end in its line. Close or delete it.`)
}

const DATE_ALONE = /^(?:\d{8}|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})$/
const DAY_START = /^(?:\d{8}|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})(?:[T ]00:00(?::00)?(?!:).*)?$/
const CLOCK = /^(\d{1,2})(?::?(\d{2}))(?::?(\d{2}))?$/

/**
 * Returns the function that returns the time of a line: that of its first column of times, or if that is a date alone,
 * with the clock of the next one, or the next one itself.
 */
function timeText(columns: readonly Column[], [line]: readonly Line[]): (line: Line) => string {
  const [first, ...others] = columns.filter(({ field }) => field === 'time').map(({ index }) => index)
  const at =
    (index = 0) =>
    ({ cells }: Line) =>
      cells[index] ?? ''
  const clock = others.find(index => line !== undefined && at(index)(line) !== '')
  if (clock === undefined || line === undefined || !DATE_ALONE.test(at(first)(line))) return at(first)
  return each => {
    const [, hours = '', minutes, seconds = '00'] = CLOCK.exec(at(clock)(each)) ?? []
    return minutes === undefined
      ? at(clock)(each)
      : `${at(first)(each)} ${hours.padStart(2, '0')}:${minutes}:${seconds}`
  }
}

/** Returns the columns of a table that are read, and the index of its first row of data. */
function readHeader(table: readonly string[][], name: string): { columns: Column[]; data: number } {
  const [first = [], second = [], third = []] = table
  if (first.length > KLINES.length && first.every(cell => /^-?[\d.]+(e-?\d+)?$/i.test(cell)))
    return { columns: KLINES, data: 0 }
  // yfinance writes the fields and the tickers in either order, and then the name of the index, unless it has none.
  // Older versions name neither row.
  const hasIndexName = columnsOf(third.slice(0, 1)).length > 0
  const isUnnamed = hasIndexName && first[0] === '' && second[0] === ''
  const tickers =
    [first, second].find(([cell]) => cell?.toLowerCase() === 'ticker') ??
    (isUnnamed ? (countFields(first) < countFields(second) ? first : second) : undefined)
  const fields = columnsOf(tickers === first ? second : first).filter(({ index }) => index > 0)
  if (tickers !== undefined && fields.length > 0) {
    const columns = fields.map(({ field, index }) => ({ field, index, symbol: tickers[index] }))
    return { columns: [{ field: 'time', index: 0 }, ...columns], data: hasIndexName ? 3 : 2 }
  }
  const [time = '', ...symbols] = first
  const isTimed = time === '' || columnsOf([time])[0]?.field === 'time'
  if (isTimed && symbols.length > 0 && symbols.every(isTickerAlone) && new Set(symbols).size === symbols.length) {
    const columns = symbols.map((symbol, index) => ({ field: 'price' as const, index: index + 1, symbol }))
    return { columns: [{ field: 'time', index: 0 }, ...columns], data: 1 }
  }
  const named = columnsOf(first).filter(
    ({ field }, index, all) => field === 'time' || all.findIndex(each => each.field === field) === index,
  )
  // pandas writes no name of an index without one.
  const isIndexed = first[0] === '' && named.every(({ field }) => field !== 'time')
  const columns: Column[] = isIndexed ? [{ field: 'time', index: 0 }, ...named] : named
  const has = (field: Field) => columns.some(column => column.field === field)
  const isCandle = has('open') && has('high') && has('low')
  const isClose = has('close') && !has('price') && !has('open') && !has('high') && !has('low')
  // investing.com calls the close the price.
  const read =
    isCandle && !has('close')
      ? columns.map(column => (column.field === 'price' ? { ...column, field: 'close' as const } : column))
      : columns.map(column => (isClose && column.field === 'close' ? { ...column, field: 'price' as const } : column))
  if (!has('time') || !(has('price') || isClose || (isCandle && has('close'))))
    throw new TapeError(
      `${quote(first.join(','))} names no columns that can be read. The first line of ${name} is time,symbol,price or time,symbol,open,high,low,close, or that of an export of yfinance, Binance, Alpaca, TradingView or investing.com.`,
    )
  return { columns: isCandle ? read.filter(({ field }) => field !== 'price') : read, data: 1 }
}

/** Other numbers next to prices, whose names could be tickers. */
const OTHER_NUMBERS =
  /^(?:id|nav|mid|bid|ask|oi|vol|volume|vwap|value|amount|quantity|qty|size|count|trades|turnover|change|returns?|rate|yield)$/i

/** Tells whether a column, by its name, has the prices of a token, as pandas writes closes of many. */
const isTickerAlone = (name: string) =>
  isTicker(name) && /^[^a-z]*[A-Z][^a-z]*$/.test(name) && columnsOf([name]).length === 0 && !OTHER_NUMBERS.test(name)

/** Returns the columns that have a known name. */
function columnsOf(names: readonly string[]): Column[] {
  return names.flatMap((name, index) => {
    const field = NAMES[name.toLowerCase().replaceAll(/[^a-z]/g, '')]
    return field === undefined ? [] : [{ field, index }]
  })
}

const countFields = (names: readonly string[]): number => new Set(columnsOf(names).map(({ field }) => field)).size

/** What Finnhub has in its column "s", which others have for the symbol. */
const STATUS = 'ok'

/** Groups columns of prices by token: one for each ticker of the header, or one whose symbol is in a column. */
function seriesOf(columns: readonly Column[]) {
  const isOfToken = ({ field }: Column) => field !== 'time' && field !== 'symbol'
  const symbolColumn = columns.find(({ field }) => field === 'symbol')
  return [...Map.groupBy(columns.filter(isOfToken), ({ symbol }) => symbol)].map(([symbol, fields]) => ({
    symbol,
    fields,
    symbolOf: (cells: readonly string[]) => {
      const text = symbolColumn ? (cells[symbolColumn.index] ?? '') : symbol
      return text === STATUS ? undefined : text
    },
  }))
}

/** Returns the split and the dividend of a row. Of prices that fall by their dividends, none can be reinvested. */
function sharesOf(cells: readonly string[], fields: readonly Column[], where: string): Shares {
  const numberOf = (field: Field) => {
    const index = fields.find(column => column.field === field)?.index
    const text = index === undefined ? '' : (cells[index] ?? '')
    const value = Number(text)
    if (value >= 0 && value < 1e6) return value
    throw new TapeError(`${where}, ${field}: ${quote(text)} is not a number from 0 to a million.`)
  }
  const [split, dividend] = [numberOf('split'), numberOf('dividend')]
  if (dividend > 0 && fields.some(({ field }) => field === 'adjClose')) throw unadjusted(where)
  return { ...(split > 0 && split !== 1 && { split }), ...(dividend > 0 && { dividend }) }
}

const unadjusted = (where: string) =>
  new TapeError(
    `${where}: next to "Adj Close", prices are not adjusted for the split or dividend. Export adjusted ones, with yfinance by auto_adjust=True.`,
  )

/** A smaller step of the adjustment is within what prices are rounded to. */
const CLEAR_ADJUSTMENT = 0.001

/** Refuses a row whose adjusted close is another part of its close than in the row before. */
function refuseUnadjusted(
  cells: readonly string[],
  fields: readonly Column[],
  { symbol, where }: { symbol: string; where: string },
  adjustments: Map<string, number>,
): void {
  const numberIn = (...names: Field[]) =>
    Number(cells[fields.find(({ field }) => names.includes(field))?.index ?? cells.length]?.replaceAll(/[$,]/g, ''))
  const adjustment = numberIn('adjClose') / numberIn('close', 'price')
  const before = adjustments.get(symbol) ?? adjustment
  adjustments.set(symbol, adjustment)
  if (Math.abs(adjustment / before - 1) > CLEAR_ADJUSTMENT) throw unadjusted(where)
}

/** Digits of a number of seconds, milliseconds, microseconds or nanoseconds, and how many of them are a fraction. */
const FRACTION_DIGITS: Record<number, number> = { 9: 0, 10: 0, 13: 3, 16: 6, 19: 9 }
/** YYYYMMDDHH, which as Unix seconds is a time from 2032 to 2036. */
const HOUR = /^((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])$/
const ISO_TIME =
  /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}(?::?[0-5]\d(?::?[0-5]\d(?:[.,]\d{1,9})?)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/i
const HAS_OFFSET = /(?:Z|[+-]\d{2}(?::?\d{2})?)$/i
const SLASHED = /^(\d{1,2})([/.-])(\d{1,2})\2(\d{4})\b/
const YEAR_FIRST = /^(\d{4})([/.]?)(\d{2})\2(\d{2})(?!\d)/
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Returns the function that parses the times of a file, of which it has seen all, to Unix seconds. */
function timeParser(texts: readonly string[], { name, timeZone }: Pick<PriceFile, 'name' | 'timeZone'>) {
  const isDayFirst = dayFirst(texts)
  return (text: string, where: string): number => {
    const [digits = ''] = /^\d+(?=\.?0*$)/.exec(text) ?? []
    const [isHour, year, month, day, hour] = HOUR.exec(digits) ?? []
    if (isHour && Number(digits) * 1_000 > Date.now()) {
      const [seconds, iso] = [new Date(Number(digits) * 1_000).toISOString(), `${year}-${month}-${day}T${hour}:00`]
      throw new TapeError(
        `${where}: ${quote(text)} may be Unix seconds, ${seconds.replace('.000', '')}, or an hour, ${iso}. Write ISO 8601, such as ${iso}.`,
      )
    }
    const fraction = FRACTION_DIGITS[digits.length]
    if (fraction !== undefined) return wholeSeconds(Number(digits) / 10 ** fraction, text, where)
    const iso = isoOf(text, isDayFirst)
    if (iso === 'ambiguous')
      throw new TapeError(
        `${where}: ${quote(text)} may name the day or the month first, and no other row of ${name} tells. Write ISO 8601, such as 2026-03-09.`,
      )
    if (!ISO_TIME.test(iso))
      throw new TapeError(`${where}: ${quote(text)} is not a time. Write Unix seconds, or ISO 8601 in whole seconds.`)
    const hasOffset = HAS_OFFSET.test(iso) && iso.length > 10
    if (!hasOffset && timeZone === undefined)
      throw new TapeError(
        `${where}: ${quote(text)} has no offset from UTC, so its time depends on a zone. Name the zone of ${name} with --tz, such as --tz America/New_York.`,
      )
    try {
      const instant = hasOffset ? Temporal.Instant.from(iso) : inZone(iso, timeZone ?? '')
      return wholeSeconds(instant.epochMilliseconds / 1_000, text, where)
    } catch (cause) {
      if (cause instanceof TapeError) throw cause
      throw new TapeError(
        hasOffset
          ? `${where}: ${quote(text)} is not a time.`
          : `${where}: ${quote(text)} is not a time of ${timeZone}, or clocks skip or repeat it. Write it with its offset from UTC.`,
        { cause },
      )
    }
  }
}

/** An hour that clocks skip or repeat is refused. */
const inZone = (iso: string, timeZone: string) =>
  Temporal.PlainDateTime.from(iso).toZonedDateTime(timeZone, { disambiguation: 'reject' }).toInstant()

function wholeSeconds(seconds: number, text: string, where: string): number {
  if (Number.isInteger(seconds) && seconds > 0 && seconds < 2 ** 32) return seconds
  throw new TapeError(`${where}: ${quote(text)} is not in whole seconds between 1970 and 2106.`)
}

/** Returns whether dates such as 05/07/2025 name the day first; undefined if no row tells. */
function dayFirst(texts: readonly string[]): boolean | undefined {
  const parts = texts.map(text => SLASHED.exec(text)).filter(match => match !== null)
  if (parts.some(([, first]) => Number(first) > 12)) return true
  return parts.some(([, , , second]) => Number(second) > 12) ? false : undefined
}

/** Returns a date with slashes, points or hyphens, or with the name of a month, as ISO 8601; another text as it is. */
function isoOf(written: string, isDayFirst: boolean | undefined): string {
  // Interactive Brokers writes two spaces before a clock, and Excel one digit of its hour.
  const text = written
    .replace(/ +(?=\d:)/, ' 0')
    .replace(/ +(?=\d)/, ' ')
    .replace(/ (?=[+-]\d{2}:?\d{2}$)/, '')
  const [named, month = '', day = '', year] = /^([A-Z][a-z]{2}) (\d{1,2}), (\d{4})$/.exec(text) ?? []
  if (named) return dateOf(year ?? '', `${MONTHS.indexOf(month) + 1}`, day)
  const [slashed, first = '', , second = '', slashedYear = ''] = SLASHED.exec(text) ?? []
  if (slashed === undefined) return text.replace(YEAR_FIRST, '$1-$3-$4').replace(/ ?(?:UTC|GMT)$/, 'Z')
  if (isDayFirst === undefined) return 'ambiguous'
  const [slashedMonth, slashedDay] = isDayFirst ? [second, first] : [first, second]
  return `${dateOf(slashedYear, slashedMonth, slashedDay)}${text.slice(slashed.length)}`
}

const dateOf = (year: string, month: string, day: string) => `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`

function parseSymbol(text: string, where: string): string {
  if (isTicker(text)) return text
  throw new TapeError(`${where}: ${quote(text)} is not a symbol. Write it as the token does, such as NVDA or BRK.B.`)
}

const THOUSANDS = /^[1-9]\d{0,2}(?:,\d{3})+(?=\.|$)/
/** A comma before three digits may be a decimal one. These are none: a price has a point, or two commas. */
const TELLS_COMMA = /\.\d+$|,\d{3},/
const EXPONENT = /^(\d)(?:\.(\d+))?e([+-]?\d{1,2})$/i
const DECIMALS = 8
/** 10^12 USD. */
export const MAX_PRICE = 10n ** 20n

/** Parses a price in USD. One of more than 8 decimals is rounded to the nearest. */
function parsePrice(text: string, where: string, separatesThousands: boolean): { price: bigint; isRounded: boolean } {
  if (text === '' || /^(?:nan|null|none|n\/a|-)$/i.test(text))
    throw new TapeError(`${where}: the price is missing. Delete the row, or write its price.`)
  const usd = text.replace(/^\$/, '')
  if (THOUSANDS.test(usd) && /^\d+,\d+$/.test(usd) && !separatesThousands)
    throw new TapeError(
      `${where}: the comma of ${quote(text)} may separate thousands or decimals, and no other price tells. Write ${usd.replace(',', '')} or ${usd.replace(',', '.')}.`,
    )
  const plain = withoutExponent(THOUSANDS.test(usd) ? usd.replaceAll(',', '') : usd)
  const [, whole = '', kept = '', rest = ''] = /^(\d+)\.(\d{8})(\d+)$/.exec(plain) ?? []
  if (/^[1-9]\d{12}/.test(plain))
    throw new TapeError(`${where}: ${quote(text)} is too high for a price. Write less than 10^12 USD.`)
  if (rest !== '') {
    const price = BigInt(whole + kept) + (rest.charAt(0) >= '5' ? 1n : 0n)
    if (price > 0n) return { price, isRounded: /[1-9]/.test(rest) }
    throw new TapeError(`${where}: ${quote(text)} is less than a price of ${DECIMALS} decimals can say.`)
  }
  try {
    return { price: usdPrice(plain), isRounded: false }
  } catch (cause) {
    throw new TapeError(`${where}: ${quote(text)} is not a price. Write USD, such as 120 or 0.5.`, { cause })
  }
}

/** Returns a number such as 1.2e-07, as pandas writes small prices, in decimals. */
function withoutExponent(text: string): string {
  const [number, first = '', others = '', exponent = ''] = EXPONENT.exec(text) ?? []
  if (number === undefined) return text
  const [digits, point] = [first + others, 1 + Number(exponent)]
  if (point <= 0) return `0.${'0'.repeat(-point)}${digits}`
  return point >= digits.length ? digits.padEnd(point, '0') : `${digits.slice(0, point)}.${digits.slice(point)}`
}
