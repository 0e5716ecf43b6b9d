import { CANDLE_SECONDS, type CandleInterval, intervalStart } from '@agent-trading-service/protocol/candles'
import { z } from 'zod'
import { chargeBeforeReading } from '../call.ts'
import { sourceOf } from '../chain/carried-prices.ts'
import { readTree } from '../chain/read-tree.ts'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import type { HistoryContext } from '../history/client.ts'
import { ROWS_PER_UNIT } from '../limits/prices.ts'
import { candleList, candleQuery, candlesMarkdown, presentCandles, presentMoves } from '../resources/candle.ts'
import { invalidField } from '../resources/invalid-request.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const HOUR_SECONDS = 3_600
const DAY_SECONDS = 24 * HOUR_SECONDS
/** The spans of `change`: an hour, a day, a week. */
const SPANS = [HOUR_SECONDS, DAY_SECONDS, 7 * DAY_SECONDS]

export const getCandles = defineOperation(
  {
    id: 'getCandles',
    tool: {
      name: 'svc_get_candles',
      description: 'Returns past oracle prices as candles. Example: {"symbol":"NVDA","interval":"1h"}',
    },
    path: '/prices/{symbol}/candles',
    tag: 'Prices',
    summary: 'Get past prices as candles',
    description:
      'Returns open, high, low and close of the prices that the oracle posted in each interval, in UTC; weeks start on Monday. Columns, oldest first. A page has `limit` intervals, with or without a post: the newest up to `to`, then older ones with `cursor`, down to `from`. `fill=previous` fills intervals without a post with the price before them. The volatility is the sample standard deviation of ln(close / close before), per interval and not scaled to a year; null below three candles. Intervals of an hour and more exist from the first post on, shorter ones for 90 days. Over HTTP, `format=csv` (or `Accept: text/csv`) returns one row per candle, with the next page in the `Link` header; `format=md` (or `Accept: text/markdown`) a table for a model.',
    params: z.object({ symbol: z.string().min(1).max(64).meta({ example: 'NVDA' }) }),
    query: candleQuery,
    csv: 'candles',
    markdown: candlesMarkdown,
    cache: 'isolate',
    output: candleList,
  },
  async ({ chain, history }: HistoryContext, { symbol, interval, limit, fill, ...requested }, call) => {
    const address = await tokenBySymbol(chain, symbol)
    const symbolOf = await symbolsOf(chain, [address])
    const { block: head } = await readTree(chain, [])
    const now = Number(head.timestamp)
    const { from, to, isLast } = pageOf(interval, limit, requested, now)
    await chargeBeforeReading(call, Math.floor((to - from) / secondsPerRead(interval)))
    const pricesAt = [now, ...SPANS.map(span => now - span)]
    const query = { token: address, interval, from, to, isFilled: fill === 'previous', pricesAt }
    const { candles, hasOlder, prices, postsFrom, asOf, lagBlocks } = await history.candles(query, head)
    const [newest, ...earlier] = prices
    return {
      symbol: symbolOf(address),
      interval,
      candles: presentCandles(candles),
      ...presentMoves(candles, newest, earlier),
      source: sourceOf(chain, address).kind,
      postsFrom: `${postsFrom}`,
      nextCursor: hasOlder && !isLast ? `${from}` : null,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

type RequestedPage = { from?: number | undefined; to?: number | undefined; cursor?: number | undefined }

/** Returns the seconds of a page that count as a read: an hour of posts, and stored candles by their number. */
function secondsPerRead(interval: CandleInterval): number {
  const seconds = CANDLE_SECONDS[interval]
  if (seconds < HOUR_SECONDS) return HOUR_SECONDS
  return ROWS_PER_UNIT * (seconds < DAY_SECONDS ? HOUR_SECONDS : DAY_SECONDS)
}

/**
 * Returns the starts of the first and the last interval of a page, and whether it reaches the requested start. `now` is
 * the time of the newest block. Throws INVALID_REQUEST.
 */
function pageOf(interval: CandleInterval, limit: number, { from, to, cursor }: RequestedPage, now: number) {
  const seconds = CANDLE_SECONDS[interval]
  const end = Math.min(to ?? now, now)
  if (from !== undefined && from > end) throw invalidField('from', `${from} is after to, ${end}`, from)
  const last = intervalStart(cursor === undefined ? end : Math.min(end, cursor - 1), interval)
  const oldest = from === undefined ? undefined : intervalStart(from, interval)
  const first = Math.max(last - (limit - 1) * seconds, oldest ?? 0, 0)
  return { from: first, to: last, isLast: oldest !== undefined && first <= oldest }
}
