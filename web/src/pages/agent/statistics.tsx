import type { Schema } from '../../data/client.ts'
import { useLatest, useRead } from '../../data/use-read.ts'
import { type Choice, Choices, chosenIn } from '../../parts/choices.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { NoValue, Percent, Usdc } from '../../parts/figures.tsx'
import { Facts, Panel } from '../../parts/panel.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { CapitalMode } from '../../parts/text.tsx'
import { usePlace } from '../../router.tsx'
import { PnlCalendar } from './calendar.tsx'

const HOUR_SECONDS = 3_600
const POLL_MS = 60_000

const CHOICES: Choice[] = [
  {
    name: 'stats',
    label: 'Period',
    initial: 'all',
    values: [
      ['day', 'Today'],
      ['week', 'This week'],
      ['month', 'This month'],
      ['all', 'All time'],
    ],
  },
  {
    name: 'capital',
    label: 'Capital',
    values: [
      ['', 'Of the newest trade'],
      ['real', 'Real'],
      ['simulated', 'On paper'],
    ],
  },
]

/** What the trades of an agent amount to in a period, with one kind of capital, and what it realized on each day. */
export function Statistics({ agentId }: { agentId: string }) {
  const chosen = chosenIn(CHOICES, usePlace().searchParams)
  const capital = chosen.capital as '' | 'real' | 'simulated'
  const period = chosen.stats as Schema['AgentStats']['period']
  const of = { agentId, ...(capital && { capital }) }
  const all = useRead('getAgentStats', of, { pollMs: POLL_MS })
  const part = useRead('getAgentStats', period === 'all' ? undefined : { ...of, period }, { pollMs: POLL_MS })
  const stats = useLatest(period === 'all' ? all : part)
  return (
    <Panel title="Statistics" aside={stats.data && <CapitalMode mode={MODES[stats.data.capital]} />}>
      <div class="stack">
        <Choices label="What the statistics cover" choices={CHOICES} />
        <WhenReady resource={stats} what="the statistics" lines={8}>
          {data => <Facts items={factsOf(data)} />}
        </WhenReady>
        <div class="columns halves">
          <WhenReady resource={useLatest(all)} what="the days" lines={8}>
            {({ pnlByDay, asOf }) => <PnlCalendar days={pnlByDay} now={Number(asOf.blockTimestamp)} />}
          </WhenReady>
          {stats.data && stats.data.pnlByToken.length > 0 && (
            <DataTable
              label="By token"
              columns={TOKEN_COLUMNS}
              rows={stats.data.pnlByToken}
              keyOf={({ token }) => token}
            />
          )}
        </div>
      </div>
    </Panel>
  )
}

const MODES = { real: 'Real', simulated: 'Simulated' } as const

const factsOf = ({
  executionCost,
  maxDrawdown,
  ...stats
}: Schema['AgentStats']): [string, preact.ComponentChildren][] => [
  ['Return', <Percent key="return" ppm={stats.returnPpm} signed />],
  ['Profit, realized or not', <Usdc key="pnl" value={stats.pnlUsdc} signed />],
  ['Trades', <Count key="trades" value={stats.trades} />],
  ['Positions closed', <Count key="closed" value={stats.closedPositions} />],
  ['Won', <Percent key="won" bps={stats.winRateBps} />],
  ['Profit factor', <Ratio key="factor" milli={stats.profitFactorMilli} />],
  ['Held on average', <Hours key="held" seconds={stats.averageHoldingSeconds} />],
  ['Best', stats.best ? <Usdc key="best" value={stats.best.pnlUsdc} signed /> : <NoValue key="best" />],
  ['Worst', stats.worst ? <Usdc key="worst" value={stats.worst.pnlUsdc} signed /> : <NoValue key="worst" />],
  ['Deepest fall', <Percent key="fall" ppm={maxDrawdown?.ppm} />],
  ['Sharpe', <Ratio key="sharpe" milli={stats.sharpeMilli} />],
  ['Sortino', <Ratio key="sortino" milli={stats.sortinoMilli} />],
  ['Invested on average', <Percent key="exposure" ppm={stats.exposurePpm} />],
  ['Cost against the oracle', <Percent key="cost" bps={executionCost.costBps} />],
]

const TOKEN_COLUMNS: Column<Schema['AgentStats']['pnlByToken'][number]>[] = [
  { head: 'Token', part: 'name', cell: ({ symbol }) => <a href={`/app/tokens/${symbol}`}>{symbol}</a> },
  { head: 'Trades', isNumber: true, cell: ({ trades }) => trades },
  {
    head: 'Realized',
    part: 'lead',
    isNumber: true,
    cell: ({ realizedPnlUsdc }) => <Usdc value={realizedPnlUsdc} signed />,
  },
  { head: 'Cost', isNumber: true, cell: ({ costBps }) => <Percent bps={costBps} /> },
]

const Count = ({ value }: { value: number }) => <span class="num">{value}</span>

/** A ratio in thousandths. */
export const Ratio = ({ milli }: { milli: number | null }) =>
  milli === null ? <NoValue /> : <span class="num">{(milli / 1_000).toFixed(2).replace('-', '−')}</span>
const Hours = ({ seconds }: { seconds: number | null }) =>
  seconds === null ? <NoValue /> : <span class="num">{(seconds / HOUR_SECONDS).toFixed(1)} h</span>
