import {
  CANDLE_SECONDS,
  type Candle,
  type CandleInterval,
  changeBps,
  volatilityBps,
} from '@agent-trading-service/protocol/candles'
import { PRICE_SOURCES } from '@agent-trading-service/protocol/oracle-price'
import { formatUnits } from 'viem'
import { z } from 'zod'
import { escaped } from './markdown-text.ts'
import { ORACLE_DECIMALS } from './price.ts'
import { asOf, bps, digitsAsNumber, lagBlocks, unixSeconds, unixSecondsIn } from './primitives.ts'

const candleInterval = z.enum(Object.keys(CANDLE_SECONDS) as CandleInterval[])

export const MAX_CANDLES = 1_000

export const candleQuery = z.object({
  interval: candleInterval.default('1h').meta({ example: '1h' }),
  from: unixSecondsIn.optional().describe('Unix seconds'),
  to: unixSecondsIn.optional().describe('Unix seconds; default: now'),
  limit: digitsAsNumber(z.int().min(1).max(MAX_CANDLES)).default(24).describe('Intervals'),
  cursor: unixSecondsIn.optional().describe('nextCursor of the page before'),
  fill: z.enum(['previous']).optional().describe('Repeats the price before'),
})

const prices = z.array(z.string())
const change = z.int().nullable()

export const candleList = z
  .object({
    symbol: z.string(),
    interval: candleInterval,
    candles: z
      .object({ t: z.array(z.string()), o: prices, h: prices, l: prices, c: prices, n: z.array(z.int()) })
      .meta({
        id: 'Candles',
        description:
          'Columns, oldest first: start (Unix seconds), first, highest, lowest, last price (US dollars), posts. An interval without a post is left out, or filled with n = 0',
      }),
    change: z
      .object({ hour: change, day: change, week: change })
      .describe('To the newest price from the one 1 hour, 24 hours, 7 days ago; basis points'),
    volatilityBps: bps('Standard deviation of ln(close / close before) of these candles').nullable(),
    source: z.enum(PRICE_SOURCES).describe('Where the price comes from now'),
    postsFrom: unixSeconds('Intervals below 1h exist from here on'),
    nextCursor: unixSeconds('Continues with older candles').nullable(),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'CandleList' })

const usd = (price: bigint) => formatUnits(price, ORACLE_DECIMALS)

/** Presents candles as columns. */
export const presentCandles = (candles: readonly Candle[]): z.input<typeof candleList>['candles'] => ({
  t: candles.map(({ start }) => `${start}`),
  o: candles.map(({ open }) => usd(open)),
  h: candles.map(({ high }) => usd(high)),
  l: candles.map(({ low }) => usd(low)),
  c: candles.map(({ close }) => usd(close)),
  n: candles.map(({ posts }) => posts),
})

/** Presents how prices moved: `earlier` are those of an hour, a day and a week before `now`. */
export function presentMoves(
  candles: readonly Candle[],
  now: bigint | undefined,
  earlier: readonly (bigint | undefined)[],
) {
  const since = (price: bigint | undefined) => (now === undefined ? null : (changeBps(price, now) ?? null))
  const [hour, day, week] = earlier
  return {
    change: { hour: since(hour), day: since(day), week: since(week) },
    volatilityBps: volatilityBps(candles) ?? null,
  }
}

/** Renders candles as Markdown: how the price moved in one sentence, then a table, oldest first. */
export function candlesMarkdown(list: z.input<typeof candleList>): string {
  const { symbol, interval, candles, change, volatilityBps, nextCursor, asOf } = list
  const { t, o, h, l, c, n } = candles
  const newest = c.at(-1)
  const length = t.length === 0 ? 0 : (Number(t.at(-1)) - Number(t[0])) / CANDLE_SECONDS[interval] + 1
  const moves = `Change over 1 h ${percent(change.hour)}, 24 h ${percent(change.day)}, 7 d ${percent(change.week)}; volatility ${percent(volatilityBps)} per interval.`
  return [
    `# ${escaped(symbol)}, ${interval}`,
    `${newest === undefined ? 'No price' : `Last price ${newest} US dollars`}. ${moves} As of block ${asOf.blockNumber}.`,
    `${length - t.length} intervals between the first and the last had no post and are left out.${nextCursor === null ? '' : ` Older ones: cursor ${nextCursor}.`}`,
    [
      '| start (UTC) | open | high | low | close | posts |',
      '|---|---|---|---|---|---|',
      ...t.map((start, index) => {
        const cells = [timeOf(start), o[index], h[index], l[index], c[index], n[index]]
        return `| ${cells.join(' | ')} |`
      }),
    ].join('\n'),
    '',
  ].join('\n\n')
}

const percent = (bps: number | null) => (bps === null ? 'unknown' : `${bps / 100} %`)
const timeOf = (seconds: string) => new Date(Number(seconds) * 1_000).toISOString().slice(0, 16).replace('T', ' ')
