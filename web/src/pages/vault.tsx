import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import { formatBps } from '../format/amounts.ts'
import { formatDuration } from '../format/time.ts'
import type { PageProps } from '../page-props.ts'
import { Percent, Price, Tokens, Usdc } from '../parts/figures.tsx'
import { Facts, PageTitle, Panel, TableScroll } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { Address, Badge, Untrusted } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { MarketHours } from './vault/market-hours.tsx'
import { SharePriceChart } from './vault/share-price-chart.tsx'
import { TrackTable, titleCase } from './vault/tracks.tsx'
import { shareBps, VaultFigures } from './vaults.tsx'

/** One vault: figures, share price, holdings, tracks, tokens and agents. */
export function VaultPage({ params: { id = '' } }: PageProps) {
  useLive({ vault: id })
  const vault = useRead('getVault', { id })
  const stats = useRead('getVaultStats', { id, interval: '1h' })
  const tokens = useRead('listVaultTokens', { id })
  const agents = useRead('listAgents', { vault: id, limit: 20 })
  return (
    <WhenReady resource={vault} what="this vault" lines={10}>
      {({ vault }) => (
        <>
          <PageTitle
            title={vault.name}
            kicker={vault.tagline}
            aside={
              <>
                <Badge tone={vault.tradingPaused ? 'warn' : 'good'}>
                  {vault.tradingPaused ? 'trading paused' : 'trading open'}
                </Badge>
                <a class="button" href={`/app/depositor?vault=${vault.id}`}>
                  Deposit or withdraw
                </a>
              </>
            }
          />
          <VaultFigures vault={vault} />
          <div class="columns">
            <div class="stack">
              <Panel title="Share price">
                <WhenReady resource={stats} what="the share price" lines={5}>
                  {data => <SharePriceChart stats={data} />}
                </WhenReady>
              </Panel>
              <Panel title="Holdings" flush>
                <WhenReady resource={stats} what="the holdings">
                  {data => <Holdings stats={data} tokens={tokens.data?.tokens} />}
                </WhenReady>
              </Panel>
            </div>
            <div class="stack">
              <Panel title="Terms for depositors">
                <WhenReady resource={stats} what="the terms">
                  {({ liquidity }) => <Terms liquidity={liquidity} />}
                </WhenReady>
              </Panel>
              <Panel title="About">
                <p class="prose">{vault.description}</p>
                <Facts
                  items={[
                    ['Contract', <Address key="contract" value={vault.contractAddress} />],
                    ['Asset', <Address key="asset" value={vault.asset} />],
                    ['Chain', <span key="chain" class="num">{`${vault.chainId}`}</span>],
                  ]}
                />
              </Panel>
            </div>
          </div>
          <Panel title="Tracks" flush>
            <TrackTable vault={vault} />
          </Panel>
          <Panel title="Tokens" flush>
            <WhenReady resource={tokens} what="the tokens" lines={6}>
              {({ tokens }) => <TokenTable tokens={tokens} />}
            </WhenReady>
          </Panel>
          <Panel title="Agents" flush aside={<a href={`/app/leaderboard?vault=${vault.id}`}>Leaderboard</a>}>
            <WhenReady resource={agents} what="the agents">
              {({ agents }) => <AgentTable agents={agents} />}
            </WhenReady>
          </Panel>
        </>
      )}
    </WhenReady>
  )
}

type HoldingsProps = { stats: Schema['VaultStats']; tokens: Schema['Token'][] | undefined }

