import { bookTrade, EMPTY_BOOK, equityOf, promoteBook } from '@agent-trading-service/protocol/agent-book'
import { CANDLE_SECONDS, type CandleInterval } from '@agent-trading-service/protocol/candles'
import { lastAtOrBefore } from '@agent-trading-service/protocol/last-at-or-before'
import { formatUnits } from 'viem'
import type { LoggedHistory } from '../../packages/cli/src/leaderboard/logged-history.ts'
import type { Body } from './body.ts'

// Equity and candles from nothing but the logs of a chain, made in the simplest way.

/** Returns the figures of a point of an agent's equity at a time in Unix seconds. */
export function equityOfLogs(history: LoggedHistory, agentId: string, time: number): Body {
  const trades = history.trades
    .filter(trade => `${trade.agentId}` === agentId && Number(trade.timestamp) <= time)
    .map(trade => ({ block: Number(trade.blockNumber), logIndex: trade.logIndex, trade }))
  const promotions = history.agents
    .filter(fact => fact.agentId === agentId && fact.vault === undefined && fact.track !== undefined)
    .filter(({ timestamp }) => timestamp <= time)
    .map(({ block, logIndex }) => ({ block, logIndex, trade: undefined }))
  const book = [...trades, ...promotions]
    .sort((one, other) => one.block - other.block || one.logIndex - other.logIndex)
    .reduce((book, { trade }) => (trade ? bookTrade(book, trade) : promoteBook(book)), EMPTY_BOOK)
  const caps = history.caps.filter(fact => fact.agentId === agentId)
  const { equity, unrealized, drawdownBps, openCount } = equityOf(book, lastAtOrBefore(caps, time)?.cap ?? 0n, {
    priceOf: token =>
      lastAtOrBefore(
        history.prices.filter(price => price.token === token),
        time,
      )?.price,
    decimalsOf: token => history.decimals.get(token) ?? 18,
  })
  return {
    equityUsdc: `${equity}`,
    realizedPnlUsdc: `${book.realized}`,
    unrealizedPnlUsdc: `${unrealized}`,
    drawdownBps,
    openCount,
  }
}

/** Returns the candles of posts, oldest first, by their start in Unix seconds, with prices in dollars. */
export function candlesOfPosts(
  posts: readonly { timestamp: number; price: bigint }[],
  interval: CandleInterval,
): Map<number, Body> {
  const seconds = CANDLE_SECONDS[interval]
  const monday = interval === '1w' ? 4 * 86_400 : 0
  const startOf = ({ timestamp }: { timestamp: number }) =>
    Math.floor((timestamp - monday) / seconds) * seconds + monday
  const usd = (price: bigint | undefined) => formatUnits(price ?? 0n, 8)
  return new Map(
    [...Map.groupBy(posts, startOf)].map(([start, posts]) => {
      const prices = posts.map(({ price }) => price)
      const sorted = prices.toSorted((one, other) => (one < other ? -1 : 1))
      return [
        start,
        {
          open: usd(prices[0]),
          high: usd(sorted.at(-1)),
          low: usd(sorted[0]),
          close: usd(prices.at(-1)),
          posts: prices.length,
        },
      ]
    }),
  )
}

/** Returns a page of candles as `candlesOfPosts` does. */
export const toCandles = ({ candles: { t, o, h, l, c, n } }: Body): Map<number, Body> =>
  new Map(
    t.map((start: string, index: number) => [
      Number(start),
      { open: o[index], high: h[index], low: l[index], close: c[index], posts: n[index] },
    ]),
  )
