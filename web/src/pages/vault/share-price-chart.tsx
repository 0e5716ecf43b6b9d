import { useMemo } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { formatUsdc } from '../../format/amounts.ts'
import { Chart } from '../../parts/chart.tsx'
import { Usdc } from '../../parts/figures.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/times.tsx'

/** The share price of a vault over time. */
export function SharePriceChart({ stats }: { stats: Schema['VaultStats'] }) {
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
      table={
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
      }
    />
  )
}
