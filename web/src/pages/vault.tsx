import { durationText } from '@agent-trading-service/protocol/duration'
import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useLatest, useRead } from '../data/use-read.ts'
import { formatBps } from '../format/amounts.ts'
import type { PageProps } from '../page-props.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Count, NoValue, Percent, Price, Tokens, Usdc } from '../parts/figures.tsx'
import { Pages, useListPage } from '../parts/pages.tsx'
import { Facts, JumpLinks, PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { Address, AgentName, Badge } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { MarketHours, StaleMoney, StalePrice, staleHoldings } from './vault/market-hours.tsx'
import { SharePriceChart } from './vault/share-price-chart.tsx'
import { TrackTable, titleCase } from './vault/tracks.tsx'
import { shareBps, usedBps, VaultFigures } from './vaults.tsx'

/** One vault: figures, share price, holdings, tracks, tokens and agents. */
export function VaultPage({ params: { id = '' } }: PageProps) {
  useLive({ vault: id })
  const vault = useRead('getVault', { id })
  const stats = useRead('getVaultStats', { id, interval: '1d' })
  const tokens = useRead('listVaultTokens', { id })
  const page = useListPage('agents')
  const agents = useLatest(useRead('listAgents', { vault: id, limit: 20, ...(page.cursor && { cursor: page.cursor }) }))
  return (
    <WhenReady resource={vault} what="this vault" lines={10} title="Vault">
      {({ vault, asOf }) => (
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
          <JumpLinks titles={['Share price', 'Holdings', 'Terms for depositors', 'Tracks', 'Tokens', 'Agents']} />
          <StaleMoney symbols={staleHoldings(stats.data)} what="assets and share price use" />
          <VaultFigures vault={vault} />
          {stats.data && <Risk stats={stats.data} />}
          <div class="columns">
            <div class="stack">
              <Panel title="Share price">
                <SharePriceChart id={id} now={Number(asOf.blockTimestamp)} stats={stats} />
              </Panel>
              <Panel title="Holdings" flush>
                <WhenReady resource={stats} what="the holdings">
                  {data => <Holdings stats={data} tokens={tokens.data?.tokens} />}
                </WhenReady>
              </Panel>
              <Panel
                title="Gains and losses by agent"
                flush
                aside={<a href={`/app/trades?vault=${id}`}>Trades of this vault</a>}
              >
                <WhenReady resource={stats} what="the gains and losses">
                  {({ performance }) => <Contributions performance={performance} />}
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
              {({ tokens }) => (
                <DataTable label="Tokens" columns={TOKEN_COLUMNS} rows={tokens} keyOf={({ address }) => address} />
              )}
            </WhenReady>
          </Panel>
          <Panel
            title="Agents"
            flush
            aside={
              <>
                {stats.data && <Count value={stats.data.agents.total} one="agent" />} ·{' '}
                <a href={`/app/leaderboard?vault=${vault.id}`}>Leaderboard</a>
              </>
            }
          >
            <WhenReady resource={agents} what="the agents">
              {({ agents, nextCursor }) => (
                <>
                  <DataTable
                    label="Agents"
                    columns={AGENT_COLUMNS}
                    rows={agents}
                    keyOf={({ agentId }) => agentId}
                    empty={
                      <Empty title="No agent trades here yet.">
                        Agents register over the API; <a href="/">the start page</a> says how.
                      </Empty>
                    }
                  />
                  <Pages page={page} nextCursor={nextCursor} />
                </>
              )}
            </WhenReady>
          </Panel>
        </>
      )}
    </WhenReady>
  )
}

type HoldingsProps = { stats: Schema['VaultStats']; tokens: Schema['Token'][] | undefined }

type Performance = Schema['VaultStats']['performance']
type Contribution = Performance['contributions'][number]

const CONTRIBUTION_COLUMNS: Column<Contribution>[] = [
  { head: 'Agent', part: 'name', cell: ({ agentId, name }) => <AgentName agentId={agentId} name={name} /> },
  { head: 'Since registration', part: 'lead', isNumber: true, cell: ({ pnlUsdc }) => <Usdc value={pnlUsdc} signed /> },
  { head: 'Allocation', isNumber: true, cell: ({ agentId }) => <Allocation agentId={agentId} /> },
  { head: 'Locked for its losses', isNumber: true, cell: ({ agentId }) => <FirstLoss agentId={agentId} /> },
]
const MAX_CONTRIBUTIONS = 8

/** The agents whose trades with the vault's money gained or lost most. */
export const Contributions = ({ performance: { contributions } }: { performance: Performance }) =>
  contributions.length === 0 ? (
    <Empty title="Nothing gained or lost yet.">Agents on paper trade without the vault's money.</Empty>
  ) : (
    <>
      <DataTable
        label="Gains and losses by agent"
        columns={CONTRIBUTION_COLUMNS}
        rows={contributions.slice(0, MAX_CONTRIBUTIONS)}
        keyOf={({ agentId }) => agentId}
      />
      <p class="inset fine">
        {contributions.length > MAX_CONTRIBUTIONS && `The ${MAX_CONTRIBUTIONS} largest gains and losses. `}
        Before an agent trades this vault's money, its owner locks shares of the vault where the track requires it.
        Realized losses of the agent on its track burn these shares first; depositors bear what is beyond them.
      </p>
    </>
  )

/** What a depositor risks in one line: how far the share price fell, what is in tokens now, and who pays first. */
function Risk({ stats }: { stats: Schema['VaultStats'] }) {
  const { maxDrawdown90d, contributions } = stats.performance
  const risks = Array.from({ length: MAX_CONTRIBUTIONS }, (_, index) => useRowRisk(contributions[index]?.agentId))
  const isKnown = contributions.slice(0, MAX_CONTRIBUTIONS).every((_, index) => risks[index])
  const locked = risks.reduce((sum, risk) => sum + BigInt(risk?.firstLoss?.lockedUsdc ?? 0), 0n)
  return (
    <p class="prose">
      <b>Risk:</b>{' '}
      {maxDrawdown90d ? (
        <>
          the share price fell by at most <Percent ppm={maxDrawdown90d.ppm} /> in 90 days
        </>
      ) : (
        'the share price has not fallen at the end of any day'
      )}
      ; <Percent bps={usedBps(stats)} fraction={1} /> of the assets are at risk in tokens now;{' '}
      {!isKnown ? (
        'what owners have locked to pay for losses first is not known yet'
      ) : locked === 0n ? (
        'owners have locked no shares to pay for losses first'
      ) : (
        <>
          shares of owners worth {contributions.length > MAX_CONTRIBUTIONS && 'at least '}
          <Usdc value={`${locked}`} /> pay for losses of their agents first
        </>
      )}
      .
    </p>
  )
}

type RowProps = { agentId: string }

/** One read of an agent serves all cells of its row. */
const useRowRisk = (agentId: string | undefined) =>
  useRead('getRiskState', agentId === undefined ? undefined : { agentId }, { pollMs: ROW_POLL_MS, isTouched: false })
    .data

/** How much of the vault's money an agent may use, and uses. */
function Allocation({ agentId }: RowProps) {
  const data = useRowRisk(agentId)
  if (!data) return <NoValue />
  return (
    <>
      <Usdc value={data.allocation.cap} />
      <span class="sub">
        <Percent bps={shareBps(data.allocation.used, data.allocation.cap)} fraction={1} /> in use
      </span>
    </>
  )
}

/** What an owner's locked shares are worth, and the part of the agent's allocation that they cover. */
function FirstLoss({ agentId }: RowProps) {
  const data = useRowRisk(agentId)
  if (!data?.firstLoss) return <NoValue />
  const { lockedUsdc } = data.firstLoss
  return (
    <>
      <Usdc value={lockedUsdc} />
      {lockedUsdc !== '0' && (
        <span class="sub">
          <Percent bps={shareBps(lockedUsdc, data.allocation.cap)} fraction={1} /> of its allocation
        </span>
      )}
    </>
  )
}

const ROW_POLL_MS = 120_000

function Holdings({ stats, tokens }: HoldingsProps) {
  if (stats.deployed.length === 0)
    return (
      <Empty title="All assets are idle USDC.">Tokens appear here while an agent has a position in real capital.</Empty>
    )
  const columns: Column<Schema['VaultStats']['deployed'][number]>[] = [
    { head: 'Token', part: 'name', cell: ({ symbol }) => symbol },
    {
      head: 'Amount',
      isNumber: true,
      cell: ({ token, tokenAmount, symbol }) => (
        <Tokens
          value={tokenAmount}
          decimals={tokens?.find(({ address }) => address === token)?.decimals}
          symbol={symbol}
        />
      ),
    },
    {
      head: 'Price',
      isNumber: true,
      cell: ({ priceUsd, priceStale }) => (
        <>
          <Price usd={priceUsd} /> {priceStale && <Badge tone="warn">stale</Badge>}
        </>
      ),
    },
    { head: 'Value', part: 'lead', isNumber: true, cell: ({ valueUsdc }) => <Usdc value={valueUsdc} /> },
    {
      head: 'Share',
      isNumber: true,
      cell: ({ valueUsdc }) => <Percent bps={shareBps(valueUsdc, stats.totalAssets)} />,
    },
  ]
  return <DataTable label="Holdings" columns={columns} rows={stats.deployed} keyOf={({ token }) => token} />
}

/** Fees and holding time in words. */
export function Terms({ liquidity }: Pick<Schema['VaultStats'], 'liquidity'>) {
  if (liquidity === null) return <p class="prose">This vault states no fees and no holding time on chain.</p>
  const fee = (bps: number) => (bps === 0 ? 'none' : `${formatBps(bps)} of the amount`)
  const held = Number(liquidity.holdingSeconds)
  return (
    <>
      <Facts
        items={[
          ['Deposit fee', fee(liquidity.depositFeeBps)],
          ['Withdrawal fee', fee(liquidity.withdrawFeeBps)],
          ['Holding time', held === 0 ? 'none' : durationText(held)],
          ['Now', liquidity.paused ? 'deposits and withdrawals are paused' : 'open'],
        ]}
      />
      {held > 0 && (
        <p class="fine">
          New shares neither redeem nor move for {durationText(held)}; deposits close together share one lock, which may
          add up to an eighth of that.
        </p>
      )}
    </>
  )
}

const TOKEN_COLUMNS: Column<Schema['Token']>[] = [
  { head: 'Token', part: 'name', cell: ({ symbol }) => <a href={`/app/tokens/${symbol}`}>{symbol}</a> },
  { head: 'Name', cell: ({ name }) => name },
  { head: 'Price', part: 'lead', isNumber: true, cell: ({ price }) => <Price usd={price.priceUsd} /> },
  {
    head: 'Observed',
    cell: ({ price, market }) => (
      <>
        <Time value={price.updatedAt} /> <StalePrice isStale={price.stale} source={price.source} market={market} />
      </>
    ),
  },
  { head: 'Market', cell: ({ market }) => <MarketHours market={market} /> },
  {
    head: 'Buying',
    cell: ({ allowedInVault, active }) =>
      allowedInVault !== false && active ? 'allowed' : <Badge tone="warn">closed</Badge>,
  },
]

type ListedAgent = Schema['AgentList']['agents'][number]

const AGENT_COLUMNS: Column<ListedAgent>[] = [
  {
    head: 'Agent',
    part: 'name',
    cell: ({ agentId, agent }) => <AgentName agentId={agentId} name={agent.name} />,
  },
  { head: 'Track', cell: ({ agent }) => titleCase(agent.trackName) },
  { head: 'Status', part: 'lead', cell: ({ agent }) => <AgentStatus name={agent.statusName} /> },
  { head: 'Owner', cell: ({ agent }) => <Address value={agent.owner} /> },
  { head: 'Registered', cell: ({ agent }) => <Time value={agent.createdAt} /> },
]

export const AgentStatus = ({ name }: { name: string }) => (
  <Badge tone={name === 'Active' ? 'good' : name === 'Suspended' || name === 'Failed' ? 'bad' : 'quiet'}>
    {name.toLowerCase()}
  </Badge>
)
