import { useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useLatest, useRead } from '../../data/use-read.ts'
import { formatBps, formatUsd } from '../../format/amounts.ts'
import type { Level } from '../../parts/chart.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { useDeployment } from '../../parts/deployment.tsx'
import { Percent, Price, Usdc } from '../../parts/figures.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Panel } from '../../parts/panel.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { Badge } from '../../parts/text.tsx'
import { Duration, Time } from '../../parts/times.tsx'

type Order = Schema['Order']

/** As many as an agent can have. */
const MAX_OPEN = 20
const PAGE_SIZE = 10
/** The end of an order that waits as long as its position is open; Unix seconds. */
const NO_END = 2 ** 40 - 1
/** Refusals that say nothing of orders: the page reports the first one once, and the second one means that there are none. */
const QUIET = ['NETWORK_ERROR', 'ORDER_BOOK_NOT_SET']

/** Reads the open orders of an agent; nothing on a deployment without an order book. */
export function useOpenOrders(agentId: string | undefined) {
  const { contracts } = useDeployment()
  const isRead = agentId !== undefined && contracts.OrderBook !== undefined
  return useRead('listOrders', isRead ? { agentId, state: 'open', limit: MAX_OPEN } : undefined)
}

/** Returns the prices that open orders in a token wait for, or only those of one position. */
export const levelsOfOrders = (
  orders: Order[] = [],
  { symbol, positionId }: { symbol: string; positionId?: string },
): Level[] =>
  orders.flatMap(order => {
    const price = order.triggerUsd ?? order.price
    if (order.symbol !== symbol || price === null) return []
    if (positionId !== undefined && order.positionId !== positionId) return []
    const tone = order.side !== 'reduce' ? 'entry' : order.condition === 'atOrAbove' ? 'profit' : 'stop'
    return [{ value: Number(price), text: `order to ${order.side === 'reduce' ? 'sell' : 'buy'}`, tone }]
  })

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

/** What an order does, and at which price or time. */
function OrderWords({ order }: { order: Order }) {
  const { agentId, side, symbol, positionId, usdcAmount, exitBps, parts, interval, validAfter, placedAt } = order
  const token =
    positionId === '0' ? (
      <a href={`/app/tokens/${symbol}?agent=${agentId}`}>{symbol}</a>
    ) : (
      <a href={`/app/agents/${agentId}/positions/${positionId}`}>
        {symbol} #{positionId}
      </a>
    )
  return (
    <>
      {side === 'reduce' ? (
        <>
          Sell {exitBps === 10_000 ? 'all' : <Percent bps={exitBps} />} of {token}
        </>
      ) : (
        <>
          Buy <Usdc value={usdcAmount} /> of {token}
        </>
      )}
      <Condition order={order} />
      {parts > 1 && (
        <>
          , in {parts} parts, <Duration seconds={interval} /> apart
        </>
      )}
      {Number(validAfter) > Number(placedAt) && (
        <>
          , not before <Time value={validAfter} />
        </>
      )}
    </>
  )
}

function Condition({ order: { condition, price, trailBps, peakUsd, triggerUsd, endedAt } }: { order: Order }) {
  if (condition === 'trailing') {
    const waitsForActivation = price !== null && triggerUsd === null && endedAt === null
    return (
      <>
        {' '}
        when it falls <Percent bps={trailBps} /> below its peak
        {peakUsd !== null && (
          <>
            {' '}
            of <Price usd={peakUsd} />
          </>
        )}
        {waitsForActivation && (
          <>
            , once it has reached <Price usd={price} />
          </>
        )}
      </>
    )
  }
  if (price === null) return null
  return (
    <>
      {' '}
      at <Price usd={price} /> or {condition === 'atOrAbove' ? 'higher' : 'lower'}
    </>
  )
}

/** What an open order waits for, and why the last try was refused. */
const Waits = ({ order }: { order: Order }) => (
  <>
    {waitOf(order)}
    {order.lastRefusal && !(order.lastRefusal.code in ORDINARY_WAITS) && (
      <>
        . Refused on <Time value={order.lastRefusal.at} />: {order.lastRefusal.error}
      </>
    )}
  </>
)

/** What an order waits for while nothing is wrong with it, by the code of the refusal. */
const ORDINARY_WAITS: Record<string, string> = {
  ORDER_NOT_DUE: 'its time',
  CONDITION_NOT_MET: 'the price that activates it',
  PRICE_BEFORE_ORDER: 'a fresh price',
  STALE_PRICE: 'a fresh price',
}

function waitOf({ state, triggerUsd, distanceBps, nextAt, waitsFor, lastRefusal }: Order) {
  if (state === 'executing') return 'its transaction to be mined'
  if (waitsFor?.code === 'ORDER_NOT_DUE') return <Time value={nextAt} />
  if (triggerUsd !== null && distanceBps !== null && distanceBps !== 0)
    return `the price to ${distanceBps < 0 ? 'fall' : 'rise'} by ${formatBps(Math.abs(distanceBps))}, to ${formatUsd(triggerUsd)} USD`
  if (waitsFor) return ORDINARY_WAITS[waitsFor.code] ?? waitsFor.error
  return lastRefusal ? 'the next try' : 'the keeper'
}

const RESULTS = {
  filled: <Badge tone="good">filled</Badge>,
  cancelled: 'cancelled',
  replaced: 'replaced by a later order',
  expired: 'expired',
  voided: 'ended by a stop, a new signer or a new owner',
  positionClosed: 'its position was closed',
}

const ORDER: Column<Order> = { head: 'Order', part: 'name', wraps: true, cell: order => <OrderWords order={order} /> }
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
  { head: 'Waits for', part: 'wide', wraps: true, cell: order => <Waits order={order} /> },
]

const PAST_COLUMNS: Column<Order>[] = [
  ORDER,
  PARTS,
  { head: 'Placed', cell: ({ placedAt }) => <Time value={placedAt} /> },
  { head: 'Ended', cell: ({ endedAt }) => <Time value={endedAt} /> },
  { head: 'Result', part: 'wide', wraps: true, cell: ({ endReason }) => RESULTS[endReason ?? 'filled'] },
]
