import type { Schema } from '../data/client.ts'
import { useRead } from '../data/use-read.ts'
import { formatBps, formatUsd } from '../format/amounts.ts'
import type { Level } from './chart.tsx'
import type { Column } from './data-table.tsx'
import { useDeployment } from './deployment.tsx'
import { Percent, Price, Usdc } from './figures.tsx'
import { Duration, Time } from './times.tsx'

export type Order = Schema['Order']

/** As many as an agent can have. */
const MAX_OPEN = 20

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

/** What an order does, and at which price or time. */
export function OrderWords({ order }: { order: Order }) {
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

export const ORDER: Column<Order> = {
  head: 'Order',
  part: 'name',
  wraps: true,
  cell: order => <OrderWords order={order} />,
}
export const WAITS: Column<Order> = {
  head: 'Waits for',
  part: 'wide',
  wraps: true,
  cell: order => <Waits order={order} />,
}
