import { useMemo, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useLatest, useRead } from '../../data/use-read.ts'
import { formatUsdc } from '../../format/amounts.ts'
import { Chart } from '../../parts/chart.tsx'
import { DAY_SECONDS, seriesQuery } from '../../parts/chart-range.ts'
import { Usdc } from '../../parts/figures.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { Time } from '../../parts/times.tsx'

/** The share price of a vault over time. The first response says since when there is one. */
export function SharePriceChart({ id, asOf }: { id: string; asOf: Schema['AsOf'] }) {
  const [period, setPeriod] = useState(Number.POSITIVE_INFINITY)
  const now = Number(asOf.blockTimestamp)
  const all = useRead('getVaultStats', { id, ...seriesQuery(Number.POSITIVE_INFINITY, 0, now) })
  const first = all.data?.opening ?? all.data?.sharePrices[0]
  // A day's point is at its end: there may have been a price since its start.
  const since = first && Number(first.timestamp) - DAY_SECONDS
  const query = since === undefined ? undefined : seriesQuery(period, since, now)
  const finer = useRead('getVaultStats', query && { id, ...query })
  return (
    <WhenReady resource={useLatest(all.data && first === undefined ? all : finer)} what="the share price" lines={11}>
      {stats => <SharePriceLine stats={stats} period={period} span={now - (since ?? now)} onPeriod={setPeriod} />}
    </WhenReady>
  )
}

type LineProps = { stats: Schema['VaultStats']; period: number; span: number; onPeriod: (period: number) => void }

function SharePriceLine({ stats, period, span, onPeriod }: LineProps) {
  const points = stats.opening ? [stats.opening, ...stats.sharePrices] : stats.sharePrices
  const lines = useMemo(
    () => [
      {
        name: 'share price',
        values: points.map(({ timestamp, sharePriceUsdc }) => ({
          time: Number(timestamp),
          value: Number(sharePriceUsdc) / 1e6,
        })),
        color: 'accent' as const,
        pane: 0 as const,
        format: (value: number) => value.toFixed(4),
      },
    ],
    [stats],
  )
  const last = points.at(-1)
  if (last === undefined) return <Empty title="No share price yet.">It is shown from the first deposit on.</Empty>
  return (
    <Chart
      size="low"
      period={period}
      span={span}
      onPeriod={onPeriod}
      summary={`Share price, ${points.length} points; the last one is ${formatUsdc(last.sharePriceUsdc, 6)} USDC.`}
      lines={lines}
      legend={time => {
        const shown = points.find(({ timestamp }) => Number(timestamp) === time) ?? last
        return (
          <>
            <Usdc value={shown.sharePriceUsdc} fraction={6} />
            <span class="fine">
              <Time value={shown.timestamp} />
            </span>
          </>
        )
      }}
      table={() => (
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col" class="right">
                Share price
              </th>
              <th scope="col" class="right">
                Assets
              </th>
            </tr>
          </thead>
          <tbody>
            {points.toReversed().map(point => (
              <tr key={point.timestamp}>
                <td>
                  <Time value={point.timestamp} />
                </td>
                <td class="right">
                  <Usdc value={point.sharePriceUsdc} fraction={6} />
                </td>
                <td class="right">
                  <Usdc value={point.totalAssets} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    />
  )
}
