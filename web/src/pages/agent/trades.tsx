import type { Schema } from '../../data/client.ts'
import { useLatest, useRead } from '../../data/use-read.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { NoValue, Price, Usdc } from '../../parts/figures.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { Badge, CapitalMode, TransactionLink, Untrusted } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

type Trade = Schema['Trade']

const PAGE_SIZE = 15

type TradesProps = { agentId: string; positionId?: string; symbol?: string }

/** The trades of an agent, in one of its positions or in a token, newest first, a page at a time. */
export function Trades({ agentId, positionId, symbol }: TradesProps) {
  const page = useListPage('trades')
  const { cursor } = page
  const trades = useRead('getTradeHistory', {
    agentId,
    limit: PAGE_SIZE,
    ...(positionId !== undefined && { positionId }),
    ...(symbol !== undefined && { symbol }),
    ...(cursor !== undefined && { cursor }),
  })
  return (
    <WhenReady resource={useLatest(trades)} what="the trades" lines={5}>
      {({ trades, nextCursor }) => (
        <>
          {trades.length === 0 ? (
            <Empty title="No trade yet.">Each trade appears here with the transaction that made it.</Empty>
          ) : (
            <TradeTable agentId={agentId} trades={trades} isOfOne={positionId !== undefined} />
          )}
          <Pages page={page} nextCursor={nextCursor} />
        </>
      )}
    </WhenReady>
  )
}

/** Trades with their transactions; the trades of one position do not repeat its token. */
const TradeTable = ({ agentId, trades, isOfOne = false }: TradeTableProps) => (
  <DataTable label="Trades" columns={columnsOf(agentId, isOfOne)} rows={trades} keyOf={({ id }) => id} />
)
type TradeTableProps = { agentId: string; trades: Trade[]; isOfOne?: boolean }

const columnsOf = (agentId: string, isOfOne: boolean): Column<Trade>[] => [
  { head: 'Time', cell: ({ timestamp }) => <Time value={timestamp} withSeconds /> },
  { head: 'Trade', ...(isOfOne && { part: 'name' }), cell: trade => <TradeName trade={trade} /> },
  ...(isOfOne
    ? []
    : [
        {
          head: 'Token',
          part: 'name',
          cell: ({ positionId, symbol }) => (
            <a href={`/app/agents/${agentId}/positions/${positionId}`}>
              {symbol} <span class="fine">#{positionId}</span>
            </a>
          ),
        } satisfies Column<Trade>,
      ]),
  { head: 'Amount', part: 'lead', isNumber: true, cell: ({ usdcAmount }) => <Usdc value={usdcAmount} /> },
  {
    head: 'Price',
    isNumber: true,
    cell: ({ priceUsdc }) => (priceUsdc === null ? <NoValue /> : <Price usd={`${Number(priceUsdc) / 1e6}`} />),
  },
  {
    head: 'Realized',
    isNumber: true,
    cell: ({ realizedPnlUsdc }) => <Usdc value={realizedPnlUsdc} signed />,
  },
  { head: 'Transaction', cell: ({ transactionHash }) => <TransactionLink hash={transactionHash} /> },
]

const TradeName = ({ trade }: { trade: Trade }) => (
  <>
    {nameOf(trade)}{' '}
    {trade.source === 'automation' && <Badge tone={trade.triggerType === 'StopLoss' ? 'bad' : 'good'}>exit rule</Badge>}
    {trade.source === 'owner' && <Badge tone="warn">for the owner</Badge>}
    {trade.source === 'operator' && <Badge tone="warn">by the operator</Badge>}{' '}
    {trade.capitalMode === 'Simulated' && <CapitalMode mode="Simulated" />}
    {trade.note !== null && (
      <div class="fine">
        <Untrusted text={trade.note} />
      </div>
    )}
  </>
)

/** Names a trade as people say it. */
function nameOf({
  type,
  triggerType,
  positionPnlUsdc,
}: Pick<Trade, 'type' | 'triggerType' | 'positionPnlUsdc'>): string {
  const rule = triggerType === 'StopLoss' ? 'Stop-loss' : 'Take-profit'
  const names: Record<string, string> = {
    PositionOpened: 'Opened',
    PositionIncreased: 'Added',
    PositionReduced: positionPnlUsdc === null ? 'Reduced' : 'Closed',
    ExitLadderUpdated: 'Exit ladder changed',
    ExitExecuted: `${rule} fired`,
    ExitPartlyExecuted: `${rule} fired in part`,
    PositionForceClosed: 'Force-closed',
    PositionPartlyForceClosed: 'Force-closed in part',
    OwnerCloseExecuted: 'Sold',
  }
  return names[type] ?? type
}
