import { CANDLE_SECONDS } from '@agent-trading-service/protocol/candles'
import type { z } from 'zod'
import type { candleList } from './candle.ts'
import { escaped } from './markdown-text.ts'

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