function Holdings({ stats, tokens }: HoldingsProps) {
  if (stats.deployed.length === 0)
    return (
      <Empty title="All assets are idle USDC.">Tokens appear here while an agent has a position in real capital.</Empty>
    )
  return (
    <TableScroll label="Holdings">
      <table>
        <thead>
          <tr>
            <th scope="col">Token</th>
            <th scope="col" class="right">
              Amount
            </th>
            <th scope="col" class="right">
              Price
            </th>
            <th scope="col" class="right">
              Value
            </th>
            <th scope="col" class="right">
              Share
            </th>
          </tr>
        </thead>
        <tbody>
          {stats.deployed.map(({ symbol, token, tokenAmount, valueUsdc, priceUsd, priceStale }) => (
            <tr key={token}>
              <th scope="row">{symbol}</th>
              <td class="right">
                <Tokens
                  value={tokenAmount}
                  decimals={tokens?.find(({ address }) => address === token)?.decimals ?? 18}
                  symbol={symbol}
                />
              </td>
              <td class="right">
                <Price usd={priceUsd} /> {priceStale && <Badge tone="warn">stale</Badge>}
              </td>
              <td class="right">
                <Usdc value={valueUsdc} />
              </td>
              <td class="right">
                <Percent bps={shareBps(valueUsdc, stats.totalAssets)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  )
}

type Liquidity = Schema['VaultStats']['liquidity']

/** Fees and holding time in words. */
export function Terms({ liquidity }: { liquidity: Liquidity }) {
  if (liquidity === null) return <p class="prose">This vault states no fees and no holding time on chain.</p>
  const fee = (bps: number) => (bps === 0 ? 'none' : `${formatBps(bps)} of the amount`)
  const held = Number(liquidity.holdingSeconds)
  return (
    <>
      <Facts
        items={[
          ['Deposit fee', fee(liquidity.depositFeeBps)],
          ['Withdrawal fee', fee(liquidity.withdrawFeeBps)],
          ['Holding time', held === 0 ? 'none' : formatDuration(held)],
          ['Now', liquidity.paused ? 'deposits and withdrawals are paused' : 'open'],
        ]}
      />
      {held > 0 && (
        <p class="fine">
          New shares neither redeem nor move for {formatDuration(held)}; deposits close together share one lock, which
          may add up to an eighth of that.
        </p>
      )}
    </>
  )
}

const TokenTable = ({ tokens }: { tokens: Schema['Token'][] }) => (
  <TableScroll label="Tokens">
    <table>
      <thead>
        <tr>
          <th scope="col">Token</th>
          <th scope="col">Name</th>
          <th scope="col" class="right">
            Price
          </th>
          <th scope="col">Observed</th>
          <th scope="col">Market</th>
          <th scope="col">Buying</th>
        </tr>
      </thead>
      <tbody>
        {tokens.map(({ symbol, name, address, price, market, allowedInVault, active }) => (
          <tr key={address}>
            <th scope="row">{symbol}</th>
            <td>{name}</td>
            <td class="right">
              <Price usd={price.priceUsd} />
            </td>
            <td>
              <Time value={price.updatedAt} /> {price.stale && <Badge tone="warn">stale</Badge>}
            </td>
            <td>
              <MarketHours market={market} />
            </td>
            <td>{allowedInVault !== false && active ? 'allowed' : <Badge tone="warn">closed</Badge>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableScroll>
)

/** Agents with their track and status. */
export function AgentTable({ agents }: { agents: Schema['AgentList']['agents'] }) {
  if (agents.length === 0)
    return (
      <Empty title="No agent trades here yet.">
        Agents register over the API; <a href="/">the start page</a> says how.
      </Empty>
    )
  return (
    <TableScroll label="Agents">
      <table>
        <thead>
          <tr>
            <th scope="col">Agent</th>
            <th scope="col">Track</th>
            <th scope="col">Status</th>
            <th scope="col">Owner</th>
            <th scope="col">Registered</th>
          </tr>
        </thead>
        <tbody>
          {agents.map(({ agentId, agent }) => (
            <tr key={agentId}>
              <th scope="row">
                <a href={`/app/agents/${agentId}`}>
                  <Untrusted text={agent.name} /> <span class="fine">#{agentId}</span>
                </a>
              </th>
              <td>{titleCase(agent.trackName)}</td>
              <td>
                <AgentStatus name={agent.statusName} />
              </td>
              <td>
                <Address value={agent.owner} />
              </td>
              <td>
                <Time value={agent.createdAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableScroll>
  )
}

export const AgentStatus = ({ name }: { name: string }) => (
  <Badge tone={name === 'Active' ? 'good' : name === 'Suspended' || name === 'Failed' ? 'bad' : 'quiet'}>
    {name.toLowerCase()}
  </Badge>
)
