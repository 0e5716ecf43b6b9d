import { createHash } from 'node:crypto'
import { isTicker } from '@agent-trading-service/protocol/message-terms'
import { csvParse } from 'd3-dsv'
import { usdPrice } from '../devnet/controls.ts'
import type { RecordedDay } from '../packages/cli/src/tape/record-day.ts'
import type { Venue } from '../packages/cli/src/tape/venue.ts'

/** The prices that a rehearsal posts at one time: USD with 8 decimals by symbol. Times are Unix seconds. */
export type Step = {
  time: number
  prices: ReadonlyMap<string, bigint>
  endsBar: boolean
  /**
   * Of a recorded day: what pools are traded to, as square roots of prices in Q64.96. Pools follow the prices without
   * it.
   */
  pools?: ReadonlyMap<string, bigint>
  /** Of a recorded day: whether the keeper acts after it. It does after every step of another tape. */
  keeperActs?: boolean
}

/**
 * A market to play. Every symbol has a price in the first step. `venue` is the deployment that it comes from. The pools
 * of a recorded day have a liquidity, and its clock stops at the times that agents ask for, instead of at bars.
 */
export type Tape = { symbols: string[]; steps: Step[]; venue?: Venue; liquidity?: ReadonlyMap<string, bigint> }

/** A tape cannot be played. The message says where and what to write instead. */
export class TapeError extends Error {
  override readonly name = 'TapeError'
}

const MAX_STEPS = 200_000
const MAX_SYMBOLS = 50

type Post = { time: number; symbol: string; price: bigint; endsBar: boolean }

/** After a longer pause the keeper of a recorded day has acted on what came before. */
const KEEPER_SECONDS = 5

/** Parses a day of `ats tape record --posts`, or a tape in CSV. Throws TapeError. */
export const parseTape = (text: string): Tape => (text.trimStart().startsWith('{') ? parseDay(text) : parseCsv(text))

function parseDay(text: string): Tape {
  let day: RecordedDay
  try {
    day = JSON.parse(text)
  } catch (cause) {
    throw new TapeError('The tape is no complete JSON. Record it again with ats tape record --posts.', { cause })
  }
  const { venue, liquidity, blocks } = day
  if (venue === undefined || liquidity === undefined || !(blocks?.length > 1))
    throw new TapeError('The tape is JSON, but no recorded day. Record one with ats tape record --posts.')
  const bigints = (values: Record<string, string> = {}, parse: (text: string) => bigint) =>
    new Map(Object.entries(values).map(([symbol, value]) => [symbol, parse(value)]))
  const steps = blocks.map(({ time, prices, pools, exits = false }, index) => {
    const isQuiet = (blocks[index + 1]?.time ?? Number.POSITIVE_INFINITY) > time + KEEPER_SECONDS
    return {
      time,
      prices: bigints(prices, usdPrice),
      pools: bigints(pools, BigInt),
      endsBar: isQuiet,
      keeperActs: isQuiet || exits,
    }
  })
  return { symbols: venue.tokens.map(({ symbol }) => symbol), steps, venue, liquidity: bigints(liquidity, BigInt) }
}

/**
 * Parses CSV with a header. `time,symbol,price` has one price a row; `time,symbol,open,high,low,close` has candles,
 * whose time is their start. A time is in Unix seconds or ISO 8601, a price in USD with at most 8 decimals. Throws
 * TapeError.
 */
function parseCsv(csv: string): Tape {
  const rows = csvParse(csv.replace(/^\uFEFF/, ''))
  const names = new Set<string>(rows.columns)
  if (!names.has('time') || !names.has('symbol') || !(names.has('price') || names.has('close')))
    throw new TapeError('The first line of a tape is time,symbol,price or time,symbol,open,high,low,close.')
  const read = (index: number, name: string) => (rows[index] as Record<string, string | undefined>)[name]?.trim() ?? ''
  const line = (index: number) => `Line ${index + 2} of the tape`
  const times = rows.map((_, index) => parseTime(read(index, 'time'), line(index)))
  const symbols = rows.map((_, index) => parseSymbol(read(index, 'symbol'), line(index)))
  const priceOf = (index: number, name: string) => parsePrice(read(index, name), `${line(index)}, ${name}`)
  if (names.has('price'))
    return toTape(
      times.map((time, index) => ({
        time,
        symbol: symbols[index] ?? '',
        price: priceOf(index, 'price'),
        endsBar: true,
      })),
    )
  const length = intervalOf(times)
  return toTape(
    times.flatMap((time, index) => {
      const [open, high, low, close] = ['open', 'high', 'low', 'close'].map(name => priceOf(index, name))
      if (open === undefined || high === undefined || low === undefined || close === undefined) return []
      if (low > open || low > close || high < open || high < close)
        throw new TapeError(`${line(index)}: low is the lowest and high the highest price of a candle.`)
      return pathOf({ open, high, low, close }).map((price, quarter) => ({
        time: time + Math.floor((length * (quarter + 1)) / 4),
        symbol: symbols[index] ?? '',
        price,
        endsBar: quarter === 3,
      }))
    }),
  )
}

