import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { NoValue, Percent, Usdc } from '../../parts/figures.tsx'
import { Facts } from '../../parts/panel.tsx'
import { WhenReady } from '../../parts/states.tsx'

const HOUR_SECONDS = 3_600

/** What the trades of an agent amount to since its registration. */
export function Statistics({ agentId }: { agentId: string }) {
  const stats = useRead('getAgentStats', { agentId }, { pollMs: 60_000 })
  return (
    <WhenReady resource={stats} what="the statistics" lines={4}>
      {data => <Facts items={factsOf(data)} />}
    </WhenReady>
  )
}

const factsOf = ({
  executionCost,
  maxDrawdown,
  ...stats
}: Schema['AgentStats']): [string, preact.ComponentChildren][] => [
  ['Trades', <Count key="trades" value={stats.trades} />],
  ['Positions closed', <Count key="closed" value={stats.closedPositions} />],
  ['Won', <Share key="won" bps={stats.winRateBps} />],
  ['Profit factor', <Ratio key="factor" milli={stats.profitFactorMilli} />],
  ['Held on average', <Hours key="held" seconds={stats.averageHoldingSeconds} />],
  ['Best', stats.best ? <Usdc key="best" value={stats.best.pnlUsdc} signed /> : <NoValue key="best" />],
  ['Worst', stats.worst ? <Usdc key="worst" value={stats.worst.pnlUsdc} signed /> : <NoValue key="worst" />],
  ['Deepest fall', <Share key="fall" bps={maxDrawdown && maxDrawdown.ppm / 100} />],
  ['Sharpe', <Ratio key="sharpe" milli={stats.sharpeMilli} />],
  ['Sortino', <Ratio key="sortino" milli={stats.sortinoMilli} />],
  ['Invested on average', <Share key="exposure" bps={stats.exposurePpm / 100} />],
  ['Cost against the oracle', <Share key="cost" bps={executionCost.costBps} />],
]

const Count = ({ value }: { value: number }) => <span class="num">{value}</span>
const Share = ({ bps }: { bps: number | null }) => (bps === null ? <NoValue /> : <Percent bps={bps} />)
const Ratio = ({ milli }: { milli: number | null }) =>
  milli === null ? <NoValue /> : <span class="num">{(milli / 1_000).toFixed(2)}</span>
const Hours = ({ seconds }: { seconds: number | null }) =>
  seconds === null ? <NoValue /> : <span class="num">{(seconds / HOUR_SECONDS).toFixed(1)} h</span>
