import { useMemo, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { type Reading, useLatest, useRead } from '../../data/use-read.ts'
import { formatBps, formatUsdc } from '../../format/amounts.ts'
import { Chart, PointTable } from '../../parts/chart.tsx'
import { DAY_SECONDS, hourlyQuery } from '../../parts/chart-range.ts'
import { Percent, Usdc } from '../../parts/figures.tsx'
import { Figures } from '../../parts/panel.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { Time } from '../../parts/times.tsx'
import { usedBps } from '../vaults.tsx'

type Props = { id: string; now: number; stats: Reading<Schema['VaultStats']> }

/** The share price of a vault over time. The days of its statistics say since when there is one. */
export function SharePriceChart({ id, now, stats }: Props) {
  const [period, setPeriod] = useState(Number.POSITIVE_INFINITY)
  const days = stats.data
  const first = days?.sharePrices[0]
  // A day's point is at its end: there may have been a price since its start. An older vault may begin at any time.
  const since = first && (days.opening ? 0 : Number(first.timestamp) - DAY_SECONDS)
  const query = since === undefined ? undefined : hourlyQuery(period, since, now)
  // The days of a young vault have been read.
  const isRead = query?.interval === '1d' && !days?.opening
  const finer = useRead('getVaultStats', query && { id, ...(isRead ? { interval: '1d' } : query) })
  return (
    <WhenReady resource={useLatest(first ? finer : stats)} what="the share price" lines={11}>
      {shown => (
        <>
          <Performance performance={shown.performance} />
          <SharePriceLine stats={shown} period={period} span={now - (since ?? now)} onPeriod={setPeriod} />
        </>
      )}
    </WhenReady>
  )
}

/** What a depositor has gained or lost per share, after fees of the vault, and whose trades made it. */
function Performance({ performance }: { performance: Schema['VaultStats']['performance'] }) {
  const { return7dPpm, return30dPpm, return90dPpm, returnPpm, apyPpm, maxDrawdown90d } = performance
  return (
    <Figures
      items={[
        { label: '7 days', value: <Change ppm={return7dPpm} /> },
        { label: '30 days', value: <Change ppm={return30dPpm} /> },
        { label: '90 days', value: <Change ppm={return90dPpm} /> },
        {
          label: 'Since the start',
          value: <Change ppm={returnPpm} />,
          ...(apyPpm !== null && {
            note: (
              <>
                <Change ppm={apyPpm} /> a year, at the rate of 30 days
              </>
            ),
          }),
        },
        {
          label: 'Deepest fall',
          value: <Percent ppm={maxDrawdown90d?.ppm} />,
          note: maxDrawdown90d ? (
            <>
              <Time value={maxDrawdown90d.from} /> to <Time value={maxDrawdown90d.to} />
            </>
          ) : (
            'in 90 days'
          ),
        },
      ]}
    />
  )
}

const Change = ({ ppm }: { ppm: number | null }) => <Percent ppm={ppm} signed />

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
      {
        name: 'in use',
        values: points.map(point => ({ time: Number(point.timestamp), value: usedBps(point) })),
        color: 'accent' as const,
        pane: 1 as const,
        format: (value: number) => formatBps(value, 1),
      },
    ],
    [stats],
  )
  const last = points.at(-1)
  if (last === undefined) return <Empty title="No share price yet.">It is shown from the first deposit on.</Empty>
  return (
    <Chart
      period={period}
      span={span}
      onPeriod={onPeriod}
      summary={`Share price and assets in use, ${points.length} points; the last price is ${formatUsdc(last.sharePriceUsdc, 6)} USDC, with ${formatBps(usedBps(last), 1)} in use.`}
      lines={lines}
      legend={time => {
        const shown = points.find(({ timestamp }) => Number(timestamp) === time) ?? last
        return (
          <>
            <Usdc value={shown.sharePriceUsdc} fraction={6} />
            <span>
              in use <Percent bps={usedBps(shown)} fraction={1} />
            </span>
            <span class="fine">
              <Time value={shown.timestamp} />
            </span>
          </>
        )
      }}
      table={() => (
        <PointTable
          points={points}
          columns={{
            'Share price': ({ sharePriceUsdc }) => <Usdc value={sharePriceUsdc} fraction={6} />,
            Assets: ({ totalAssets }) => <Usdc value={totalAssets} />,
            'In use': point => <Percent bps={usedBps(point)} fraction={1} />,
          }}
        />
      )}
    />
  )
}