/** Returns the order in which a candle's prices are played: the extreme against its direction comes first. */
const pathOf = ({ open, high, low, close }: Record<'open' | 'high' | 'low' | 'close', bigint>): bigint[] =>
  close >= open ? [open, low, high, close] : [open, high, low, close]

/** Returns the length of candles: the least distance of two of their times. */
function intervalOf(times: readonly number[]): number {
  const distinct = [...new Set(times)].sort((a, b) => a - b)
  const distances = distinct.slice(1).map((time, index) => time - (distinct[index] ?? 0))
  return distances.reduce((least, distance) => Math.min(least, distance), distances[0] ?? 60)
}

/**
 * Returns the tape of posts in any order. Of two prices of a symbol at one time, the later row counts. Throws
 * TapeError.
 */
export function toTape(posts: readonly Post[]): Tape {
  const symbols = [...new Set(posts.map(({ symbol }) => symbol))].sort()
  if (symbols.length > MAX_SYMBOLS)
    throw new TapeError(`The tape has ${symbols.length} symbols. Write at most ${MAX_SYMBOLS}.`)
  const byTime = Map.groupBy(posts, ({ time }) => time)
  const times = [...byTime.keys()].sort((a, b) => a - b)
  // What comes before every symbol has a price is not played.
  const start = Math.max(
    ...symbols.map(symbol => times.find(time => byTime.get(time)?.some(each => each.symbol === symbol)) ?? 0),
  )
  const last = new Map<string, bigint>()
  const steps: Step[] = []
  for (const time of times) {
    const atTime = byTime.get(time) ?? []
    for (const { symbol, price } of atTime) last.set(symbol, price)
    if (time < start) continue
    // The first step has every price that came before it.
    const prices = time === start ? new Map(last) : new Map(atTime.map(({ symbol, price }) => [symbol, price]))
    steps.push({ time, prices, endsBar: atTime.some(post => post.endsBar) })
  }
  if (steps.length < 2) throw new TapeError('A tape needs prices of all of its symbols at two times at least.')
  if (steps.length > MAX_STEPS)
    throw new TapeError(`The tape has ${steps.length} steps. Write at most ${MAX_STEPS}, for example longer candles.`)
  return { symbols, steps }
}

/**
 * Returns the SHA-256 of what a tape plays, in hexadecimal: the same for the same prices, however the file writes them.
 */
export function hashOf({ steps }: Tape): string {
  const hash = createHash('sha256')
  const text = (values: Step['prices']) => [...values].map(([symbol, value]) => `${symbol}=${value}`).sort()
  for (const { time, prices, pools, endsBar } of steps)
    hash.update(`${time}${endsBar ? '' : '-'}:${text(prices)}${pools ? `/${text(pools)}` : ''}\n`)
  return hash.digest('hex')
}

function parseTime(text: string, where: string): number {
  const seconds = /^\d{9,10}$/.test(text) ? Number(text) : Date.parse(text) / 1000
  if (Number.isInteger(seconds) && seconds > 0 && seconds < 2 ** 32) return seconds
  throw new TapeError(
    `${where}: ${JSON.stringify(text)} is not a time. Write Unix seconds or ISO 8601 in whole seconds.`,
  )
}

function parseSymbol(text: string, where: string): string {
  if (isTicker(text)) return text
  throw new TapeError(
    `${where}: ${JSON.stringify(text)} is not a symbol. Write it as the token does, such as NVDA or BRK.B.`,
  )
}

function parsePrice(text: string, where: string): bigint {
  try {
    return usdPrice(text)
  } catch (cause) {
    throw new TapeError(`${where}: ${(cause as Error).message}`, { cause })
  }
}
