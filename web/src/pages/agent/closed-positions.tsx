import type { Schema } from '../../data/client.ts'
import { useLatest, useRead } from '../../data/use-read.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { NoValue, Percent, Price, Usdc } from '../../parts/figures.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { Badge, CapitalMode } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

const PAGE_SIZE = 10

/** The closed positions of an agent, newest first. */
export function ClosedPositions({ agentId }: { agentId: string }) {
  const page = useListPage('closed')
  const { cursor } = page
  const closed = useRead('listClosedPositions', { agentId, limit: PAGE_SIZE, ...(cursor && { cursor }) })
  return (
    <WhenReady resource={useLatest(closed)} what="the closed positions">
      {({ positions, nextCursor }) => (
        <>
          <DataTable
            label="Closed positions"
            columns={columnsOf(agentId)}
            rows={positions}
            keyOf={({ positionId }) => positionId}
            empty={<Empty title="No closed position yet." />}
          />
          <Pages page={page} nextCursor={nextCursor} />
        </>
      )}
    </WhenReady>
  )
}

const CLOSERS = {
  signer: 'the agent',
  order: 'an order',
  'stop-loss': <Badge tone="bad">stop-loss</Badge>,
  'take-profit': <Badge tone="good">take-profit</Badge>,
  owner: 'the owner',
  operator: 'the operator',
}

const columnsOf = (agentId: string): Column<Schema['AgentPosition']>[] => [
  {
    head: 'Position',
    part: 'name',
    cell: ({ positionId, symbol }) => (
      <a href={`/app/agents/${agentId}/positions/${positionId}`}>
        {symbol} <span class="fine">#{positionId}</span>
      </a>
    ),
  },
  { head: 'Opened', cell: ({ openedAt }) => <Time value={openedAt} /> },
  { head: 'Closed', cell: ({ closedAt }) => <Time value={closedAt ?? null} /> },
  { head: 'By', cell: ({ closedBy }) => closedBy && CLOSERS[closedBy] },
  {
    head: 'Entry',
    isNumber: true,
    cell: ({ entryPriceUsdc }) => <Price usd={`${Number(entryPriceUsdc) / 1e6}`} />,
  },
  {
    head: 'Exit',
    isNumber: true,
    cell: ({ exitPriceUsdc }) =>
      exitPriceUsdc === undefined ? <NoValue /> : <Price usd={`${Number(exitPriceUsdc) / 1e6}`} />,
  },
  {
    head: 'Realized',
    part: 'lead',
    isNumber: true,
    cell: ({ realizedPnlUsdc }) => <Usdc value={realizedPnlUsdc} signed />,
  },
  { head: 'Return', isNumber: true, cell: ({ derived }) => <Percent bps={derived.returnBps} signed /> },
  { head: 'Capital', cell: ({ capitalMode }) => <CapitalMode mode={capitalMode} /> },
]
