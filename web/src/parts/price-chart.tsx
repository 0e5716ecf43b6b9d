import { CANDLE_SECONDS, type CandleInterval } from '@agent-trading-service/protocol/candles'
import { useState } from 'preact/hooks'
import type { Schema } from '../data/client.ts'
import { useLatest, useRead } from '../data/use-read.ts'
import { formatUsd } from '../format/amounts.ts'
import { actionMarksOf } from './action-marks.ts'
import { type Candle, Chart, type Level, type Mark } from './chart.tsx'
import { Price } from './figures.tsx'
import { Empty, WhenReady } from './states.tsx'
import { CsvLink } from './text.tsx'
import { Time } from './times.tsx'

type Trade = Schema['Trade']

const MAX_CANDLES = 160
/** The first two weeks of a token that nobody holds. */
const DEFAULT_SPAN = 14 * 86_400

/** Returns the shortest interval of which so many cover a span, in seconds. */
export function candleIntervalOf(span: number): CandleInterval {
  const intervals = Object.keys(CANDLE_SECONDS) as CandleInterval[]
  return intervals.find(interval => span / CANDLE_SECONDS[interval] <= MAX_CANDLES) ?? '1w'
}

type Props = {
  symbol: string
  /** The time of the newest block, and what "all" of the chart begins with; Unix seconds. */
  now: number
  since?: number | undefined
  /** Where the chart ends, if that is before `now`. */
  until?: number | undefined
  levels?: Level[]
  trades?: Trade[]
}

/** The oracle prices of a token as candles, with the levels and trades of an agent. */
export function PriceChart({ symbol, now, since = now - DEFAULT_SPAN, until, levels = [], trades = [] }: Props) {
  const [period, setPeriod] = useState(Number.POSITIVE_INFINITY)
  // A quarter more than the time in question, so that what led to it is in view.
  const span = Math.max(3_600, ((until ?? now) - since) * 1.25)
  const shown = Math.min(period, span)
  const interval = candleIntervalOf(shown)
  const limit = Math.ceil(shown / CANDLE_SECONDS[interval]) + 1
  const query = { interval, limit, fill: 'previous' as const, ...(until !== undefined && { to: `${until}` }) }
  const candles = useLatest(useRead('getCandles', { symbol, ...query }))
  const actions = useRead('listCorporateActions', { symbol }, { pollMs: 120_000 })
  return (
    <WhenReady resource={candles} what="the prices" lines={14}>
      {data => {
        const bars = candlesOf(data)
        const last = bars.at(-1)
        if (last === undefined) return <Empty title="No price was posted yet." />
        const from = bars[0]?.time ?? 0
        return (
          <Chart
            summary={`Prices of ${symbol}, ${bars.length} candles; the last one is ${formatUsd(`${last.close}`)} USD.`}
            lines={[
              {
                name: 'price',
                values: bars.map(({ time, close }) => ({ time, value: close })),
                color: 'accent',
                pane: 0,
                format: value => formatUsd(`${value}`),
                candles: bars,
                levels: levels.filter(({ value }) => Math.abs(value / last.close - 1) < MAX_DISTANCE),
                marks: [...actionMarksOf(actions.data?.actions ?? [], bars), ...marksOf(trades)].filter(
                  ({ time }) => time >= from - last.seconds,
                ),
              },
            ]}
            period={period}
            span={span}
            onPeriod={setPeriod}
            legend={time => <Legend candle={bars.find(bar => bar.time === time) ?? last} />}
            table={() => <CandleTable candles={bars} />}
            csv={<CsvLink of="the prices" path={`/prices/${symbol}/candles`} query={query} />}
          />
        )
      }}
    </WhenReady>
  )
}

/** Levels further away would flatten the candles; the ladder below has them all. */
const MAX_DISTANCE = 0.1

function candlesOf({ candles: { t, o, h, l, c }, interval }: Schema['CandleList']): Candle[] {
  const seconds = CANDLE_SECONDS[interval]
  const at = (column: string[], index: number) => Number(column[index])
  return t.map((start, index) => ({
    time: Number(start) + seconds / 2,
    seconds,
    open: at(o, index),
    high: at(h, index),
    low: at(l, index),
    close: at(c, index),
  }))
}

const marksOf = (trades: Trade[]): Mark[] =>
  trades.flatMap(({ timestamp, priceUsdc, type, triggerType }) => {
    if (priceUsdc === null) return []
    const isEntry = type === 'PositionOpened' || type === 'PositionIncreased'
    const tone = isEntry
      ? 'entry'
      : triggerType === 'StopLoss'
        ? 'stop'
        : triggerType === 'TakeProfit'
          ? 'profit'
          : 'exit'
    const value = Number(priceUsdc) / 1e6
    return [{ time: Number(timestamp), value, tone, text: `${NAMES[tone]} at ${formatUsd(`${value}`)} USD` }]
  })

const NAMES = { entry: 'Bought', exit: 'Sold', stop: 'Stop-loss fired', profit: 'Take-profit fired' }

const Legend = ({ candle: { time, seconds, open, high, low, close } }: { candle: Candle }) => (
  <>
    <Price usd={`${close}`} />
    <span class="fine num">
      open {formatUsd(`${open}`)} · high {formatUsd(`${high}`)} · low {formatUsd(`${low}`)}
    </span>
    <span class="fine">
      from <Time value={time - seconds / 2} />
    </span>
  </>
)

const CandleTable = ({ candles }: { candles: Candle[] }) => (
  <table>
    <thead>
      <tr>
        {['From', 'Open', 'High', 'Low', 'Close'].map((head, index) => (
          <th key={head} scope="col" class={index > 0 ? 'right' : undefined}>
            {head}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {candles.toReversed().map(({ time, seconds, open, high, low, close }) => (
        <tr key={time}>
          <td>
            <Time value={time - seconds / 2} />
          </td>
          {[open, high, low, close].map((value, index) => (
            <td key={index} class="right num">
              {formatUsd(`${value}`)}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
)
