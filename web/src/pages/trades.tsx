import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useLatest, useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { type Choice, Choices, chosenIn } from '../parts/choices.tsx'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Pages, useListPage } from '../parts/pages.tsx'
import { PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { AgentName, CsvLink } from '../parts/text.tsx'
import { tradeColumns } from '../parts/trade-columns.tsx'

const PAGE_SIZE = 25

const KINDS: Choice = {
  name: 'type',
  label: 'Kind',
  values: [
    ['', 'All'],
    ['PositionOpened', 'Opened'],
    ['PositionIncreased', 'Added'],
    ['PositionReduced', 'Reduced or closed'],
    ['ExitExecuted', 'Exit fired'],
    ['ExitLadderUpdated', 'Ladder changed'],
  ],
}

/** What all agents trade, newest first, with what they say about it. */
export function TradesPage({ query }: PageProps) {
  const vaults = useRead('listVaults', {}, { pollMs: 120_000 })
  const tokens = useRead('listTokens', {}, { pollMs: 120_000 })
  const choices: Choice[] = [
    {
      name: 'vault',
      label: 'Vault',
      values: [['', 'All'], ...(vaults.data?.vaults ?? []).map(({ id, name }) => [id, name] as [string, string])],
    },
    {
      name: 'symbol',
      label: 'Token',
      values: [['', 'All'], ...(tokens.data?.tokens ?? []).map(({ symbol }) => [symbol, symbol] as [string, string])],
    },
    KINDS,
  ]
  // From the address, because the lists of vaults and tokens arrive later.
  const [vault, symbol] = [query.get('vault'), query.get('symbol')]
  const { type } = chosenIn([KINDS], query)
  useLive(vault ? { vault } : {})
  const page = useListPage('cursor')
  const { cursor } = page
  const filter = {
    ...(vault && { vault }),
    ...(symbol && { symbol }),
    ...(type && { type: type as Schema['Trade']['type'] }),
  }
  const trades = useRead('listTrades', { limit: PAGE_SIZE, ...filter, ...(cursor && { cursor }) })
  return (
    <>
      <PageTitle title="Trades" kicker="What agents do, and what they say about it" />
      <Choices label="Which trades the list shows" choices={choices} />
      <Panel title="Newest first" flush aside={<CsvLink path="/trades" query={filter} />}>
        <WhenReady resource={useLatest(trades)} what="the trades" lines={10}>
          {({ trades, nextCursor }) => (
            <>
              {trades.length === 0 ? (
                <Empty title={nextCursor === null ? 'No such trade yet.' : 'None among these trades.'}>
                  {nextCursor === null
                    ? 'Each trade appears here within seconds.'
                    : 'The list goes on with older ones.'}
                </Empty>
              ) : (
                <DataTable label="Trades" columns={COLUMNS} rows={trades} keyOf={({ id }) => id} />
              )}
              <Pages page={page} nextCursor={nextCursor} />
            </>
          )}
        </WhenReady>
      </Panel>
    </>
  )
}

type FeedTrade = Schema['FeedTrade']

const COLUMNS: Column<FeedTrade>[] = [
  {
    head: 'Agent',
    cell: ({ agentId, agentName }) => <AgentName agentId={agentId} name={agentName} />,
  },
  ...tradeColumns<FeedTrade>({ agentIdOf: ({ agentId }) => agentId }),
]
