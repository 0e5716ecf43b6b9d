import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { Percent, Price } from '../parts/figures.tsx'
import { levelsOf } from '../parts/ladder.tsx'
import { levelsOfOrders, useOpenOrders } from '../parts/orders.tsx'
import { Facts, Figures, PageTitle, Panel } from '../parts/panel.tsx'
import { PriceChart } from '../parts/price-chart.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { Address, Badge, Untrusted } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { Trades } from './agent/trades.tsx'
import { MarketHours } from './vault/market-hours.tsx'

/** One token: its price over time, its market, and where it is traded. `?agent=` adds the trades, ladders and orders of an agent. */
export function TokenPage({ params: { symbol = '' }, query }: PageProps) {
  const agentId = query.get('agent') ?? undefined
  useLive(agentId === undefined ? {} : { agentId })
  const tokens = useRead('listTokens', {})
  const isKnown = tokens.data?.tokens.some(token => token.symbol === symbol) ?? false
  const moves = useRead('getCandles', isKnown ? { symbol, interval: '1h', limit: 1 } : undefined)
  const isOfAgent = isKnown && agentId !== undefined
  const trades = useRead('getTradeHistory', isOfAgent ? { agentId, symbol, limit: 100 } : undefined)
  const positions = useRead('listPositions', isOfAgent ? { agentId } : undefined)
  const orders = useOpenOrders(isOfAgent ? agentId : undefined)
  return (
    <WhenReady resource={tokens} what="the tokens" lines={10} title={symbol}>
      {({ tokens, asOf }) => {
        const token = tokens.find(each => each.symbol === symbol)
        if (token === undefined)
          return (
            <>
              <PageTitle title={<Untrusted text={symbol} />} />
              <Empty title="The service does not know this token.">
                The pages of <a href="/app/vaults">the vaults</a> list the tokens that they trade.
              </Empty>
            </>
          )
        const oldest = trades.data?.trades.at(-1)
        return (
          <>
            <PageTitle
              kicker={token.name}
              title={symbol}
              aside={token.price.stale && <Badge tone="warn">price stale</Badge>}
            />
            <Figures
              items={[
                {
                  label: 'Price',
                  value: <Price usd={token.price.priceUsd} />,
                  note: <Time value={token.price.updatedAt} />,
                },
                ...(['hour', 'day', 'week'] as const).map(name => ({
                  label: `Last ${name}`,
                  value: <Percent bps={moves.data?.change[name]} signed />,
                })),
              ]}
            />
            <Panel
              title="Price"
              aside={agentId !== undefined && <a href={`/app/agents/${agentId}`}>Agent {agentId}</a>}
            >
              <PriceChart
                symbol={symbol}
                now={Number(asOf.blockTimestamp)}
                since={oldest && Number(oldest.timestamp)}
                levels={[
                  ...(positions.data?.positions.filter(each => each.symbol === symbol).flatMap(levelsOf) ?? []),
                  ...levelsOfOrders(orders.data?.orders, { symbol }),
                ]}
                trades={trades.data?.trades ?? []}
              />
            </Panel>
            {agentId !== undefined && (
              <Panel title={`Trades of agent ${agentId}`} flush>
                <Trades agentId={agentId} symbol={symbol} />
              </Panel>
            )}
            <Panel title="Facts">
              <Facts
                items={[
                  ['Market', <MarketHours key="market" market={token.market} />],
                  ['Contract', <Address key="contract" value={token.address} whole />],
                  ['Buying', token.active ? 'allowed' : 'closed'],
                  [
                    'Vaults',
                    token.vaultIds.map((id, index) => (
                      <span key={id}>
                        {index > 0 && ', '}
                        <a href={`/app/vaults/${id}`}>{id}</a>
                      </span>
                    )),
                  ],
                ]}
              />
            </Panel>
          </>
        )
      }}
    </WhenReady>
  )
}
