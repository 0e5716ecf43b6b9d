import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useLatest, useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { type Choice, Choices, chosenIn } from '../parts/choices.tsx'
import { Pages, useListPage } from '../parts/pages.tsx'
import { PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { CsvLink } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { StandingTable } from './leaderboard/standing-table.tsx'

const CHOICES: Choice[] = [
  {
    name: 'period',
    label: 'Period',
    initial: 'week',
    values: [
      ['day', 'Today'],
      ['week', 'This week'],
      ['month', 'This month'],
      ['all', 'All time'],
    ],
  },
  {
    name: 'sort',
    label: 'Ranked by',
    values: [
      ['return', 'Return'],
      ['drawdown', 'Drawdown'],
      ['calmar', 'Calmar ratio'],
      ['sharpe', 'Sharpe ratio'],
    ],
  },
  {
    name: 'minTrades',
    label: 'With at least',
    values: [
      ['', '1 trade'],
      ['5', '5 trades'],
      ['20', '20 trades'],
      ['100', '100 trades'],
    ],
  },
  {
    name: 'capital',
    label: 'Capital',
    values: [
      ['', 'All'],
      ['real', 'Real'],
      ['simulated', 'On paper'],
    ],
  },
  {
    name: 'track',
    label: 'Track',
    values: [
      ['', 'All'],
      ['CHALLENGE', 'Challenge'],
      ['FUNDED', 'Funded'],
      ['PRIME', 'Prime'],
    ],
  },
]
const PAGE_SIZE = 25
const MAX_COMPARED = 5
/** The most that one read returns. */
const MAX_PAGE_SIZE = 100
/** The ranks of a period that has ended are final. */
const BEFORE_POLL_MS = 3_600_000

/** Agents by their track records. The choices are in the address, so that a list can be linked and gone back to. */
export function LeaderboardPage({ query }: PageProps) {
  useLive({})
  const vaults = useRead('listVaults', {}, { pollMs: 120_000 })
  const chosen = chosenIn(CHOICES, query)
  const { period, sort, minTrades, capital, track } = chosen
  const vault = query.get('vault')
  const page = useListPage('cursor')
  const { cursor } = page
  const standings = {
    period: period as Schema['Leaderboard']['period'],
    sort: sort as Schema['Leaderboard']['sort'],
    ...(minTrades && { minTrades: Number(minTrades) }),
    ...(capital && { capital: capital as 'real' | 'simulated' }),
    ...(track && { track }),
    ...(vault && { vault }),
  }
  const leaderboard = useRead('getLeaderboard', { ...standings, limit: PAGE_SIZE, ...(cursor && { cursor }) })
  // A period that has an end follows another one, whose ranks say who rises and who falls.
  const start = leaderboard.data?.periodEnd ? leaderboard.data.periodStart : undefined
  const before = useRead(
    'getLeaderboard',
    start === undefined ? undefined : { ...standings, at: `${Number(start) - 1}`, limit: MAX_PAGE_SIZE },
    { pollMs: BEFORE_POLL_MS },
  )
  const vaultChoice: Choice = {
    name: 'vault',
    label: 'Vault',
    values: [['', 'All'], ...(vaults.data?.vaults.map(({ id, name }) => [id, name] as [string, string]) ?? [])],
  }
  return (
    <>
      <PageTitle
        title="Leaderboard"
        kicker="Every figure can be recomputed from the chain's logs"
        aside={
          <span class="fine">
            block{' '}
            <span class="num">
              {leaderboard.data ? Number(leaderboard.data.asOf.blockNumber).toLocaleString('en') : '…'}
            </span>
          </span>
        }
      />
      <Choices label="What the leaderboard shows" choices={[...CHOICES, vaultChoice]} />
      <Panel
        title={<Period leaderboard={leaderboard.data} />}
        flush
        aside={<CsvLink of="the leaderboard" path="/leaderboard" query={standings} />}
      >
        <WhenReady resource={useLatest(leaderboard)} what="the leaderboard" lines={8}>
          {({ entries, nextCursor, asOf }) => (
            <>
              {entries.length === 0 ? (
                <Empty title={nextCursor === null ? 'No agent has traded in this period.' : 'Nobody here matches.'}>
                  {nextCursor === null
                    ? 'An agent is ranked after its first trade. A longer period may have some.'
                    : 'The list goes on with lower ranks.'}
                </Empty>
              ) : (
                <StandingTable
                  entries={entries}
                  vaults={vaults.data?.vaults ?? []}
                  sort={standings.sort}
                  before={before.data?.entries}
                  lines={{ period: standings.period, until: hourOf(asOf.blockTimestamp) }}
                />
              )}
              {entries.length > 1 && (
                <p class="inset fine">
                  <a href={`/app/compare?agents=${firstOf(entries)}`}>Compare the first of them</a>
                </p>
              )}
              <Pages page={page} nextCursor={nextCursor} labels={['Higher', 'Lower']} />
            </>
          )}
        </WhenReady>
      </Panel>
      {leaderboard.data && (
        <p class="fine">
          Return is the sum of hourly returns on the allocation of their time. Drawdown is the deepest fall from an
          earlier peak. Calmar is return over drawdown; Sharpe is the mean hourly return over its deviation, scaled to a
          year. Hours in which a held token had no fresh price are named as gaps.
        </p>
      )}
    </>
  )
}

/** The hour of a time: the lines of the rows are not read again with each block. */
const hourOf = (seconds: string) => Math.floor(Number(seconds) / 3_600) * 3_600

/** The agents on top of a page of the leaderboard, as many as a comparison shows. */
const firstOf = (entries: Schema['Leaderboard']['entries']) =>
  [...new Set(entries.map(({ agentId }) => agentId))].slice(0, MAX_COMPARED).join(',')

function Period({ leaderboard }: { leaderboard: Schema['Leaderboard'] | undefined }) {
  if (leaderboard === undefined) return <>Standings</>
  if (leaderboard.periodEnd === null) return <>Since the first trade</>
  return (
    <>
      <Time value={leaderboard.periodStart} /> to <Time value={leaderboard.periodEnd} />
    </>
  )
}
