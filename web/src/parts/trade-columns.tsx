import type { Schema } from '../data/client.ts'
import type { Column } from './data-table.tsx'
import { NoValue, Price, Usdc } from './figures.tsx'
import { Badge, CapitalMode, TransactionLink, Untrusted } from './text.tsx'
import { Time } from './times.tsx'

type Trade = Schema['Trade']
type Shown<Row> = {
  agentIdOf: (trade: Row) => string
  /** Whether all trades are of one position: they do not repeat its token. */
  isOfOne?: boolean
}

/** The columns of a list of trades, with their transactions. */
export const tradeColumns = <Row extends Trade>({ agentIdOf, isOfOne = false }: Shown<Row>): Column<Row>[] => [
  { head: 'Time', cell: ({ timestamp }) => <Time value={timestamp} withSeconds /> },
  { head: 'Trade', part: isOfOne ? 'name' : 'wide', cell: trade => <TradeName trade={trade} /> },
  ...(isOfOne
    ? []
    : [
        {
          head: 'Token',
          part: 'name',
          cell: trade => (
            <a href={`/app/agents/${agentIdOf(trade)}/positions/${trade.positionId}`}>
              {trade.symbol} <span class="fine">#{trade.positionId}</span>
            </a>
          ),
        } satisfies Column<Row>,
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
    {nameOfTrade(trade)}{' '}
    {trade.source === 'automation' && <Badge tone={trade.triggerType === 'StopLoss' ? 'bad' : 'good'}>exit rule</Badge>}
    {trade.source === 'order' && <Badge tone="good">order</Badge>}
    {trade.source === 'owner' && <Badge tone="warn">for the owner</Badge>}
    {trade.source === 'operator' && <Badge tone="warn">by the operator</Badge>}{' '}
    {trade.capitalMode === 'Simulated' && <CapitalMode mode="Simulated" />}
    {trade.note !== null && (
      <div class="fine trade-note">
        <Untrusted text={trade.note} />
      </div>
    )}
  </>
)

/** Names a trade as people say it. */
export function nameOfTrade({
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
