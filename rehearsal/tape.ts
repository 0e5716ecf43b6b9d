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
  for (const own of Map.groupBy(rows, ({ symbol }) => symbol).values()) {
    refuseMixture(own)
    refuseOtherPrices(own)
  }
  const timed = read.map(({ rows }) => timeCandles(rows))
  const candles = withoutOverlaps(timed.flatMap(each => each.candles))
  const { symbols, steps, notes = [] } = toTape([...pricesOf(rows), ...candlesOf(candles, path)])
  const early = read.filter(({ areAtDates }) => areAtDates && candles.length > 0).map(earlyNote)
  const changes = [...Map.groupBy(rows, ({ symbol }) => symbol).values()].flatMap(changesOf)
  const actions = actionsWithin(steps, changes)
  const replayed =
    actions.length === 0
      ? []
      : [
          `${actions.length} ${actions.length === 1 ? 'split or dividend of a share is' : 'splits and dividends of shares are'} replayed.`,
        ]
  return {
    symbols,
    steps: steps.map((step, index) => {
      const own = actions.filter(({ announcedWith }) => announcedWith === index).map(({ action }) => action)
      return own.length === 0 ? step : { ...step, actions: own }
    }),
    notes: [...[...read, ...timed].flatMap(({ notes }) => notes), ...early, ...notes, ...replayed],
  }
}

const earlyNote = ({ name }: { name: string }): string =>
  `${name}: a price at a date is played when the day begins, before the candles of that day. If it is a close, write its time.`

/** A change of what a token stands for: shares after it for each share before. */
type Change = { symbol: string; time: number; growth: number }

/** A smaller step is within a day's moves. */
const CLEAR_SPLIT = Math.log(5 / 4)

/**
 * Returns the splits and reinvested dividends of a symbol's rows. A token's price does not change by them, and neither
 * do prices that are adjusted. Throws TapeError for prices that fall by a split.
 */
