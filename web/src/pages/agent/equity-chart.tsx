import { useMemo } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { formatBps, formatUsdc } from '../../format/amounts.ts'
import { Chart } from '../../parts/chart.tsx'
import { Percent, Usdc } from '../../parts/figures.tsx'
import { Empty } from '../../parts/states.tsx'
import { Badge } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

const wholeNumber = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

/** The equity of an agent over time, with its drawdown below. */
export function EquityChart({ history }: { history: Schema['EquityHistory'] }) {
  const points = history.opening ? [history.opening, ...history.points] : history.points
  const lines = useMemo(
    () => [
      {
        name: 'equity',
        values: points.map(({ timestamp, equityUsdc }) => ({
          time: Number(timestamp),
          value: Number(equityUsdc) / 1e6,
        })),
        color: 'accent' as const,
        pane: 0 as const,
        format: (value: number) => wholeNumber.format(value),
      },
      {
        name: 'drawdown',
        values: points.map(({ timestamp, drawdownBps }) => ({ time: Number(timestamp), value: -drawdownBps / 100 })),
        color: 'loss' as const,
        pane: 1 as const,
        format: (value: number) => formatBps(Math.round(value * 100), 1),
      },
    ],
    [history],
  )
  const last = points.at(-1)
  if (last === undefined) return <Empty title="No equity yet.">Equity is shown from the agent's registration on.</Empty>
  return (
    <Chart
      summary={`Equity and drawdown, ${points.length} points; the last equity is ${formatUsdc(last.equityUsdc)} USDC, ${formatBps(last.drawdownBps)} below its peak.`}
      lines={lines}
      legend={time => {
        const shown = points.find(({ timestamp }) => Number(timestamp) === time) ?? last
        return (
          <>
            <span class="key accent">
              Equity <Usdc value={shown.equityUsdc} />
            </span>
            <span class="key loss">
              Drawdown <Percent bps={-shown.drawdownBps} />
            </span>
            <span class="fine">
              <Time value={shown.timestamp} /> {shown.priceStale && <Badge tone="warn">stale price</Badge>}
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
                Equity
              </th>
              <th scope="col" class="right">
                Drawdown
              </th>
              <th scope="col" class="right">
                Realized
              </th>
              <th scope="col" class="right">
                Unrealized
              </th>
              <th scope="col" class="right">
                Open
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
                  <Usdc value={point.equityUsdc} />
                </td>
                <td class="right">
                  <Percent bps={-point.drawdownBps} />
                </td>
                <td class="right">
                  <Usdc value={point.realizedPnlUsdc} signed />
                </td>
                <td class="right">
                  <Usdc value={point.unrealizedPnlUsdc} signed />
                </td>
                <td class="right num">{point.openCount}</td>
              </tr>
            ))}
          </tbody>
        </table>
      }
    />
  )
}
