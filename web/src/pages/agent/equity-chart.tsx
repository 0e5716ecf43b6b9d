import { useMemo, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { type Reading, useLatest, useRead } from '../../data/use-read.ts'
import { formatBps, formatUsdc } from '../../format/amounts.ts'
import { Chart, type ChartProps, PointTable } from '../../parts/chart.tsx'
import { hourlyQuery, seriesQuery } from '../../parts/chart-range.ts'
import { Percent, Usdc } from '../../parts/figures.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { Badge, CsvLink } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

const wholeNumber = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

type EquityPoint = Schema['EquityPoint']
type Props = { agentId: string; vault: string; since: number; now: number; risk: Reading<Schema['RiskState']> }

/**
 * The equity of an agent from its registration on, up to `now` (Unix seconds). It ends with the risk state that the
 * page shows. The benchmark is the share price of the agent's vault, from the same start.
 */
export function EquityChart({ agentId, vault, since, now, risk }: Props) {
  const [period, setPeriod] = useState(Number.POSITIVE_INFINITY)
  const query = seriesQuery(period, since, now)
  const history = useRead('getEquityHistory', { agentId, ...query })
  const latest = useLatest(history)
  const shares = useLatest(useRead('getVaultStats', { id: vault, ...hourlyQuery(period, since, now) }))
  return (
    <WhenReady resource={risk} what="the equity" lines={14}>
      {risk => (
        <WhenReady resource={latest} what="the equity" lines={14}>
          {data => (
            <EquityLines
              points={pointsUpTo(data, risk)}
              shares={shares.data}
              period={period}
              span={now - since}
              onPeriod={setPeriod}
              csv={<CsvLink of="the equity" path={`/agents/${agentId}/equity-history`} query={query} />}
            />
          )}
        </WhenReady>
      )}
    </WhenReady>
  )
}

/** Returns the points before the block of a risk state, and the risk state as the last one. */
function pointsUpTo({ opening, points }: Schema['EquityHistory'], risk: Schema['RiskState']): EquityPoint[] {
  const { equity, pnl, derived, positions, priceStale, asOf } = risk
  const before = [...(opening ? [opening] : []), ...points].filter(
    ({ timestamp, blockNumber }) =>
      Number(timestamp) < Number(asOf.blockTimestamp) && Number(blockNumber) <= Number(asOf.blockNumber),
  )
  const last: EquityPoint = {
    timestamp: asOf.blockTimestamp,
    blockNumber: asOf.blockNumber,
    equityUsdc: equity.currentUsdc,
    realizedPnlUsdc: pnl.lifetimeRealizedUsdc,
    unrealizedPnlUsdc: derived.unrealizedPnlUsdc,
    drawdownBps: equity.currentDrawdownBps,
    openCount: positions.openCount,
    priceStale,
  }
  return [...before.filter(isAtEndOfInterval), last]
}

/** What the first equity would be worth at each point as shares of the vault, in USDC base units. */
function benchmarkOf(points: EquityPoint[], shares: Schema['VaultStats'] | undefined): (bigint | undefined)[] {
  const prices = shares ? [...(shares.opening ? [shares.opening] : []), ...shares.sharePrices] : []
  const priceAt = ({ timestamp }: EquityPoint) =>
    BigInt(prices.findLast(price => Number(price.timestamp) <= Number(timestamp))?.sharePriceUsdc ?? 0)
  const first = points.find(point => priceAt(point) > 0n)
  if (first === undefined) return []
  const [equity, start] = [BigInt(first.equityUsdc), priceAt(first)]
  return points.map(point => (priceAt(point) > 0n ? (equity * priceAt(point)) / start : undefined))
}

/** The newest point of a response is at its block, which need not be the one that the page shows. */
const isAtEndOfInterval = ({ timestamp }: EquityPoint) => Number(timestamp) % 300 === 299

type LinesProps = { points: EquityPoint[]; shares: Schema['VaultStats'] | undefined } & Pick<
  ChartProps,
  'period' | 'span' | 'onPeriod' | 'csv'
>

/** The equity over time, with its drawdown below. */
function EquityLines({ points, shares, ...chart }: LinesProps) {
  const benchmark = useMemo(() => benchmarkOf(points, shares), [points, shares])
  const lines = useMemo(
    () => [
      {
        name: 'equity',
        values: points.map(({ timestamp, equityUsdc }, index) => ({
          time: Number(timestamp),
          value: Number(equityUsdc) / 1e6,
          benchmark: benchmark[index] === undefined ? undefined : Number(benchmark[index]) / 1e6,
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
    [points, benchmark],
  )
  const last = points.at(-1)
  if (last === undefined) return null
  return (
    <Chart
      summary={`Equity and drawdown, ${points.length} points; the last equity is ${formatUsdc(last.equityUsdc)} USDC, ${formatBps(last.drawdownBps)} below its peak.`}
      lines={lines}
      {...chart}
      legend={time => {
        const shown = points.find(({ timestamp }) => Number(timestamp) === time) ?? last
        const compared = benchmark[points.indexOf(shown)]
        return (
          <>
            <span class="key accent">
              Equity <Usdc value={shown.equityUsdc} />
            </span>
            {compared !== undefined && (
              <span class="key benchmark">
                As shares of the vault <Usdc value={`${compared}`} />
              </span>
            )}
            <span class="key loss">
              Drawdown <Percent bps={-shown.drawdownBps} />
            </span>
            <span class="fine">
              <Time value={shown.timestamp} /> {shown.priceStale && <Badge tone="warn">stale price</Badge>}
            </span>
          </>
        )
      }}
      table={() => (
        <PointTable
          points={points}
          columns={{
            Equity: ({ equityUsdc }) => <Usdc value={equityUsdc} />,
            Drawdown: ({ drawdownBps }) => <Percent bps={-drawdownBps} />,
            Realized: ({ realizedPnlUsdc }) => <Usdc value={realizedPnlUsdc} signed />,
            Unrealized: ({ unrealizedPnlUsdc }) => <Usdc value={unrealizedPnlUsdc} signed />,
            Open: ({ openCount }) => <span class="num">{openCount}</span>,
          }}
        />
      )}
    />
  )
}
