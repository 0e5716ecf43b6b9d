import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import { formatLocal } from '../format/time.ts'
import type { PageProps } from '../page-props.ts'
import { Percent, Price } from '../parts/figures.tsx'
import { Facts, Figures, PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { Address, Untrusted } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { TokenPrices } from '../parts/token-prices.tsx'
import { Trades } from './agent/trades.tsx'
import { MarketHours, StalePrice } from './vault/market-hours.tsx'

/** Who says a price, and who could lie about it. */
const PRICE_SOURCES = {
  updater: "one key of the operator: it could lie within the oracle's bound, and trades compare it with the pool",
  reports:
    'reports that the signers of Chainlink Data Streams sign and the chain verifies: six of them together could lie',
  feed: 'a push feed: its operators together could lie',
}

/**
 * One token: its price over time, its market, and where it is traded. `?agent=` adds the trades, ladders and orders of
 * an agent.
 */
export function TokenPage({ params: { symbol = '' }, query }: PageProps) {
  const agentId = query.get('agent') ?? undefined
  useLive(agentId === undefined ? {} : { agentId })
  const tokens = useRead('listTokens', {})
  const isKnown = tokens.data?.tokens.some(token => token.symbol === symbol) ?? false
  const moves = useRead('getCandles', isKnown ? { symbol, interval: '1h', limit: 1 } : undefined)
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
        return (
          <>
            <PageTitle
              kicker={token.name}
              title={symbol}
              aside={<StalePrice isStale={token.price.stale} source={token.price.source} market={token.market} />}
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
              <TokenPrices symbol={symbol} agentId={agentId} now={Number(asOf.blockTimestamp)} />
            </Panel>
            {agentId !== undefined && (
              <Panel title={`Trades of agent ${agentId}`} flush>
                <Trades agentId={agentId} symbol={symbol} />
              </Panel>
            )}
            <Panel title="Facts">
              <Facts
                items={[
                  ['Price from', PRICE_SOURCES[token.price.source]],
                  ['Market', <MarketHours key="market" market={token.market} />],
                  [
                    'One token',
                    `${token.multiplier} ${token.multiplier === '1' ? 'share' : 'shares'}${token.pendingMultiplier === null ? '' : `, ${token.pendingMultiplier} from ${formatLocal(Number(token.effectiveAt))}`}`,
                  ],
                  ['Issuer may', token.issuer?.powers.join(', ') || 'nothing that is described'],
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
