import type { ReadOutput } from '@agent-trading-service/client'
import { useEffect, useState } from 'preact/hooks'
import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { type Reading, useRead } from '../data/use-read.ts'
import { isAgentId } from '../format/agent-id.ts'
import type { PageProps } from '../page-props.ts'
import { type Choice, Choices, chosenIn } from '../parts/choices.tsx'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Count } from '../parts/figures.tsx'
import { type ListPage, Pages, useListPage } from '../parts/pages.tsx'
import { PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { AgentName, CsvLink } from '../parts/text.tsx'
import { tradeColumns } from '../parts/trade-columns.tsx'
import { navigate } from '../router.tsx'

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
    ['OwnerCloseExecuted', 'Sold for the owner'],
    ['PositionForceClosed', 'Force-closed'],
  ],
}

/** What all agents trade, newest first, with what they say about it. */
export function TradesPage({ query }: PageProps) {
  const vaults = useRead('listVaults', {}, { pollMs: 120_000 })
  const tokens = useRead('listTokens', {}, { pollMs: 120_000 })
  const asked = query.get('agent') ?? ''
  const agentId = isAgentId(asked) ? asked : undefined
  const vaultChoice: Choice = {
    name: 'vault',
    label: 'Vault',
    values: [['', 'All'], ...(vaults.data?.vaults ?? []).map(({ id, name }) => [id, name] as [string, string])],
  }
  const choices: Choice[] = [
    ...(agentId === undefined ? [vaultChoice] : []),
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
  useLive(agentId !== undefined ? { agentId } : vault ? { vault } : {})
  const page = useListPage('cursor')
  const { cursor } = page
  const filter = {
    ...(vault && agentId === undefined && { vault }),
    ...(symbol && { symbol }),
    ...(type && { type: type as Schema['Trade']['type'] }),
  }
  const shown = { limit: PAGE_SIZE, ...filter, ...(cursor && { cursor }) }
  const feed = useRead('listTrades', agentId === undefined ? shown : undefined)
  const ofAgent = useRead('getTradeHistory', agentId === undefined ? undefined : { agentId, ...shown })
  const agent = useRead('getAgent', agentId === undefined ? undefined : { agentId })
  const trades: Reading<Trades> = agentId === undefined ? feed : withAgent(ofAgent, agent.data)
  return (
    <>
      <PageTitle title="Trades" kicker="What agents do, and what they say about it" />
      <Choices label="Which trades the list shows" choices={choices}>
        <AgentChoice chosen={agentId ?? ''} query={query} />
      </Choices>
      <Panel
        title="Newest first"
        flush
        aside={
          <CsvLink
            of="the trades"
            path={agentId === undefined ? '/trades' : `/agents/${agentId}/trades`}
            query={filter}
          />
        }
      >
        <TradeTable
          key={agentId}
          trades={trades}
          what={agentId === undefined ? 'the trades' : `agent ${agentId}`}
          page={page}
          of={JSON.stringify(shown)}
        />
      </Panel>
    </>
  )
}

type TableProps = { trades: Reading<Trades>; what: string; page: ListPage; of: string }

function TradeTable({ trades, what, page, of }: TableProps) {
  const { reading, waiting, show } = useHeld(trades, of)
  return (
    <WhenReady resource={reading} what={what} lines={10}>
      {({ trades, nextCursor }) => (
        <>
          {page.cursor === undefined && waiting > 0 && (
            <button type="button" class="button newer" onClick={show}>
              Show <Count value={waiting} one="new trade" />
            </button>
          )}
          {trades.length === 0 ? (
            <Empty title={nextCursor === null ? 'No such trade yet.' : 'None among these trades.'}>
              {nextCursor === null ? 'Each trade appears here within seconds.' : 'The list goes on with older ones.'}
            </Empty>
          ) : (
            <DataTable label="Trades" columns={COLUMNS} rows={trades} keyOf={({ id }) => id} />
          )}
          <Pages page={page} nextCursor={nextCursor} />
        </>
      )}
    </WhenReady>
  )
}

/**
 * Keeps a list still under the reader: newer trades wait until they are asked for. A list that is empty, or that has a
 * trade which a reorg withdrew, is replaced at once. `of` names what is listed.
 */
function useHeld(reading: Reading<Trades>, of: string) {
  const [held, hold] = useState<{ of: string; data: Trades }>()
  const { data } = reading
  const isHeld = held?.of === of && data !== undefined && held.data.trades.length > 0 && !hasWithdrawn(held.data, data)
  useEffect(() => {
    if (data !== undefined && !isHeld) hold({ of, data })
  }, [data, isHeld])
  const at = data?.trades.findIndex(({ id }) => id === held?.data.trades[0]?.id) ?? 0
  return {
    reading: { ...reading, ...((isHeld || data === undefined) && held && { data: held.data }) },
    waiting: isHeld ? (at < 0 ? data.trades.length : at) : 0,
    show: () => data && hold({ of, data }),
  }
}

/** Whether a list no longer has a trade that would be on its page. */
function hasWithdrawn(held: Trades, now: Trades): boolean {
  const ids = new Set(now.trades.map(({ id }) => id))
  const oldest = BigInt(now.trades.at(-1)?.blockNumber ?? 0)
  return held.trades.some(({ id, blockNumber }) => BigInt(blockNumber) > oldest && !ids.has(id))
}

type FeedTrade = Schema['FeedTrade']
type Trades = { trades: FeedTrade[]; nextCursor: string | null }

/** The trades of an agent do not repeat its id and its name. */
const withAgent = (
  { data, ...reading }: Reading<Schema['TradeList']>,
  of: ReadOutput<'getAgent'> | undefined,
): Reading<Trades> => ({
  ...reading,
  ...(data &&
    of && {
      data: {
        ...data,
        trades: data.trades.map(trade => ({ ...trade, agentId: of.agentId, agentName: of.agent.name })),
      },
    }),
})

/** The id of the agent whose trades are shown; all agents if it is empty. */
function AgentChoice({ chosen, query }: { chosen: string; query: URLSearchParams }) {
  const [text, setText] = useState(chosen)
  const id = text.trim().replace(/^#/, '')
  const isWrong = id !== '' && !isAgentId(id)
  useEffect(() => setText(chosen), [chosen])

  function choose() {
    if (isWrong || id === chosen) return
    const next = new URLSearchParams(query)
    for (const name of ['cursor', 'agent', 'vault']) next.delete(name)
    if (id !== '') next.set('agent', id)
    navigate(next.size === 0 ? '/app/trades' : `/app/trades?${next}`)
  }
  return (
    <label>
      <span>Id of an agent</span>
      <input
        inputMode="numeric"
        autocomplete="off"
        placeholder="All"
        value={text}
        aria-invalid={isWrong}
        onInput={event => setText(event.currentTarget.value)}
        onChange={choose}
      />
    </label>
  )
}

const COLUMNS: Column<FeedTrade>[] = [
  {
    head: 'Agent',
    cell: ({ agentId, agentName }) => <AgentName agentId={agentId} name={agentName} />,
  },
  ...tradeColumns<FeedTrade>({ agentIdOf: ({ agentId }) => agentId }),
]
