import { marketHours } from '@agent-trading-service/protocol/market-hours'
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'
import type { MarketKind } from '../packages/cli/src/commands/rehearse.ts'
import { MAX_PRICE } from './price-file.ts'
import { type Tape, toTape } from './tape.ts'

/** `vol` and `drift` are percent a year, `correlation` is that of each two tokens. */
export type MarketOptions = {
  kind: MarketKind
  vol: number
  drift: number
  correlation: number
  days: number
  seed: number
  /** Prices day and night, instead of in the exchange's regular hours with a gap overnight. */
  allHours: boolean
  /** A token whose prices end in the middle. */
  stale?: string | undefined
  /** First prices in USD by symbol, instead of those of twelve stocks. */
  tokens?: Readonly<Record<string, number>>
}

/** The tokens of a generated market, with their first prices in USD. */
const TOKENS: Readonly<Record<string, number>> = {
  AAPL: 271.4,
  AMD: 214.9,
  AMZN: 244.2,
  COIN: 332.87,
  GOOGL: 289.1,
  HOOD: 138.6,
  META: 641.75,
  MSFT: 512.6,
  NFLX: 1_104.5,
  NVDA: 180.25,
  PLTR: 187.05,
  TSLA: 421.3,
}
export const GENERATED_SYMBOLS = Object.keys(TOKENS)

const BAR = 300
const DAY = 86_400
const YEAR = 365 * DAY
/** Monday 2026-03-02, 09:30 in New York. */
const START = 1_772_461_800
/**
 * A year has 252 sessions of 6.5 hours, and what happens between two of them moves prices a third as much as a session
 * does.
 */
const SESSION_YEAR = 252 * 6.5 * 3_600 * (4 / 3)
const OVERNIGHT_SECONDS = (6.5 * 3_600) / 3
/** Of `jumps`: per token and day, and their standard deviation. */
const JUMPS_PER_DAY = 0.25
const JUMP_SIZE = 0.04
/** Of `trend`: how fast prices move, as a multiple of what `vol` moves them in the time of a regime. */
const TREND_STRENGTH = 1.5
const REGIME_DAYS = 4
/** Of `crash`: how deep the fall goes, over how much of the tape, and how much of it comes back. */
const CRASH = { from: 0.55, to: 0.65, depth: 0.28, recovery: 0.4 }

/** Generates a market in bars of five minutes. The same options give the same tape. */
export function generateMarket({ tokens = TOKENS, ...options }: MarketOptions): Tape {
  const { kind, vol, drift, correlation, days, seed, allHours, stale } = options
  const random = xoroshiro128plus(seed)
  const uniform = () => uniformFloat64(random)
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform())
  const symbols = Object.keys(tokens)
  const times = barTimes(days, allHours)
  const [sigma, mu] = [vol / 100, drift / 100]
  const logs = new Map(symbols.map(symbol => [symbol, Math.log(tokens[symbol] ?? 1)]))
  const regimes = new Map(symbols.map(symbol => [symbol, 0]))
  const posts = []
  for (const [bar, time] of times.entries()) {
    const seconds = bar === 0 ? 0 : elapsed(time - (times[bar - 1] ?? time), allHours)
    const years = seconds / (allHours ? YEAR : SESSION_YEAR)
    const isNewRegime = bar % Math.round((REGIME_DAYS * times.length) / days) === 0
    const common = normal()
    for (const symbol of symbols) {
      const shock = Math.sqrt(correlation) * common + Math.sqrt(1 - correlation) * normal()
      let change = (mu - sigma ** 2 / 2) * years + sigma * Math.sqrt(years) * shock
      if (kind === 'jumps' && uniform() < (JUMPS_PER_DAY * days) / times.length) change += JUMP_SIZE * normal()
      if (kind === 'trend') {
        if (isNewRegime) regimes.set(symbol, uniform() < 0.5 ? -1 : 1)
        const regimeYears = (REGIME_DAYS * DAY) / YEAR
        change += ((regimes.get(symbol) ?? 0) * TREND_STRENGTH * sigma * Math.sqrt(regimeYears) * years) / regimeYears
      }
      if (kind === 'crash') change += crashAt((bar - 1) / times.length, bar / times.length)
      const log = (logs.get(symbol) ?? 0) + (bar === 0 ? 0 : change)
      logs.set(symbol, log)
      if (symbol === stale && bar > times.length / 2) continue
      // Cents, as exchanges have them, and all decimals of a token that begins below a dollar. A price is at least one.
      const units = (tokens[symbol] ?? 1) < 1 ? 100_000_000 : 100
      const usd = Math.min(Math.exp(log), Number(MAX_PRICE) / 1e8)
      const price = BigInt(Math.max(1, Math.round(usd * units))) * BigInt(100_000_000 / units)
      posts.push({ time, symbol, price, endsBar: true })
    }
  }
  return toTape(posts)
}

/** Returns the times of the bars: in regular hours, or all. */
function barTimes(days: number, allHours: boolean): number[] {
  const times = []
  for (let time = START; time < START + days * DAY; time += BAR)
    if (allHours || marketHours('us-equity-24-5', time).session === 'regular') times.push(time)
  return times
}

/** Returns how much a pause between two bars counts: a night or a weekend as much as a part of a session. */
const elapsed = (seconds: number, allHours: boolean) => (allHours || seconds <= BAR ? seconds : BAR + OVERNIGHT_SECONDS)

/** Returns the logarithm of a crash's change between two parts of the tape. */
function crashAt(before: number, after: number): number {
  const level = (part: number) => {
    if (part <= CRASH.from) return 0
    if (part <= CRASH.to) return (Math.log(1 - CRASH.depth) * (part - CRASH.from)) / (CRASH.to - CRASH.from)
    return Math.log(1 - CRASH.depth) * (1 - (CRASH.recovery * (part - CRASH.to)) / (1 - CRASH.to))
  }
  return level(after) - level(before)
}
