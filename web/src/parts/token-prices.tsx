import { useRead } from '../data/use-read.ts'
import { levelsOf } from './ladder.tsx'
import { levelsOfOrders, useOpenOrders } from './orders.tsx'
import { PriceChart } from './price-chart.tsx'

/** What the chart shows of an agent at most: its newest trades in the token. */
const MAX_TRADES = 100

type Props = {
  symbol: string
  agentId: string | undefined /** The time of the newest block, in Unix seconds. */
  now: number
}

/** The prices of a token, with the trades, ladders and open orders of an agent if one is given. */
export function TokenPrices({ symbol, agentId, now }: Props) {
  const trades = useRead('getTradeHistory', agentId === undefined ? undefined : { agentId, symbol, limit: MAX_TRADES })
  const positions = useRead('listPositions', agentId === undefined ? undefined : { agentId })
  const orders = useOpenOrders(agentId)
  const oldest = trades.data?.trades.at(-1)
  return (
    <PriceChart
      symbol={symbol}
      now={now}
      since={oldest && Number(oldest.timestamp)}
      levels={[
        ...(positions.data?.positions.filter(each => each.symbol === symbol).flatMap(levelsOf) ?? []),
        ...levelsOfOrders(orders.data?.orders, { symbol }),
      ]}
      trades={trades.data?.trades ?? []}
    />
  )
}
