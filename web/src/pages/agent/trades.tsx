import { useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { Price, Usdc } from '../../parts/figures.tsx'
import { TableScroll } from '../../parts/panel.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { Badge, CapitalMode, TransactionLink } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

type Trade = Schema['Trade']

const PAGE_SIZE = 15

/** The trades of an agent, newest first, a page at a time. */
export function Trades({ agentId }: { agentId: string }) {
  const [cursors, setCursors] = useState<string[]>([])
  const cursor = cursors.at(-1)
  const trades = useRead('getTradeHistory', { agentId, limit: PAGE_SIZE, ...(cursor && { cursor }) })
  return (
    <WhenReady resource={trades} what="the trades" lines={5}>
      {({ trades, nextCursor }) => (
        <>
          {trades.length === 0 ? (
            <Empty title="No trade yet.">Each trade appears here with the transaction that made it.</Empty>
          ) : (
            <TradeTable agentId={agentId} trades={trades} />
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

type PagesProps = {
  hasNewer: boolean
  onNewer: () => void
  onOlder: (() => void) | undefined
  labels?: [newer: string, older: string]
}

/** Buttons to newer and older entries; nothing if there is one page. */
export function Pages({ hasNewer, onNewer, onOlder, labels: [newer, older] = ['Newer', 'Older'] }: PagesProps) {
  if (!hasNewer && onOlder === undefined) return null
  return (
    <div class="pages">
      <button type="button" disabled={!hasNewer} onClick={onNewer}>
        {newer}
      </button>
      <button type="button" disabled={onOlder === undefined} onClick={() => onOlder?.()}>
        {older}
      </button>
    </div>
  )
}

const TradeTable = ({ agentId, trades }: { agentId: string; trades: Trade[] }) => (
  <TableScroll label="Trades">
    <table>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Trade</th>
          <th scope="col">Token</th>
          <th scope="col" class="right">
            Amount
          </th>
          <th scope="col" class="right">
            Price
          </th>
          <th scope="col" class="right">
            Realized
          </th>
          <th scope="col">Transaction</th>
        </tr>
      </thead>
      <tbody>
        {trades.map(trade => (
          <tr key={trade.id}>
            <td>
              <Time value={trade.timestamp} withSeconds />
            </td>
            <td>
              {tradeName(trade)}{' '}
              {trade.source === 'automation' && (
                <Badge tone={trade.triggerType === 'StopLoss' ? 'bad' : 'good'}>exit rule</Badge>
              )}
              {trade.source === 'owner' && <Badge tone="warn">for the owner</Badge>}
              {trade.source === 'operator' && <Badge tone="warn">by the operator</Badge>}{' '}
              {trade.capitalMode === 'Simulated' && <CapitalMode mode="Simulated" />}
            </td>
            <th scope="row">
              <a href={`/app/agents/${agentId}/positions/${trade.positionId}`}>
                {trade.symbol} <span class="fine">#{trade.positionId}</span>
              </a>
            </th>
            <td class="right">
              <Usdc value={trade.usdcAmount} />
            </td>
            <td class="right">
              {trade.priceUsdc === null ? <Usdc value={null} /> : <Price usd={`${Number(trade.priceUsdc) / 1e6}`} />}
            </td>
            <td class="right">
              <Usdc value={trade.realizedPnlUsdc ?? trade.positionPnlUsdc} signed />
            </td>
            <td>
              <TransactionLink hash={trade.transactionHash} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableScroll>
)

/** Names a trade as people say it. */
export function tradeName({ type, triggerType }: Pick<Trade, 'type' | 'triggerType'>): string {
  const rule = triggerType === 'StopLoss' ? 'Stop-loss' : 'Take-profit'
  const names: Record<string, string> = {
    PositionOpened: 'Opened',
    PositionIncreased: 'Added',
    PositionReduced: 'Reduced',
    PositionClosed: 'Closed, in total',
    ExitLadderUpdated: 'Exit ladder changed',
    ExitExecuted: `${rule} fired`,
    ExitPartlyExecuted: `${rule} fired in part`,
    PositionForceClosed: 'Force-closed',
    PositionPartlyForceClosed: 'Force-closed in part',
    OwnerCloseExecuted: 'Sold',
  }
  return names[type] ?? type
}
