import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import { MAX_PRICE, TapeError } from './price-file.ts'
import type { Step, Tape } from './tape.ts'

// Markets from a tape: one that could have happened instead, a part of it, and the same one in disguise.

/** A bar with the steps that lead to it. */
type Bar = { time: number; steps: Step[] }

/** Bars that follow each other without a longer pause are one session; sessions of one bar are taken five at a time. */
const BLOCK_OF_SINGLE_BARS = 5
const MIN_BLOCKS = 4

function barsOf(tape: Tape): Bar[] {
  const bars: Bar[] = []
  let steps: Step[] = []
  for (const step of tape.steps) {
    steps.push(step)
    if (!step.endsBar) continue
    bars.push({ time: step.time, steps })
    steps = []
  }
  return bars
}

/** Returns the bars in blocks that begin after a pause, such as a night. */
function blocksOf(bars: readonly Bar[]): Bar[][] {
  const distances = bars.slice(1).map(({ time }, index) => time - (bars[index]?.time ?? 0))
  const usual = [...distances].sort((a, b) => a - b)[distances.length >> 1] ?? 0
  const blocks: Bar[][] = []
  for (const [index, bar] of bars.entries()) {
    const isPause = index === 0 || (distances[index - 1] ?? 0) > 2 * usual
    if (isPause) blocks.push([bar])
    else blocks.at(-1)?.push(bar)
  }
  const areSessions = blocks.length >= MIN_BLOCKS && bars.length > 2 * blocks.length
  if (areSessions) return blocks
  return Array.from({ length: Math.ceil(bars.length / BLOCK_OF_SINGLE_BARS) }, (_, index) =>
    bars.slice(index * BLOCK_OF_SINGLE_BARS, (index + 1) * BLOCK_OF_SINGLE_BARS),
  )
}

/**
 * Returns a market of the tape's own moves in another order: blocks of bars are drawn with replacement, all tokens
 * together, and joined at their prices (Künsch 1989). A block replaces one of as many bars, so the hours stay those of
 * the tape. Throws TapeError if the tape is too short.
 */
export function resampleTape(tape: Tape, seed: number): Tape {
  const [first, ...bars] = barsOf(tape)
  const blocks = blocksOf(bars)
  if (first === undefined || blocks.length < MIN_BLOCKS)
    throw new TapeError(
      `The tape has ${blocks.length} ${blocks.length === 1 ? 'session' : 'sessions'}. Resampling needs at least ${MIN_BLOCKS}. Pass a longer tape, or --seeds 0 with --windows or --disguises.`,
    )
  const random = xoroshiro128plus(seed)
  // The first numbers of small seeds are alike.
  random.jump()
  const before = closesBefore(first, bars)
  const last = new Map(closesOf(first))
  const steps = [...first.steps]
  for (const block of blocks) {
    const others = blocks.filter(({ length }) => length >= block.length)
    const drawn = others[Math.floor(uniformFloat64(random) * others.length)] ?? block
    for (const [index, { time }] of block.entries()) {
      const source = drawn[index] as Bar
      const [closes, starts] = [before.get(source), new Map(last)]
      for (const step of source.steps) {
        const prices = new Map<string, bigint>()
        for (const [symbol, price] of step.prices) {
          const moved = ((starts.get(symbol) ?? price) * price) / (closes?.get(symbol) ?? price)
          prices.set(symbol, moved > 0n ? moved : 1n)
          last.set(symbol, moved > 0n ? moved : 1n)
        }
        const earliest = (steps.at(-1)?.time ?? 0) + 1
        steps.push({ time: Math.max(earliest, time - (source.time - step.time)), prices, endsBar: step.endsBar })
      }
    }
  }
  return { symbols: tape.symbols, steps }
}

const closesOf = ({ steps }: Bar) => new Map(steps.flatMap(({ prices }) => [...prices]))

/** Returns the prices before each bar. */
function closesBefore(first: Bar, bars: readonly Bar[]): Map<Bar, ReadonlyMap<string, bigint>> {
  let closes = closesOf(first)
  const before = new Map<Bar, ReadonlyMap<string, bigint>>()
  for (const bar of bars) {
    before.set(bar, closes)
    closes = new Map([...closes, ...closesOf(bar)])
  }
  return before
}

/** Returns a market that is made of a tape. Throws TapeError if it has a price that no file may have. */
export function refuseTooHigh(market: Tape, tape: Tape): Tape {
  if (!market.steps.some(({ prices }) => [...prices.values()].some(price => price >= MAX_PRICE))) return market
  const last = new Map<string, number>()
  const moves = barsOf(tape).flatMap(bar =>
    [...closesOf(bar)].map(([symbol, price]) => {
      const [from, to] = [last.get(symbol) ?? Number(price), Number(price)]
      last.set(symbol, to)
      return { symbol, from, to, size: Math.abs(Math.log(to / from)) }
    }),
  )
  const { symbol, from, to } = moves.reduce((most, move) => (move.size > most.size ? move : most))
  throw new TapeError(
    `A market made of the tape would have a price above 10^12 USD. ${symbol} moves most: from ${from / 1e8} to ${to / 1e8} USD in one bar. Correct its prices, or play fewer --days.`,
  )
}

/**
 * Returns the parts of a tape, one after another, each with the prices at which it begins. Each has as many bars, and
 * what does not fill the last one is left out.
 */
