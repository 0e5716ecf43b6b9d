import { createHash } from 'node:crypto'
import { usdPrice } from '../devnet/controls.ts'
import type { RecordedDay } from '../packages/cli/src/tape/record-day.ts'
import type { RecordedAction } from '../packages/cli/src/tape/recorded-actions.ts'
import type { Venue } from '../packages/cli/src/tape/venue.ts'
import { type Candle, type PriceFile, type PriceRow, readPriceFile, TapeError } from './price-file.ts'
import { TOKEN_DECIMALS } from './seed-venue.ts'

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
  /** The corporate actions that are announced. */
  actions?: readonly RecordedAction[]
  /** Of a recorded day: whether the keeper acts after it. It does after every step of another tape. */
  keeperActs?: boolean
}

/**
 * A market to play. Every symbol has a price in the first step. `venue` is the deployment that it comes from. The pools
 * of a recorded day have a liquidity, and its clock stops at the times that agents ask for, instead of at bars.
 */
export type Tape = {
  symbols: string[]
  steps: Step[]
  venue?: Venue
  liquidity?: ReadonlyMap<string, bigint>
  /** What was changed while it was read. */
  notes?: readonly string[]
}

const MAX_STEPS = 200_000
const MAX_SYMBOLS = 50

type Post = { time: number; symbol: string; price: bigint; endsBar: boolean }

/** After a longer pause the keeper of a recorded day has acted on what came before. */
const KEEPER_SECONDS = 5

/**
 * Parses a day of `ats tape record --posts`, or files of prices in CSV, each of one symbol or of many. `path` says how
 * candles are played. Throws TapeError.
 */
export function parseTape(files: readonly PriceFile[], path: CandlePath = 'natural'): Tape {
  const [first] = files
  if (files.length === 1 && first?.text.trimStart().startsWith('{')) return parseDay(first.text)
  const read = files.map(readPriceFile)
  const rows = read.flatMap(({ rows }) => rows)
  const { symbols, steps } = toTape([...pricesOf(rows), ...candlesOf(rows, path)])
  const changes = [...Map.groupBy(rows, ({ symbol }) => symbol).values()].flatMap(changesOf)
  const actions = actionsWithin(steps, changes)
  const replayed = actions.length === 0 ? [] : [`${actions.length} splits and dividends of shares are replayed.`]
  return {
    symbols,
    steps: steps.map((step, index) => {
      const own = actions.filter(({ announcedWith }) => announcedWith === index).map(({ action }) => action)
      return own.length === 0 ? step : { ...step, actions: own }
    }),
    notes: [...read.flatMap(({ notes }) => notes), ...replayed],
  }
}

/** A change of what a token stands for: shares after it for each share before. */
type Change = { symbol: string; time: number; growth: number }

/** A smaller step is within a day's moves. */
const CLEAR_SPLIT = Math.log(5 / 4)

/**
 * Returns the splits and reinvested dividends of a symbol's rows. A token's price does not change by them, and neither
 * do prices that are adjusted. Throws TapeError for prices that fall by a split.
 */
function changesOf(rows: readonly PriceRow[]): Change[] {
  const inOrder = [...rows].sort((a, b) => a.time - b.time)
  return inOrder.slice(1).flatMap(({ split = 1, dividend = 0, where, ...row }, index): Change[] => {
    const [before, now] = [inOrder[index] as PriceRow, row as PriceRow].map(each => Number(closeOf(each)) / 1e8)
    const [step, ratio] = [Math.log((now ?? 0) / (before ?? 0)), Math.log(split)]
    if (Math.abs(ratio) >= CLEAR_SPLIT && Math.abs(step + ratio) < Math.abs(step))
      throw new TapeError(`${where}: the price moves with the split of ${split}. Export prices adjusted for splits.`)
    const growth = split * (1 + dividend / (before ?? 0))
    return growth === 1 ? [] : [{ symbol: row.symbol, time: row.time, growth }]
  })
}

const closeOf = (row: PriceRow): bigint => ('price' in row ? row.price : row.candle.close)

const MULTIPLIER_DIGITS = 12

/** Returns the corporate actions within steps, each announced with the last step before it. */
function actionsWithin(steps: readonly Step[], changes: readonly Change[]) {
  const multipliers = new Map<string, number>()
  return changes
    .filter(({ time }) => time > (steps[0]?.time ?? 0) && time <= (steps.at(-1)?.time ?? 0))
    .sort((a, b) => a.time - b.time)
    .map(({ symbol, time, growth }) => {
      const multiplier = (multipliers.get(symbol) ?? 1) * growth
      multipliers.set(symbol, multiplier)
      const action: RecordedAction = { symbol, multiplier: multiplier.toFixed(MULTIPLIER_DIGITS), effectiveAt: time }
      return { action, announcedWith: steps.findLastIndex(step => step.time < time) }
    })
}

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
  // A token of other decimals is played by one without a multiplier.
  const scaled = new Set(venue.tokens.flatMap(({ symbol, decimals }) => (decimals === TOKEN_DECIMALS ? [symbol] : [])))
  const steps = blocks.map(({ time, prices, pools, exits = false, ...block }, index) => {
    const actions = (block.actions ?? []).filter(({ symbol }) => scaled.has(symbol))
    const isQuiet = (blocks[index + 1]?.time ?? Number.POSITIVE_INFINITY) > time + KEEPER_SECONDS
    return {
      time,
      prices: bigints(prices, usdPrice),
      pools: bigints(pools, BigInt),
      ...(actions.length > 0 && { actions }),
      endsBar: isQuiet,
      keeperActs: isQuiet || exits,
    }
  })
  return { symbols: venue.tokens.map(({ symbol }) => symbol), steps, venue, liquidity: bigints(liquidity, BigInt) }
}

