import { useState } from 'preact/hooks'
import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import { isAgentId } from '../format/agent-id.ts'
import { formatBps, withSign } from '../format/amounts.ts'
import type { PageProps } from '../page-props.ts'
import { Chart, PointTable } from '../parts/chart.tsx'
import { DAY_SECONDS } from '../parts/chart-range.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Percent, Usdc } from '../parts/figures.tsx'
import { PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, Failure, Loading } from '../parts/states.tsx'
import { AgentName, CapitalMode, Untrusted } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { navigate } from '../router.tsx'
import { Ratio } from './agent/statistics.tsx'
import { alignSeries, returnsOf } from './compare/return-series.ts'

/** As many lines as can be told apart. */
const MAX_AGENTS = 6
const POLL_MS = 60_000
const WEEK_SECONDS = 7 * DAY_SECONDS

type Compared = {
  agentId: string
  name: string
  points: Schema['EquityPoint'][] | undefined
  stats: Schema['AgentStats'] | undefined
}

/** The returns of several agents on one chart, and their figures side by side. The agents are in the address. */
export function ComparePage({ query }: PageProps) {
  useLive({})
  const ids = [...new Set((query.get('agents') ?? '').split(',').filter(isAgentId))].slice(0, MAX_AGENTS)
  const [period, setPeriod] = useState(Number.POSITIVE_INFINITY)
  // A constant number of hooks, of which the last ones may read nothing.
  const slots = Array.from({ length: MAX_AGENTS }, (_, index) => useCompared(ids[index], period))
  const agents = slots.flatMap(({ agent }) => agent ?? [])
  const failed = slots.find(({ error }) => error)
  const show = (next: string[]) =>
    navigate(next.length === 0 ? '/app/compare' : `/app/compare?agents=${next.join(',')}`, { replace: true })
  return (
    <>
      <PageTitle
        title="Compare agents"
        kicker="Returns on the allocation of their time, added up as on the leaderboard"
        aside={<a href="/app/leaderboard">Leaderboard</a>}
      />
      <Panel title="Agents">
        <AddAgent isFull={ids.length === MAX_AGENTS} onAdd={id => show([...ids, id])} />
      </Panel>
      {failed?.error && <Failure error={failed.error} what={`agent ${failed.id}`} retry={failed.reload} />}
      {ids.length === 0 ? (
        <Empty title="Which agents?">Enter the id of an agent, or choose Compare on its page.</Empty>
      ) : (
        <>
          <Panel title="Return">
            {agents.length === ids.length && agents.every(({ points }) => points !== undefined) ? (
              <ReturnChart agents={agents} period={period} onPeriod={setPeriod} />
            ) : (
              !failed && <Loading what="the returns" lines={14} />
            )}
          </Panel>
          <Panel title="Since registration" flush>
            <DataTable
              label="Figures since registration"
              columns={columnsOf(id => show(ids.filter(each => each !== id)))}
              rows={agents.map((agent, index) => ({ ...agent, number: index + 1 }))}
              keyOf={({ agentId }) => agentId}
            />
          </Panel>
        </>
      )}
    </>
  )
}

/** Reads an agent with its equity and figures; without an id, nothing. */
function useCompared(id: string | undefined, period: number) {
  const input = id === undefined ? undefined : { agentId: id }
  const agent = useRead('getAgent', input, { pollMs: POLL_MS })
  const now = agent.data && Number(agent.data.asOf.blockTimestamp)
  const since = agent.data && Number(agent.data.agent.createdAt)
  const history = useRead(
    'getEquityHistory',
    input && now && since ? { ...input, ...rangeOf(period, since, now) } : undefined,
    { pollMs: POLL_MS },
  )
  // The chart comes first: some connections carry only a few reads at a time.
  const stats = useRead('getAgentStats', agent.data && input, { pollMs: POLL_MS })
  const { opening, points } = history.data ?? {}
  return {
    id,
    error: agent.error ?? history.error,
    reload: agent.error ? agent.reload : history.reload,
    agent: agent.data && {
      agentId: agent.data.agentId,
      name: agent.data.agent.name,
      points: points && (opening ? [opening, ...points] : points),
      stats: stats.data,
    },
  }
}

/** A week or a young agent in hours, all else in days: six agents cost six times as much as one. */
function rangeOf(period: number, since: number, now: number): { interval: '1h' | '1d'; from: string } {
  const length = Math.min(period, now - since)
  const interval = length <= WEEK_SECONDS ? '1h' : '1d'
  const size = interval === '1h' ? 3_600 : DAY_SECONDS
  const from = Math.max(since, now - Math.min(length, 999 * size))
  return { interval, from: `${from === since ? since : Math.floor(from / size) * size}` }
}