function changesOf(rows: readonly PriceRow[]): Change[] {
  // A row that repeats another one changes nothing again.
  const once = [...Map.groupBy(rows, ({ time }) => time).values()].map(
    same => same.find(({ split, dividend }) => split ?? dividend) ?? (same[0] as PriceRow),
  )
  const inOrder = once.sort((a, b) => a.time - b.time)
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

type CandleRow = PriceRow & { candle: Candle }
type TimedCandle = CandleRow & { length: number }

/** Refuses prices next to candles of the same symbol: one would be played in the middle of the other. */
function refuseMixture(rows: readonly PriceRow[]): void {
  const price = rows.find(row => 'price' in row)
  if (price !== undefined && rows.some(row => 'candle' in row))
    throw new TapeError(`${price.where}: ${price.symbol} has candles too. Pass its prices or its candles, not both.`)
}

/** Refuses two prices of a symbol at one time: the order of the rows does not tell which came later. */
function refuseOtherPrices(rows: readonly PriceRow[]): void {
  const prices = new Map<number, bigint>()
  for (const row of rows) {
    if (!('price' in row)) continue
    if ((prices.get(row.time) ?? row.price) !== row.price)
      throw new TapeError(`${row.where}: ${row.symbol} has another price at the same time. Delete one of them.`)
    prices.set(row.time, row.price)
  }
}

/** Returns the candles of a file with their lengths. */
function timeCandles(rows: readonly PriceRow[]): { candles: TimedCandle[]; notes: string[] } {
  const candles = rows.filter(row => 'candle' in row)
  const bySymbol = [...Map.groupBy(candles, ({ symbol }) => symbol).values()].map(own => inOrderOnce(own))
  const shortest = bySymbol
    .flatMap(own => distancesOf(own).map(wholeDays))
    .reduce((least, distance) => Math.min(least, distance), Number.POSITIVE_INFINITY)
  const timed = bySymbol.map(own => withLengths(own, shortest))
  return { candles: timed.flatMap(each => each.candles), notes: timed.flatMap(each => each.notes) }
}

/** Returns candles of any files in order, each once. Throws TapeError if two of a symbol overlap. */
function withoutOverlaps(candles: readonly TimedCandle[]): TimedCandle[] {
  return [...Map.groupBy(candles, ({ symbol }) => symbol).values()].flatMap(own => {
    const inOrder = [...own].sort((a, b) => a.time - b.time)
    return inOrder.filter((candle, index) => {
      const before = inOrder[index - 1]
      if (before === undefined || candle.time >= before.time + before.length) return true
      if (candle.time === before.time && candle.length === before.length && isSame(candle.candle, before.candle))
        return false
      throw new TapeError(
        `${candle.where}: the candle of ${candle.symbol} begins before that of ${before.where} ends. Delete one of them.`,
      )
    })
  })
}

const isSame = (a: Candle, b: Candle) =>
  a.open === b.open && a.high === b.high && a.low === b.low && a.close === b.close

/** The candles of all tokens that start together and are as long have their posts at the same times. */
function candlesOf(candles: readonly TimedCandle[], path: CandlePath): Post[] {
  const timed = candles.map(each => ({ ...each, prices: walkOf(each, path) }))
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

/**
 * Returns the prices at which a candle is played, at most one a second: its open, and from there to both extremes and
 * its close in steps.
 */
function walkOf({ candle: { open, high, low, close }, where, length }: TimedCandle, path: CandlePath): bigint[] {
  if ((high - low) * BPS > low * MAX_STEP_BPS * BigInt(MAX_STEPS))
    throw new TapeError(`${where}: the high is too far above the low to be played. Correct the row, or delete it.`)
  const isLowFirst = path === 'pessimistic' || close >= open
  const corners = [open, ...(isLowFirst ? [low, high] : [high, low]), close]
  if (length < corners.length)
    throw new TapeError(`${where}: candles of ${length} seconds are too short to be played. Export longer ones.`)
  for (let stepBps = MAX_STEP_BPS; ; ) {
    const prices = corners.flatMap((to, index) => stepsTo(corners[index - 1] ?? to, to, stepBps))
    if (prices.length <= length) return prices
    stepBps = (stepBps * BigInt(prices.length)) / BigInt(length) + 1n
  }
}

/** Returns equal steps from a price, which is not one of them, to another, which is the last. */
function stepsTo(from: bigint, to: bigint, stepBps: bigint): bigint[] {
  const distance = to - from
  const [size, least] = [distance < 0n ? -distance : distance, from < to ? from : to]
  const count = (size * BPS + least * stepBps - 1n) / (least * stepBps)
  return count === 0n
    ? [to]
    : Array.from({ length: Number(count) }, (_, index) => from + (distance * BigInt(index + 1)) / count)
}

/** Where a day begins at the clocks of a place, one may be an hour shorter or longer. */
const DAY_SLACK = 3_600
const DAY = 86_400
const WEEK = 7 * DAY
const SHORTEST_MONTH = 28 * DAY

/** Returns a distance of times as a length of candles: one of days is in whole days. */
function wholeDays(distance: number): number {
  const days = Math.round(distance / DAY) * DAY
  return days > 0 && Math.abs(distance - days) <= DAY_SLACK ? days : distance
}

/** Returns the candles of a symbol by time, each once. Throws TapeError if two differ at one time. */
function inOrderOnce(candles: readonly CandleRow[]): CandleRow[] {
  const sorted = [...candles].sort((a, b) => a.time - b.time)
  return sorted.filter(({ time, symbol, candle, where }, index) => {
    const before = sorted[index - 1]
    if (before?.time !== time) return true
    if (isSame(candle, before.candle)) return false
    throw new TapeError(`${where}: ${symbol} has another candle of the same time. Delete one of them.`)
  })
}

const distancesOf = (inOrder: readonly CandleRow[]): number[] =>
  inOrder.slice(1).map(({ time }, index) => time - (inOrder[index]?.time ?? 0))

/**
 * Returns the candles of a symbol with their length: the usual distance of their times. `shortest` is the shortest one
 * in their file. Throws TapeError if it is not clear, and for a candle that does not fit, such as the unfinished one at
 * the end of a live export: it would be known before its end.
 */
function withLengths(inOrder: readonly CandleRow[], shortest: number): { candles: TimedCandle[]; notes: string[] } {
  const distances = distancesOf(inOrder)
  const { length, isUnsure } = usualOf(distances.map(wholeDays), inOrder, shortest)
  for (const [index, distance] of distances.entries()) {
    const { where } = inOrder[index + 1] as CandleRow
    if (wholeDays(distance) < length)
      throw new TapeError(
        `${where}: the candle begins ${distance} seconds after the one before, but candles are ${length} seconds long. Delete the one that is not whole.`,
      )
  }
  const misplaced = findMisplaced(inOrder, length)
  if (misplaced !== undefined)
    throw new TapeError(
      `${misplaced.where}: no other candle of ${length} seconds begins at such a time. Delete it if it is not whole.`,
    )
  return {
    candles: inOrder.map((row, index) => {
      const distance = distances[index] ?? length
      return { ...row, length: wholeDays(distance) === length ? distance : length }
    }),
    notes: isUnsure
      ? [`Candles of ${inOrder[0]?.symbol} are played as ${length / DAY} days long, because no two are closer.`]
      : [],
  }
}

/** Returns the most frequent distance, and whether it may be that of candles with others missing. */
function usualOf(
  distances: readonly number[],
  candles: readonly CandleRow[],
  shortest: number,
): { length: number; isUnsure: boolean } {
  const counts = Map.groupBy(distances, distance => distance)
  const [first, second] = [...counts]
    .map(([distance, all]) => ({ distance, count: all.length }))
    .sort((a, b) => b.count - a.count || a.distance - b.distance)
  const [{ where, symbol }] = candles as [CandleRow]
  if (first === undefined)
    throw new TapeError(`${where}: ${symbol} has one candle, whose length is not known. Add the next one.`)
  const { distance: length, count } = first
  if (length >= SHORTEST_MONTH)
    throw new TapeError(`${where}: candles of months are not of one length. Export shorter ones, such as days.`)
  const isNear = second?.count === 1 && length < DAY && second.distance <= 2 * length
  const other = shortest < length ? shortest : isNear ? second.distance : undefined
  if (count === 1 && other !== undefined)
    throw new TapeError(
      `${where}: candles of ${symbol} may be ${other} or ${length} seconds long, and no others tell. Add more rows.`,
    )
  return { length, isUnsure: count === 1 && length > DAY && length !== WEEK }
}

/**
 * Returns the candle that begins in the middle of where others do: neither at a multiple of their length from another
 * one, nor at the hour of another one's day, which clocks may change.
 */
function findMisplaced(candles: readonly CandleRow[], length: number): CandleRow | undefined {
  const count = (key: (time: number) => number) => Map.groupBy(candles, ({ time }) => key(time))
  const [phases, hours] = [count(time => time % length), count(time => time % DAY)]
  const isAlone = (times: Map<number, unknown[]>, at: number) => (times.get(at)?.length ?? 0) < 2
  return candles.find(({ time }) => {
    const near = [time - DAY_SLACK, time + DAY_SLACK].flatMap(each => [hours.get(((each % DAY) + DAY) % DAY) ?? []])
    return isAlone(phases, time % length) && isAlone(hours, time % DAY) && near.every(each => each.length === 0)
  })
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
  // The tape starts once every symbol has a price.
  const firstTimes = symbols.map(
    symbol => times.find(time => byTime.get(time)?.some(each => each.symbol === symbol)) ?? 0,
  )
  const start = Math.max(...firstTimes)
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
  if (!posts.some(({ time, endsBar }) => time < start && endsBar)) return { symbols, steps }
  const startsAt = new Date(start * 1_000).toISOString()
  const latest = symbols[firstTimes.indexOf(start)]
  return { symbols, steps, notes: [`Prices before ${startsAt} are not played: ${latest} has none until then.`] }
}

/**
 * Returns the SHA-256 of what a tape plays, in hexadecimal: the same for the same prices, however the file writes them.
 */
export function hashOf({ steps, venue, liquidity }: Tape): string {
  const hash = createHash('sha256')
  const text = (values: Step['prices']) => [...values].map(([symbol, value]) => `${symbol}=${value}`).sort()
  // Of a recorded day: where it was, how deep its pools were, and when its keeper acted.
  if (venue !== undefined) hash.update(`${JSON.stringify(venue)}${text(liquidity ?? new Map())}\n`)
  for (const { time, prices, pools, actions, endsBar, keeperActs } of steps) {
    const acts = actions?.map(({ symbol, multiplier, effectiveAt }) => `${symbol}*${multiplier}@${effectiveAt}`)
    hash.update(
      `${time}${endsBar ? '' : '-'}:${text(prices)}${pools ? `/${text(pools)}` : ''}${acts ?? ''}${keeperActs === undefined ? '' : keeperActs}\n`,
    )
  }
  return hash.digest('hex')
}
