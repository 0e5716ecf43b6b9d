import { useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Percent, Price, Usdc } from '../../parts/figures.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { CapitalMode } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'
import { Pages } from './trades.tsx'

const PAGE_SIZE = 10

/** The closed positions of an agent, newest first. */
export function ClosedPositions({ agentId }: { agentId: string }) {
  const [cursors, setCursors] = useState<string[]>([])
  const cursor = cursors.at(-1)
  const closed = useRead('listClosedPositions', { agentId, limit: PAGE_SIZE, ...(cursor && { cursor }) })
  return (
    <WhenReady resource={closed} what="the closed positions">
      {({ positions, nextCursor }) => (
        <>
          {positions.length === 0 ? (
            <Empty title="No closed position yet." />
          ) : (
            <DataTable
              label="Closed positions"
              columns={columnsOf(agentId)}
              rows={positions}
              keyOf={({ positionId }) => positionId}
            />
          )}
          <Pages
            hasNewer={cursors.length > 0}
            onNewer={() => setCursors(cursors.slice(0, -1))}
            onOlder={nextCursor === null ? undefined : () => setCursors([...cursors, nextCursor])}
          />
        </>
      )}
    </WhenReady>
  )
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
  {
    head: 'Entry',
    isNumber: true,
    cell: ({ entryPriceUsdc }) => <Price usd={`${Number(entryPriceUsdc) / 1e6}`} />,
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