type ReturnChartProps = { agents: Compared[]; period: number; onPeriod: (period: number) => void }

function ReturnChart({ agents, period, onPeriod }: ReturnChartProps) {
  const { times, values } = alignSeries(agents.map(({ points }) => returnsOf(points ?? [])))
  const nameOf = ({ agentId, name }: Compared) => `${name || 'unnamed'} #${agentId}`
  const format = (bps: number) => withSign(formatBps(bps, 1), bps >= 10)
  return (
    <Chart
      summary={`Returns of ${agents.length === 1 ? 'an agent' : `${agents.length} agents`}, ${times.length} points.`}
      period={period}
      span={Number.POSITIVE_INFINITY}
      onPeriod={onPeriod}
      lines={[
        {
          name: 'return',
          values: times.map(time => ({ time, value: 0 })),
          color: 'accent',
          pane: 0,
          format,
          series: agents.map((agent, index) => ({ name: nameOf(agent), values: values[index] ?? [] })),
        },
      ]}
      legend={time => {
        const at = time === undefined ? times.length - 1 : times.indexOf(time)
        return (
          <>
            {agents.map(({ agentId, name }, index) => (
              <span key={agentId} class={`key numbered series-${index + 1}`}>
                <b>{index + 1}</b> <Untrusted text={name} /> <Percent bps={truncated(values[index]?.[at])} signed />
              </span>
            ))}
            <span class="fine">
              <Time value={times[at] ?? null} />
            </span>
          </>
        )
      }}
      table={() => (
        <PointTable
          points={times.map((time, at) => ({ timestamp: `${time}`, at }))}
          columns={Object.fromEntries(
            agents.map(({ agentId }, index) => [
              `#${agentId}`,
              ({ at }: { at: number }) => <Percent bps={truncated(values[index]?.[at])} signed />,
            ]),
          )}
        />
      )}
    />
  )
}

const truncated = (bps: number | undefined) => (bps === undefined ? null : Math.trunc(bps))

type Row = Compared & { number: number }

const columnsOf = (remove: (agentId: string) => void): Column<Row>[] => [
  { head: 'Line', part: 'rank', cell: ({ number }) => <b class={`line-number series-${number}`}>{number}</b> },
  {
    head: 'Agent',
    part: 'name',
    cell: ({ agentId, name, stats }) => (
      <AgentName agentId={agentId} name={name}>
        {stats?.capital === 'simulated' && <CapitalMode mode="Simulated" />}
      </AgentName>
    ),
  },
  {
    head: 'Return',
    part: 'lead',
    isNumber: true,
    cell: ({ stats }) => <Percent ppm={stats?.returnPpm} signed />,
  },
  { head: 'Profit', isNumber: true, cell: ({ stats }) => <Usdc value={stats?.pnlUsdc} signed /> },
  {
    head: 'Drawdown',
    isNumber: true,
    cell: ({ stats }) => <Percent ppm={stats && (stats.maxDrawdown?.ppm ?? 0)} />,
  },
  { head: 'Sharpe', isNumber: true, cell: ({ stats }) => <Ratio milli={stats?.sharpeMilli ?? null} /> },
  { head: 'Won', isNumber: true, cell: ({ stats }) => <Percent bps={stats?.winRateBps} /> },
  { head: 'Trades', isNumber: true, cell: ({ stats }) => stats?.trades },
  {
    head: 'Remove',
    isNumber: true,
    isHeadHidden: true,
    cell: ({ agentId }) => (
      <button type="button" class="link" onClick={() => remove(agentId)}>
        Remove<span class="hidden"> agent {agentId}</span>
      </button>
    ),
  },
]

function AddAgent({ isFull, onAdd }: { isFull: boolean; onAdd: (agentId: string) => void }) {
  const [text, setText] = useState('')
  const id = text.trim().replace('#', '')
  const isWrong = text !== '' && !isAgentId(id)
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        if (!isAgentId(id) || isFull) return
        onAdd(id)
        setText('')
      }}
    >
      <div class="field">
        <label for="compare-agent">{isFull ? `At most ${MAX_AGENTS} agents fit on a chart` : 'Id of an agent'}</label>
        <div class="field-row">
          <input
            id="compare-agent"
            inputMode="numeric"
            autocomplete="off"
            disabled={isFull}
            value={text}
            aria-invalid={isWrong}
            onInput={event => setText(event.currentTarget.value)}
          />
          <button type="submit" disabled={isFull || isWrong || text === ''}>
            Add
          </button>
        </div>
      </div>
    </form>
  )
}
