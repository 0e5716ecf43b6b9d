import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import { formatBps } from '../format/amounts.ts'
import type { PageProps } from '../page-props.ts'
import { Percent, Price, Tokens, Usdc } from '../parts/figures.tsx'
import { Ladder, ladderRules, levelsOf } from '../parts/ladder.tsx'
import { levelsOfOrders, useOpenOrders } from '../parts/orders.tsx'
import { Figures, PageTitle, Panel } from '../parts/panel.tsx'
import { PriceChart } from '../parts/price-chart.tsx'
import { WhenReady } from '../parts/states.tsx'
import { StopAlertChoice } from '../parts/stop-alert-choice.tsx'
import { Badge, CapitalMode, Untrusted } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { Trades } from './agent/trades.tsx'
import { KeeperReport, RuleTable } from './position/rules.tsx'
import { MarketHours, StalePrice } from './vault/market-hours.tsx'

type Position = Schema['AgentPosition']

/** One position: figures, ladder, what each rule waits for, and its trades. */
export function PositionPage({ params: { agentId = '', positionId = '' } }: PageProps) {
  const position = useRead('getPosition', { agentId, positionId })
  const automation = useRead('getPositionAutomation', { agentId, positionId })
  const agent = useRead('getAgent', { agentId })
  const tokens = useRead('listTokens', {}, { pollMs: 120_000 })
  const trades = useRead('getTradeHistory', { agentId, positionId, limit: 100 })
  const orders = useOpenOrders(position.data?.position.status === 'Open' ? agentId : undefined)
  useLive(position.data && { agentId })
  return (
    <WhenReady resource={position} what="this position" lines={8} title={`Position ${positionId}`}>
      {({ position, agentId, asOf }) => (
        <>
          <PageTitle
            kicker={
              <>
                Position #{position.positionId} of{' '}
                <a href={`/app/agents/${agentId}`}>
                  {agent.data ? <Untrusted text={agent.data.agent.name} /> : `agent ${agentId}`}
                </a>
              </>
            }
            title={position.symbol}
            aside={
              <>
                <Badge tone={position.status === 'Open' ? 'good' : 'quiet'}>{position.status.toLowerCase()}</Badge>
                <CapitalMode mode={position.capitalMode} />
                <StalePrice isStale={position.priceStale} market={automation.data?.market} />
              </>
            }
          />
          <PositionFigures
            position={position}
            decimals={tokens.data?.tokens.find(({ address }) => address === position.token)?.decimals}
            automation={automation.data}
          />
          <Panel
            title="Price"
            aside={<a href={`/app/tokens/${position.symbol}?agent=${agentId}`}>All trades in {position.symbol}</a>}
          >
            <PriceChart
              symbol={position.symbol}
              now={Number(asOf.blockTimestamp)}
              since={Number(position.openedAt)}
              until={endOf(position, Number(asOf.blockTimestamp))}
              levels={[...levelsOf(position), ...levelsOfOrders(orders.data?.orders, { symbol: position.symbol })]}
              trades={trades.data?.trades ?? []}
            />
          </Panel>
          <Panel title="Exit ladder" aside={position.status === 'Open' ? <StopAlertChoice /> : undefined}>
            <Ladder
              entryPriceUsdc={position.entryPriceUsdc}
              rules={ladderRules(position)}
              orders={levelsOfOrders(orders.data?.orders, position)}
              priceUsd={automation.data?.price.priceUsd}
              isPriceStale={automation.error !== undefined || (automation.data?.price.stale ?? false)}
            />
            <RuleTable position={position} automation={automation.data} />
            <WhenReady resource={automation} what="what the rules wait for" lines={1}>
              {data => <KeeperReport automation={data} />}
            </WhenReady>
          </Panel>
          <Panel title="Trades" flush>
            <Trades agentId={agentId} positionId={position.positionId} />
          </Panel>
        </>
      )}
    </WhenReady>
  )
}

/** Returns where the chart of a closed position ends: some time after its last sale. */
function endOf({ openedAt, closedAt }: Position, now: number): number | undefined {
  if (closedAt === undefined) return undefined
  const [opened, closed] = [Number(openedAt), Number(closedAt)]
  const end = Math.ceil(closed + Math.max(600, (closed - opened) / 4))
  return end < now ? end : undefined
}

type FiguresProps = { position: Position; decimals: number | undefined; automation: Schema['Automation'] | undefined }

function PositionFigures({ position, decimals, automation }: FiguresProps) {
  const isOpen = position.status === 'Open'
  return (
    <>
      <Figures
        items={[
          { label: 'Entry', value: <Price usd={`${Number(position.entryPriceUsdc) / 1e6}`} /> },
          {
            label: 'Price',
            value: automation ? <Price usd={automation.price.priceUsd} /> : '…',
            ...(automation && {
              note: (
                <>
                  observed <Time value={automation.price.updatedAt} />
                </>
              ),
            }),
          },
          {
            label: isOpen ? 'Unrealized' : 'Realized',
            value: <Usdc value={isOpen ? position.unrealizedPnlUsdc : position.realizedPnlUsdc} signed />,
            note: <Percent bps={position.derived.returnBps} signed />,
          },
          { label: 'Cost', value: <Usdc value={position.usdcCostBasis} /> },
          {
            label: 'Tokens',
            value: <Tokens value={position.tokenAmount} decimals={decimals} symbol={position.symbol} />,
          },
        ]}
      />
      <p class="fine">
        Opened <Time value={position.openedAt} withSeconds />. An exit sells at most{' '}
        {formatBps(position.maxSlippageBps)} below the oracle value.
        {automation && (
          <>
            {' '}
            Market <MarketHours market={automation.market} />.
          </>
        )}
      </p>
    </>
  )
}
