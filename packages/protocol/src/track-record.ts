import type { Address } from 'viem'
import { addHour, HOUR_SECONDS, openScore, type Score } from './leaderboard-formulas.ts'
import { PERIODS, type Period, periodStart } from './leaderboard-period.ts'
import type { Trade, TradeType } from './trade-events.ts'

/** A held token whose newest price was observed longer ago than this leaves a gap in the samples. */
const MAX_PRICE_AGE_SECONDS = 3_600

/** A price that was posted to the oracle (8 decimals); Unix seconds. */
export type SamplePrice = { price: bigint; observedAt: number }

/** The inputs of a record, in addition to the trades. */
export type SampleMarket = {
  /** Returns the token's last price that was posted at or before a time. */
  priceAt(token: Address, time: number): SamplePrice | undefined
  decimalsOf(token: Address): number
  /** Returns the agent's last allocation cap above 0 at a time; 0 if it never had one. */
  capAt(time: number): bigint
}

export type BlockTime = { block: number; timestamp: number }

/** The trades of an agent in one capital mode, folded up to the start of `hour`. Times are Unix seconds. */
export type TrackRecord = {
  /** Hours since the epoch. */
  hour: number
  /** A block up to which all trades are folded. */
  tradesThrough: number
  lastTrade: number
  /** Sales less purchases, and the tokens held. */
  cash: bigint
  holdings: Record<Address, bigint>
  /** Realized and unrealized PnL. */
  pnl: bigint
  scores: Partial<Record<Period, Score>>
  /** A block at or before the last price of the previous hour. */
  pricesFrom: number
  /** The block up to which the record was continued. */
  seenBlock: number
}

/** What `continueRecord` returns: the record to continue later, and the scores with the hour in progress. */
export type ContinuedRecord = {
  record: TrackRecord
  /** The present score of each period, and the scores that ended since. */
  scores: { period: Period; score: Score }[]
}

export type ExecutedTrade = Pick<Trade, 'type' | 'token' | 'usdcAmount' | 'tokenAmount' | 'blockNumber' | 'timestamp'>

const PURCHASES: readonly TradeType[] = ['PositionOpened', 'PositionIncreased']
const WITHOUT_EXECUTION: readonly TradeType[] = ['PositionClosed', 'ExitLadderUpdated']

/** Returns whether a trade bought or sold something. */
export const isExecution = ({ type }: Pick<Trade, 'type'>): boolean => !WITHOUT_EXECUTION.includes(type)

/**
 * Returns whether a record without new executions stays as it is up to a time. What it holds is valued once in an hour: an
 * agent that only holds would otherwise cost as much as one that trades.
 */
export const isCurrent = (record: TrackRecord, timestamp: number): boolean =>
  !isHolding(record) || record.hour >= hourOf(timestamp)

/** Returns whether a record has tokens at the start of its hour. */
export const isHolding = ({ holdings }: Pick<TrackRecord, 'holdings'>): boolean => Object.keys(holdings).length > 0

/**
 * Continues a record up to a block with its executions after `tradesThrough`, oldest first. Hours without trades and without
 * holdings are skipped: their return is 0. Returns undefined if nothing was ever traded.
 */
export function continueRecord(
  before: TrackRecord | undefined,
  executions: readonly ExecutedTrade[],
  until: BlockTime,
  market: SampleMarket,
): ContinuedRecord | undefined {
  const [first] = executions
  const firstBlock = first === undefined ? until.block : Number(first.blockNumber)
  let record = before ?? (first && newRecord(first))
  if (record === undefined) return undefined
  const pending = [...executions]
  const ended: ContinuedRecord['scores'] = []
  const hourInProgress = hourOf(until.timestamp)
  for (;;) {
    const [next] = pending
    if (!isHolding(record)) {
      if (next === undefined) break
      record = { ...record, hour: hourOf(Number(next.timestamp)) }
    }
    if (record.hour >= hourInProgress) break
    const lastSecond: number = (record.hour + 1) * HOUR_SECONDS - 1
    const later = pending.findIndex(({ timestamp }) => Number(timestamp) > lastSecond)
    record = foldHour(record, pending.splice(0, later < 0 ? pending.length : later), lastSecond, market, ended)
  }
  const hasCurrentHour = isHolding(record) || pending.length > 0
  const current = hasCurrentHour ? foldHour(record, pending, until.timestamp, market, ended) : record
  const pricesFrom =
    record.hour === before?.hour ? before.pricesFrom : before && isHolding(before) ? before.seenBlock : firstBlock
  // Without pending trades, everything up to this block is folded.
  const tradesThrough = pending.length > 0 ? record.tradesThrough : until.block
  return {
    record: { ...record, tradesThrough, pricesFrom, seenBlock: until.block },
    scores: [...ended, ...PERIODS.flatMap(period => withScore(period, current.scores[period]))],
  }
}

const hourOf = (time: number): number => Math.floor(time / HOUR_SECONDS)

const withScore = (period: Period, score: Score | undefined) => (score ? [{ period, score }] : [])

const newRecord = ({ timestamp, blockNumber }: ExecutedTrade): TrackRecord => ({
  hour: hourOf(Number(timestamp)),
  tradesThrough: Number(blockNumber) - 1,
  lastTrade: 0,
  cash: 0n,
  holdings: {},
  pnl: 0n,
  scores: {},
  pricesFrom: Number(blockNumber),
  seenBlock: 0,
})

/** Returns the record after its hour, or after the part of it up to `at`. Scores of periods that ended go to `ended`. */
function foldHour(
  record: TrackRecord,
  trades: readonly ExecutedTrade[],
  at: number,
  market: SampleMarket,
  ended: ContinuedRecord['scores'],
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
  const tradesThrough = last ? Number(last.blockNumber) : record.tradesThrough
  return { ...record, hour: record.hour + 1, tradesThrough, lastTrade, cash, holdings, pnl, scores }
}

function book({ cash, holdings }: TrackRecord, trades: readonly ExecutedTrade[]) {
  const held: TrackRecord['holdings'] = { ...holdings }
  for (const { type, token, usdcAmount = 0n, tokenAmount = 0n } of trades) {
    const isPurchase = PURCHASES.includes(type)
    cash += isPurchase ? -usdcAmount : usdcAmount
    const amount = (held[token] ?? 0n) + (isPurchase ? tokenAmount : -tokenAmount)
    if (amount === 0n) delete held[token]
    else held[token] = amount
  }
  return { cash, holdings: held }
}

/** An oracle price has two more decimals than a USDC amount. */
const USDC_TO_PRICE = 100n

function holdingsValue(holdings: TrackRecord['holdings'], at: number, market: SampleMarket) {
  let value = 0n
  let isGap = false
  for (const [token, amount] of Object.entries(holdings) as [Address, bigint][]) {
    const quote = market.priceAt(token, at)
    isGap ||= quote === undefined || at - quote.observedAt > MAX_PRICE_AGE_SECONDS
    value += (amount * (quote?.price ?? 0n)) / (10n ** BigInt(market.decimalsOf(token)) * USDC_TO_PRICE)
  }
  return { value, isGap }
}
