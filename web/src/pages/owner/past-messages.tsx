import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { OwnerEventWords } from '../../parts/owner-event-words.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { TransactionLink } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

type OwnerEvent = Schema['OwnerEvent']

const PAGE_SIZE = 10

/** What the owner of an agent has signed and the chain has executed, newest first. */
export function PastMessages({ agentId }: { agentId: string }) {
  const page = useListPage('messages')
  const { cursor } = page
  const list = useRead('listOwnerEvents', { agentId, limit: PAGE_SIZE, ...(cursor && { cursor }) })
  return (
    <Panel title="Past messages" flush>
      <WhenReady resource={list} what="the past messages">
        {({ events, nextCursor }) => (
          <>
            {events.length === 0 ? (
              <Empty title="The owner has not signed anything yet." />
            ) : (
              <DataTable label="Past messages" columns={COLUMNS} rows={events} keyOf={({ id }) => id} />
            )}
            <Pages page={page} nextCursor={nextCursor} />
          </>
        )}
      </WhenReady>
    </Panel>
  )
}

const COLUMNS: Column<OwnerEvent>[] = [
  { head: 'Message', part: 'name', wraps: true, cell: event => <OwnerEventWords event={event} /> },
  { head: 'Time', cell: ({ timestamp }) => <Time value={timestamp} /> },
  { head: 'Transaction', cell: ({ transactionHash }) => <TransactionLink hash={transactionHash} /> },
]
