import type { Address } from 'viem'
import { isPurchase } from './agent-book.ts'
import { addHour, HOUR_SECONDS, openScore, type Score } from './leaderboard-formulas.ts'
import { PERIODS, type Period, periodStart } from './leaderboard-period.ts'
import { usdcValue } from './oracle-price.ts'
import type { Trade } from './trade-events.ts'

/** A held token whose newest price was observed longer ago than this leaves a gap in the samples. */
const MAX_PRICE_AGE_SECONDS = 3_600

/** A price that was posted to the oracle (8 decimals); Unix seconds. */
type SamplePrice = { price: bigint; observedAt: number }

/** The inputs of a record, in addition to the trades. */
export type SampleMarket = {
  /** Returns the token's last price that was posted at or before a time. */
  priceAt(token: Address, time: number): SamplePrice | undefined
  decimalsOf(token: Address): number
  /** Returns the agent's last allocation cap above 0 at a time; 0 if it never had one. */
  capAt(time: number): bigint
}

/** The trades of an agent in one capital mode, folded up to the start of `hour`. Times are Unix seconds. */
export type TrackRecord = {
  /** Hours since the epoch. */
  hour: number
  lastTrade: number
  /** Sales less purchases, and the tokens held. */
  cash: bigint
  holdings: Record<Address, bigint>
  /** Realized and unrealized PnL. */
  pnl: bigint
  scores: Partial<Record<Period, Score>>
}

export type PeriodScore = { period: Period; score: Score }

type ExecutedTrade = Pick<Trade, 'type' | 'token' | 'usdcAmount' | 'tokenAmount' | 'timestamp'>

/** Returns whether a record has tokens at the start of its hour. */
const isHolding = ({ holdings }: Pick<TrackRecord, 'holdings'>): boolean => Object.keys(holdings).length > 0

/** A record at the start of an hour, the executions from then on, and the scores of the periods that ended before. */
type FoldedRecord = { record: TrackRecord; pending: ExecutedTrade[]; ended: PeriodScore[] }

/**
 * Continues a record up to the start of an hour (since the epoch) with its executions since the record's hour, oldest
 * first. Hours without trades and without holdings are skipped: their return is 0. Returns undefined if nothing was
 * ever traded.
 */
export function foldRecord(
  before: TrackRecord | undefined,
  executions: readonly ExecutedTrade[],
  hour: number,
  market: SampleMarket,
): FoldedRecord | undefined {
  const [first] = executions
  let record = before ?? (first && newRecord(first))
  if (record === undefined) return undefined
  const pending = [...executions]
  const ended: PeriodScore[] = []
  for (;;) {
    const [next] = pending
    if (!isHolding(record)) {
      if (next === undefined) break
      record = { ...record, hour: hourOf(Number(next.timestamp)) }
    }
    if (record.hour >= hour) break
    const lastSecond: number = (record.hour + 1) * HOUR_SECONDS - 1
    const later = pending.findIndex(({ timestamp }) => Number(timestamp) > lastSecond)
    record = foldHour(record, pending.splice(0, later < 0 ? pending.length : later), lastSecond, market, ended)
  }
  return { record, pending, ended }
}

/** Returns the scores of a record as of a time: those that have ended since, and the newest of each period. */
export function continueRecord(
  before: TrackRecord | undefined,
  executions: readonly ExecutedTrade[],
  until: number,
  market: SampleMarket,
): PeriodScore[] {
  const folded = foldRecord(before, executions, hourOf(until), market)
  if (folded === undefined) return []
  const { record, pending, ended } = folded
  const hasHourInProgress = isHolding(record) || pending.length > 0
  const latest = hasHourInProgress ? foldHour(record, pending, until, market, ended) : record
  return [...ended, ...scoresOf(latest)]
}

/** Returns the newest score of each period. Its period may be over. */
export const scoresOf = ({ scores }: Pick<TrackRecord, 'scores'>): PeriodScore[] =>
  PERIODS.flatMap(period => {
    const score = scores[period]
    return score ? [{ period, score }] : []
  })

/** Returns the hour since the epoch of a time in Unix seconds. */
export const hourOf = (time: number): number => Math.floor(time / HOUR_SECONDS)

const newRecord = ({ timestamp }: ExecutedTrade): TrackRecord => ({
  hour: hourOf(Number(timestamp)),
  lastTrade: 0,
  cash: 0n,
  holdings: {},
  pnl: 0n,
  scores: {},
})

/**
 * Returns the record after its hour, or after the part of it up to `at`. Scores of periods that ended go to `ended`.
 */
function foldHour(
  record: TrackRecord,
  trades: readonly ExecutedTrade[],
  at: number,
  market: SampleMarket,
  ended: PeriodScore[],
): TrackRecord {
  const { cash, holdings } = book(record, trades)
  const last = trades.at(-1)
  const lastTrade = last ? Number(last.timestamp) : record.lastTrade
  const { value, isGap } = holdingsValue(holdings, at, market)
  const pnl = cash + value
  const sample = {
    hour: record.hour,
    from: isHolding(record) ? record.hour * HOUR_SECONDS : Number(trades[0]?.timestamp ?? at),
    at: isHolding({ holdings }) ? at : lastTrade,
    pnl: pnl - record.pnl,
    value,
    cap: market.capAt(at),
    trades: trades.length,
    isGap,
  }
  const scores: TrackRecord['scores'] = {}
  for (const period of PERIODS) {
    const start = periodStart(period, record.hour * HOUR_SECONDS)
    const score = record.scores[period]
    if (score && score.start !== start) ended.push({ period, score })
    scores[period] = addHour(score?.start === start ? score : openScore(start, sample), sample)
  }
  return { hour: record.hour + 1, lastTrade, cash, holdings, pnl, scores }
}

function book({ cash, holdings }: TrackRecord, trades: readonly ExecutedTrade[]) {
  const held: TrackRecord['holdings'] = { ...holdings }
  for (const { type, token, usdcAmount = 0n, tokenAmount = 0n } of trades) {
    const isBought = isPurchase({ type })
    cash += isBought ? -usdcAmount : usdcAmount
    const amount = (held[token] ?? 0n) + (isBought ? tokenAmount : -tokenAmount)
    if (amount === 0n) delete held[token]
    else held[token] = amount
  }
  return { cash, holdings: held }
}

function holdingsValue(holdings: TrackRecord['holdings'], at: number, market: SampleMarket) {
  let value = 0n
  let isGap = false
  for (const [token, amount] of Object.entries(holdings) as [Address, bigint][]) {
    const quote = market.priceAt(token, at)
    isGap ||= quote === undefined || at - quote.observedAt > MAX_PRICE_AGE_SECONDS
    value += usdcValue(amount, { price: quote?.price ?? 0n, decimals: market.decimalsOf(token) })
  }
  return { value, isGap }
}
