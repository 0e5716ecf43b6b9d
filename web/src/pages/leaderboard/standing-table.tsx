import type { Schema } from '../../data/client.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Percent, Usdc } from '../../parts/figures.tsx'
import { Address, AgentName, CapitalMode } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'
import { Ratio } from '../agent/statistics.tsx'
import { titleCase } from '../vault/tracks.tsx'
import { AgentSparkline, SPANS } from './agent-sparkline.tsx'
import { placesRisen } from './rank-move.ts'

type Entry = Schema['LeaderboardEntry']
type Sort = Schema['Leaderboard']['sort']
type Props = {
  entries: Entry[]
  vaults: Schema['Vault'][]
  sort?: Sort
  isShort?: boolean
  /** The leaderboard of the period before, as far as it was read. */
  before?: Entry[] | undefined
  /**
   * The period of the lines of equity, and the time at which they end in Unix seconds. Without it, there are no lines.
   */
  lines?: { period: Schema['Leaderboard']['period']; until: number }
}

const rankColumn = (before: Entry[] | undefined): Column<Entry> => ({
  head: 'Rank',
  part: 'rank',
  isNumber: true,
  cell: entry => (
    <>
      {entry.rank} {before && before.length > 0 && <Move entry={entry} before={before} />}
    </>
  ),
})

/** How many places an agent rose or fell since the period before. */
function Move({ entry, before }: { entry: Entry; before: Entry[] }) {
  const move = placesRisen(entry, before)
  if (move === undefined) return null
  const { from, places } = move
  const text =
    places === 0
      ? `rank ${from} in the period before, too`
      : `${places > 0 ? 'up' : 'down'} from rank ${from} in the period before`
  return (
    <span class={`move ${places > 0 ? 'up' : places < 0 ? 'down' : 'none'}`} title={text}>
      <span aria-hidden="true">{places === 0 ? '=' : `${places > 0 ? '+' : '−'}${Math.abs(places)}`}</span>
      <span class="hidden">, {text}</span>
    </span>
  )
}

const IDENTITY: Column<Entry>[] = [
  {
    head: 'Agent',
    part: 'name',
    cell: entry => (
      <AgentName agentId={entry.agentId} name={entry.name}>
        {entry.capital === 'simulated' && <CapitalMode mode="Simulated" />}
      </AgentName>
    ),
  },
]

const FIGURES: Record<Sort, Column<Entry>> = {
  return: {
    head: 'Return',
    isNumber: true,
    cell: ({ returnPpm }) => <Percent ppm={returnPpm} signed />,
  },
  drawdown: {
    head: 'Drawdown',
    isNumber: true,
    cell: ({ drawdownPpm }) => <Percent ppm={drawdownPpm} />,
  },
  calmar: { head: 'Calmar', isNumber: true, cell: ({ calmarMilli }) => <Ratio milli={calmarMilli} /> },
  sharpe: { head: 'Sharpe', isNumber: true, cell: ({ sharpeMilli }) => <Ratio milli={sharpeMilli} /> },
}
const PROFIT: Column<Entry> = {
  head: 'Profit',
  isNumber: true,
  cell: ({ pnlUsdc }) => <Usdc value={pnlUsdc} signed />,
}

const lineColumn = ({ period, until }: NonNullable<Props['lines']>): Column<Entry> => ({
  head: `Equity, ${SPANS[period].name}`,
  wraps: true,
  cell: ({ agentId }) => (
    <AgentSparkline key={`${agentId} ${period}`} agentId={agentId} period={period} until={until} />
  ),
})

const furtherColumns = (vaults: Props['vaults']): Column<Entry>[] => [
  { head: 'Trades', isNumber: true, cell: ({ trades }) => trades.toLocaleString('en') },
  { head: 'Vault and track', cell: entry => <VaultAndTrack entry={entry} vaults={vaults} /> },
  {
    head: 'Owner',
    cell: ({ owner, agentsOfOwner }) => (
      <>
        <Address value={owner} />
        {agentsOfOwner > 1 && <span class="sub">has {agentsOfOwner} agents</span>}
      </>
    ),
  },
  { head: 'Sampled', wraps: true, cell: entry => <Sampled entry={entry} /> },
]

/**
 * Agents with their figures in a period; the short form has the rank, the agent, its return and profit. The figure that
 * ranks them comes first, and on a narrow screen stands next to the name.
 */
export function StandingTable({ entries, vaults, sort = 'return', isShort = false, before, lines }: Props) {
  const ranking: Column<Entry> = { ...FIGURES[sort], part: 'lead' }
  const others = (Object.keys(FIGURES) as Sort[]).filter(name => name !== sort).map(name => FIGURES[name])
  const columns = isShort
    ? [rankColumn(undefined), ...IDENTITY, ranking, PROFIT]
    : [
        rankColumn(before),
        ...IDENTITY,
        ranking,
        PROFIT,
        ...(lines ? [lineColumn(lines)] : []),
        ...others,
        ...furtherColumns(vaults),
      ]
  return (
    <DataTable
      label="Standings"
      columns={columns}
      rows={entries}
      keyOf={({ agentId, capital }) => `${agentId} ${capital}`}
    />
  )
}

function VaultAndTrack({ entry, vaults }: { entry: Entry; vaults: Props['vaults'] }) {
  const vault = vaults.find(({ contractAddress }) => contractAddress === entry.vault)
  return (
    <>
      {vault ? <a href={`/app/vaults/${vault.id}`}>{vault.name}</a> : <Address value={entry.vault} />}
      <span class="sub">{titleCase(entry.trackName)}</span>
    </>
  )
}

const Sampled = ({ entry: { lastSample, gapHours, gaps } }: { entry: Entry }) => (
  <>
    <Time value={lastSample} />
    {gapHours > 0 && (
      <span class="sub" title={gaps.map(inUtc).join('\n')}>
        {gapHours} {gapHours === 1 ? 'hour' : 'hours'} without a price
      </span>
    )}
  </>
)

function inUtc(gap: string): string {
  const [from = '', to = ''] = gap.split('/').map(time => new Date(Number(time) * 1000).toISOString().slice(0, 16))
  return `${from} to ${to} UTC`
}