const pricesOf = (rows: readonly PriceRow[]): Post[] =>
  rows.flatMap(row => ('price' in row ? [{ time: row.time, symbol: row.symbol, price: row.price, endsBar: true }] : []))

/** The candles of all tokens that start together and are as long have their posts at the same times. */
function candlesOf(rows: readonly PriceRow[], path: CandlePath): Post[] {
  const bySymbol = Map.groupBy(
    rows.filter(row => 'candle' in row),
    ({ symbol }) => symbol,
  )
  const timed = [...bySymbol.values()].flatMap(own => {
    const length = lengthOf(own)
    return own.map(({ time, symbol, candle }) => ({ time, length, symbol, prices: walkOf(candle, path) }))
  })
  const together = Map.groupBy(timed, ({ time, length }) => `${time} ${length}`)
  return [...together.values()].flatMap(candles => {
    const most = Math.max(...candles.map(({ prices }) => prices.length))
    return candles.flatMap(({ time, length, symbol, prices }) =>
      prices.map((price, index) => {
        const place = Math.floor(((index + 1) * most) / prices.length)
        const endsBar = index === prices.length - 1
        // The close of the candle before has the second at which this one starts.
        return { time: time + Math.max(1, Math.floor((length * place) / most)), symbol, price, endsBar }
      }),
    )
  })
}

/** Which extreme of a candle comes first: the one against its direction, or the low, where stops are before targets. */
export type CandlePath = 'natural' | 'pessimistic'

/** The largest step within a candle: with a pool's fee of 5 bps, an exit fills at most 12 bps from its trigger. */
const MAX_STEP_BPS = 6n
const BPS = 10_000n

/** Returns the prices at which a candle is played: its open, and from there to both extremes and its close in steps. */
function walkOf({ open, high, low, close }: Candle, path: CandlePath): bigint[] {
  const isLowFirst = path === 'pessimistic' || close >= open
  const corners = [open, ...(isLowFirst ? [low, high] : [high, low]), close]
  return corners.flatMap((to, index) => stepsTo(corners[index - 1] ?? to, to))
}

/** Returns equal steps from a price, which is not one of them, to another, which is the last. */
function stepsTo(from: bigint, to: bigint): bigint[] {
  const distance = to - from
  const [size, least] = [distance < 0n ? -distance : distance, from < to ? from : to]
  const count = (size * BPS + least * MAX_STEP_BPS - 1n) / (least * MAX_STEP_BPS)
  return count === 0n
    ? [to]
    : Array.from({ length: Number(count) }, (_, index) => from + (distance * BigInt(index + 1)) / count)
}

/** Where a day begins at the clocks of a place, one may be an hour shorter. */
const DAY_SLACK = 3_600
const DAY = 86_400

/**
 * Returns the length of a symbol's candles: the usual distance of their times. Throws TapeError if one begins earlier
 * after the one before, such as the unfinished candle at the end of a live export: it would be known before its end.
 */
function lengthOf(candles: readonly PriceRow[]): number {
  const inOrder = [...candles].sort((a, b) => a.time - b.time)
  const distances = inOrder.slice(1).map(({ time }, index) => time - (inOrder[index]?.time ?? 0))
  const counts = Map.groupBy(
    distances.filter(distance => distance > 0),
    distance => distance,
  )
  const [length = 60] = [...counts].sort(([a, some], [b, others]) => others.length - some.length || a - b)[0] ?? []
  const least = length >= DAY ? length - DAY_SLACK : length
  for (const [index, distance] of distances.entries()) {
    const { where } = inOrder[index + 1] as PriceRow
    if (distance > 0 && distance < least)
      throw new TapeError(
        `${where}: the candle begins ${distance} seconds after the one before, but candles are ${length} seconds long. Delete the one that is not whole.`,
      )
  }
  return length
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
  for (const { time, prices, pools, actions, endsBar } of steps) {
    const acts = actions?.map(({ symbol, multiplier, effectiveAt }) => `${symbol}*${multiplier}@${effectiveAt}`)
    hash.update(`${time}${endsBar ? '' : '-'}:${text(prices)}${pools ? `/${text(pools)}` : ''}${acts ?? ''}\n`)
  }
  return hash.digest('hex')
}
