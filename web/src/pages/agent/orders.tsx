import { useState } from 'preact/hooks'
import { useLatest, useRead } from '../../data/use-read.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { useDeployment } from '../../parts/deployment.tsx'
import { ORDER, type Order, useOpenOrders, WAITS } from '../../parts/orders.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Panel } from '../../parts/panel.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { Badge } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

const PAGE_SIZE = 10
/** The end of an order that waits as long as its position is open; Unix seconds. */
const NO_END = 2 ** 40 - 1
/**
 * Refusals that say nothing of orders: the page reports the first one once, and the second one means that there are
 * none.
 */
const QUIET = ['NETWORK_ERROR', 'ORDER_BOOK_NOT_SET']

/** The orders of an agent: what the open ones wait for, and how past ones ended. Nothing if it has none. */
export function Orders({ agentId }: { agentId: string }) {
  const { contracts } = useDeployment()
  const page = useListPage('orders')
  const { cursor } = page
  const open = useOpenOrders(agentId)
  const past = useLatest(
    useRead(
      'listOrders',
      contracts.OrderBook === undefined
        ? undefined
        : { agentId, state: 'past', limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) },
      { pollMs: 120_000 },
    ),
  )
  const [isPastShown, showPast] = useState(cursor !== undefined)
  const openCount = open.data?.orders.length ?? 0
  const hasPast = cursor !== undefined || (past.data?.orders.length ?? 0) > 0
  const hasFailed = open.error !== undefined && !QUIET.includes(open.error.code)
  if (openCount === 0 && !hasPast && !hasFailed) return null
  return (
    <Panel title="Orders" aside={<span class="fine num">{openCount} open</span>}>
      <WhenReady resource={open} what="the orders">
        {({ orders }) =>
          orders.length === 0 ? (
            <p class="fine">No order waits.</p>
          ) : (
            <DataTable label="Open orders" columns={OPEN_COLUMNS} rows={orders} keyOf={({ orderId }) => orderId} />
          )
        }
      </WhenReady>
      {hasPast && (
        <details open={isPastShown} onToggle={event => showPast(event.currentTarget.open)}>
          <summary>Past orders</summary>
          {isPastShown && (
            <WhenReady resource={past} what="the past orders">
              {({ orders, nextCursor }) => (
                <>
                  <DataTable
                    label="Past orders"
                    columns={PAST_COLUMNS}
                    rows={orders}
                    keyOf={({ orderId }) => orderId}
                  />
                  <Pages page={page} nextCursor={nextCursor} />
                </>
              )}
            </WhenReady>
          )}
        </details>
      )}
    </Panel>
  )
}

const RESULTS = {
  filled: <Badge tone="good">filled</Badge>,
  cancelled: 'cancelled',
  replaced: 'replaced by a later order',
  expired: 'expired',
  voided: 'ended by a stop, a new signer or a new owner',
  positionClosed: 'its position was closed',
}

const PARTS: Column<Order> = {
  head: 'Parts done',
  isNumber: true,
  cell: ({ partsDone, parts }) => `${partsDone} of ${parts}`,
}

const OPEN_COLUMNS: Column<Order>[] = [
  ORDER,
  PARTS,
  {
    head: 'Ends',
    cell: ({ validUntil }) => (Number(validUntil) >= NO_END ? 'with its position' : <Time value={validUntil} />),
  },
  WAITS,
]

const PAST_COLUMNS: Column<Order>[] = [
  ORDER,
  PARTS,
  { head: 'Placed', cell: ({ placedAt }) => <Time value={placedAt} /> },
  { head: 'Ended', cell: ({ endedAt }) => <Time value={endedAt} /> },
  { head: 'Result', part: 'wide', wraps: true, cell: ({ endReason }) => RESULTS[endReason ?? 'filled'] },
]
