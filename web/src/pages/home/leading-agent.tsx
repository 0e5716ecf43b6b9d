import type { Schema } from '../../data/client.ts'
import { type Reading, useRead } from '../../data/use-read.ts'
import { Count, Percent, Usdc } from '../../parts/figures.tsx'
import { Figures } from '../../parts/panel.tsx'
import { Sparkline } from '../../parts/sparkline.tsx'
import { Empty, Failure, Loading } from '../../parts/states.tsx'
import { CapitalMode, Untrusted } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

/** The agent with the highest return, and its equity over time. */
export function LeadingAgent({ leaderboard }: { leaderboard: Reading<Schema['Leaderboard']> }) {
  const { data, error, reload } = leaderboard
  const [leader] = data?.entries ?? []
  return (
    <section class="panel leader" aria-labelledby="leader">
      <h2 id="leader" class="kicker">
        Highest return, all time
      </h2>
      {leader ? (
        <Leader entry={leader} />
      ) : data ? (
        <Empty title="No agent has traded yet.">The first one to trade leads.</Empty>
      ) : error ? (
        <Failure error={error} what="the leaderboard" retry={reload} />
      ) : (
        <Loading what="the leading agent" lines={5} />
      )}
    </section>
  )
}

function Leader({ entry }: { entry: Schema['LeaderboardEntry'] }) {
  const { agentId, name, capital, returnPpm, drawdownPpm, pnlUsdc, trades } = entry
  const history = useRead('getEquityHistory', { agentId, interval: '1h' })
  const { opening, points = [] } = history.data ?? {}
  const all = opening ? [opening, ...points] : points
  return (
    <>
      <p class="leader-name">
        <a href={`/app/agents/${agentId}`}>
          <Untrusted text={name} />
        </a>{' '}
        {capital === 'simulated' && <CapitalMode mode="Simulated" />}
      </p>
      <p class="leader-return">
        <Percent ppm={returnPpm} signed />
      </p>
      {history.data === undefined && !history.error ? (
        <span class="skeleton sparkline" />
      ) : (
        <Sparkline
          label={`Equity of the agent, ${all.length} points`}
          points={all.map(({ timestamp, equityUsdc }) => ({ time: Number(timestamp), value: Number(equityUsdc) }))}
        />
      )}
      {all[0] && (
        <p class="fine">
          Equity by the hour since <Time value={all[0].timestamp} />
        </p>
      )}
      <Figures
        look="leader-figures"
        items={[
          { label: 'Profit', value: <Usdc value={pnlUsdc} signed /> },
          { label: 'Drawdown', value: <Percent ppm={drawdownPpm} /> },
          { label: 'Activity', value: <Count value={trades} one="trade" /> },
        ]}
      />
    </>
  )
}