export function windowsOf(tape: Tape, count: number): Tape[] {
  const bars = barsOf(tape)
  const size = Math.floor(bars.length / count)
  if (size < 2) throw new TapeError(`The tape has ${bars.length} bars. ${count} windows need at least ${2 * count}.`)
  const before = closesBefore(bars[0] as Bar, bars.slice(1))
  return Array.from({ length: count }, (_, index) => {
    const own = bars.slice(index * size, (index + 1) * size)
    const [opening] = own as [Bar]
    const steps = own.flatMap(({ steps }) => steps)
    const [first] = steps as [Step]
    const prices = new Map([...(before.get(opening) ?? []), ...first.prices])
    const earlier = bars.slice(0, index * size).flatMap(bar => bar.steps.flatMap(({ actions = [] }) => actions))
    // What came before, the last of each token, is in force when the window begins.
    const inForce = [...new Map(earlier.map(action => [action.symbol, action])).values()]
    const actions = [...inForce, ...(first.actions ?? [])]
    return {
      symbols: tape.symbols,
      steps: [{ ...first, prices, ...(actions.length > 0 && { actions }) }, ...steps.slice(1)],
    }
  })
}

/** After one of these, dates may have the same weekdays. */
const YEARS = [-28, -17, -11, -6, -5, 5, 6, 11, 17, 28]

/**
 * Returns the tape with other symbols, years and price levels. An agent that decides by prices alone does the same on
 * it; one that remembers what happened then does not.
 */
export function disguiseTape(tape: Tape, seed: number): { tape: Tape; names: Record<string, string> } {
  const random = xoroshiro128plus(seed)
  const below = (count: number) => Math.floor(uniformFloat64(random) * count)
  const letter = () => String.fromCharCode(65 + below(26))
  const names = new Map<string, string>()
  for (const symbol of tape.symbols) {
    let name = ''
    while (name === '' || tape.symbols.includes(name) || [...names.values()].includes(name))
      name = `${letter()}${letter()}${letter()}${letter()}`
    names.set(symbol, name)
  }
  const [from, to] = [tape.steps[0]?.time ?? 0, tape.steps.at(-1)?.time ?? 0]
  const shifts = YEARS.flatMap(years => {
    const [first, last] = [from, to].map(time => yearsLater(time, years))
    return first === undefined || first !== last || first % (7 * DAY) !== 0 ? [] : [first]
  })
  const shift = shifts[below(shifts.length)] ?? 364 * DAY
  // From 0.5 to 2 times the price, in percent.
  const factors = new Map(tape.symbols.map(symbol => [symbol, BigInt(50 + below(151))]))
  const steps = tape.steps.map(step => ({
    ...step,
    time: step.time + shift,
    ...(step.actions && {
      actions: step.actions.map(({ symbol, effectiveAt, ...action }) => ({
        ...action,
        symbol: names.get(symbol) ?? symbol,
        effectiveAt: effectiveAt + shift,
      })),
    }),
    prices: new Map(
      [...step.prices].map(([symbol, price]) => [
        names.get(symbol) ?? symbol,
        (price * (factors.get(symbol) ?? 100n)) / 100n || 1n,
      ]),
    ),
  }))
  return {
    tape: { symbols: tape.symbols.map(symbol => names.get(symbol) ?? symbol).sort(), steps },
    names: Object.fromEntries(names),
  }
}

const DAY = 86_400

/** Returns the seconds from a time to the same date and hour in another year. */
function yearsLater(time: number, years: number): number {
  const date = new Date(time * 1000)
  date.setUTCFullYear(date.getUTCFullYear() + years)
  return date.getTime() / 1000 - time
}

const YEAR_SESSIONS = 252

/**
 * Estimates a tape's volatility and drift in percent a year and the mean correlation of its tokens, from its bars. A
 * tape whose bars span no two days has the defaults' scale of 252 sessions for all of it.
 */
export function fitTape(tape: Tape): {
  vol: number
  drift: number
  correlation: number
  tokens: Record<string, number>
} {
  const bars = barsOf(tape)
  const days = new Set(bars.map(({ time }) => Math.floor(time / DAY))).size
  const last = new Map<string, number>()
  const logs = new Map<string, number[]>(tape.symbols.map(symbol => [symbol, []]))
  for (const bar of bars) {
    const closes = closesOf(bar)
    for (const symbol of tape.symbols) {
      const [before, now] = [last.get(symbol), closes.get(symbol)]
      const price = now === undefined ? before : Number(now)
      if (price === undefined) continue
      if (before !== undefined) logs.get(symbol)?.push(Math.log(price / before))
      last.set(symbol, price)
    }
  }
  const perYear = YEAR_SESSIONS / days
  const own = [...logs.values()]
  const dot = (a: readonly number[], b: readonly number[]) =>
    a.reduce((sum, each, index) => sum + each * (b[index] ?? 0), 0)
  const variances = own.map(each => dot(each, each))
  const variance = average(variances) * perYear
  const correlations = own.flatMap((a, i) =>
    own.slice(i + 1).flatMap((b, j) => {
      const scale = Math.sqrt((variances[i] ?? 0) * (variances[i + 1 + j] ?? 0))
      return scale > 0 ? [dot(a, b) / scale] : []
    }),
  )
  const drift = average(own.map(each => each.reduce((sum, log) => sum + log, 0))) * perYear + variance / 2
  return {
    vol: Math.sqrt(variance) * 100,
    drift: drift * 100,
    correlation: Math.max(0, Math.min(1, correlations.length === 0 ? 0 : average(correlations))),
    tokens: Object.fromEntries([...closesOf(bars[0] as Bar)].map(([symbol, price]) => [symbol, Number(price) / 1e8])),
  }
}

const average = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
