import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import type { Level } from '../../parts/chart.tsx'
import { Percent, Price, Usdc } from '../../parts/figures.tsx'
import { Ladder, ladderRules } from '../../parts/ladder.tsx'
import { levelsOfOrders, useOpenOrders } from '../../parts/orders.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Figures } from '../../parts/panel.tsx'
import { Empty } from '../../parts/states.tsx'
import { Badge, CapitalMode } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'
import { waitOf } from '../position/rules.tsx'
import { StalePrice } from '../vault/market-hours.tsx'

type Position = Schema['AgentPosition']

/** Each position that is shown is a read of its own. */
const PAGE_SIZE = 10

/** The open positions of an agent, each with its ladder against entry and price, a page at a time. */
export function OpenPositions({ agentId, positions }: { agentId: string; positions: Position[] }) {
  const orders = useOpenOrders(positions.length > 0 ? agentId : undefined)
  const page = useListPage('open')
  const given = Number(page.cursor ?? 0)
  const [start, end] = positions[given] ? [given, given + PAGE_SIZE] : [0, PAGE_SIZE]
  if (positions.length === 0)
    return <Empty title="No open position.">A position appears here in the block in which the agent opens it.</Empty>
  return (
    <>
      <ul class="positions">
        {positions.slice(start, end).map(position => (
          <li key={position.positionId}>
            <OpenPosition
              agentId={agentId}
              position={position}
              orders={levelsOfOrders(orders.data?.orders, position)}
            />
          </li>
        ))}
      </ul>
      <Pages page={page} nextCursor={end < positions.length ? `${end}` : null} labels={['Previous', 'Next']} />
    </>
  )
}

type OpenPositionProps = { agentId: string; position: Position; orders: Level[] }

function OpenPosition({ agentId, position, orders }: OpenPositionProps) {
  const path = `/agents/${agentId}/positions/${position.positionId}`
  const { data: automation, error } = useRead('getPositionAutomation', { agentId, positionId: position.positionId })
  const { candles } = useRead('getCandles', { symbol: position.symbol, interval: '1d', limit: 1 }).data ?? {}
  const [open, close] = [Number(candles?.o.at(-1)), Number(candles?.c.at(-1))]
  // A price that could not be read again is the last known one.
  const isStale = error !== undefined || (automation?.price.stale ?? position.priceStale)
  return (
    <article class="position" aria-label={`${position.symbol}, position ${position.positionId}`}>
      <div class="position-head">
        <h3>
          <a href={`/app${path}`}>{position.symbol}</a> <span class="fine">#{position.positionId}</span>
        </h3>
        {open > 0 && (
          <span class="fine">
            today (UTC) <Percent bps={(close / open - 1) * 10_000} signed />
          </span>
        )}
        <CapitalMode mode={position.capitalMode} />
        <StalePrice isStale={isStale} market={automation?.market} />
        {automation?.ownerClose && <Badge tone="bad">closing for the owner</Badge>}
      </div>
      <Figures
        look="position-figures"
        items={[
          { label: 'Cost', value: <Usdc value={position.usdcCostBasis} /> },
          { label: 'Entry', value: <Price usd={`${Number(position.entryPriceUsdc) / 1e6}`} /> },
          {
            label: 'Unrealized',
            value: (
              <>
                <Usdc value={position.unrealizedPnlUsdc} signed /> <Percent bps={position.derived.returnBps} signed />
              </>
            ),
          },
          { label: 'Opened', value: <Time value={position.openedAt} /> },
        ]}
      />
      <Ladder
        entryPriceUsdc={position.entryPriceUsdc}
        rules={ladderRules(position)}
        orders={orders}
        priceUsd={automation?.price.priceUsd}
        isPriceStale={isStale}
      />
      {automation && (
        <ul class="waits">
          {automation.pendingRules.map(rule => (
            <li key={rule.ruleIndex}>
              <b>{rule.triggerType === 'StopLoss' ? 'Stop-loss' : 'Take-profit'}</b> waits for{' '}
              {waitOf(rule, automation)}.
            </li>
          ))}
        </ul>
      )}
    </article>
  )
}
