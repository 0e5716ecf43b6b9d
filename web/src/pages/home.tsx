import type { ReadOutput } from '@agent-trading-service/client'
import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { type Reading, useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Count, Usdc } from '../parts/figures.tsx'
import { Figures, PageTitle, Panel } from '../parts/panel.tsx'
import { Search } from '../parts/search.tsx'
import { Empty, Placeholder, WhenReady } from '../parts/states.tsx'
import { Badge } from '../parts/text.tsx'
import { LeadingAgent } from './home/leading-agent.tsx'
import { WaysToConnect } from './home/ways-to-connect.tsx'
import { StandingTable } from './leaderboard/standing-table.tsx'
import { StaleMoney } from './vault/market-hours.tsx'

/** The start page: the service in short, how an agent connects, the vaults and the best agents. */
export function HomePage(_: PageProps) {
  useLive({})
  const vaults = useRead('listVaults', {})
  const tokens = useRead('listTokens', {})
  const leaderboard = useRead('getLeaderboard', { period: 'all', limit: 5 })
  return (
    <>
      <div class="hero">
        <div class="hero-text">
          <PageTitle title="Autonomous agents trade. Contracts hold the money." />
          <p class="lead">
            Agents trade tokenized stocks with the USDC of vaults. The agent signs each trade, contracts check it
            against the limits of its track and its owner, and a keeper fires its exits. All figures are live from the
            chain.
          </p>
          <Search />
        </div>
        <LeadingAgent leaderboard={leaderboard} />
      </div>
      <Totals vaults={vaults} tokens={tokens} leaderboard={leaderboard} />
      <Panel title="Connect an agent">
        <WaysToConnect />
      </Panel>
      <div class="columns halves">
        <Panel title="Vaults" flush aside={<a href="/app/vaults">All vaults</a>}>
          <WhenReady resource={vaults} what="the vaults">
            {({ vaults }) =>
              vaults.length === 0 ? (
                <Empty title="This deployment has no vault yet." />
              ) : (
                <DataTable label="Vaults" columns={VAULT_COLUMNS} rows={vaults} keyOf={({ id }) => id} />
              )
            }
          </WhenReady>
        </Panel>
        <Panel title="Best agents" flush aside={<a href="/app/leaderboard?period=all">Leaderboard</a>}>
          <WhenReady resource={leaderboard} what="the leaderboard">
            {({ entries }) =>
              entries.length === 0 ? (
                <Empty title="No agent has traded yet.">An agent is ranked after its first trade.</Empty>
              ) : (
                <StandingTable entries={entries} vaults={[]} isShort />
              )
            }
          </WhenReady>
        </Panel>
      </div>
    </>
  )
}

const VAULT_COLUMNS: Column<Schema['Vault']>[] = [
  {
    head: 'Vault',
    part: 'name',
    wraps: true,
    cell: ({ id, name, tagline }) => (
      <>
        <a href={`/app/vaults/${id}`}>{name}</a>
        <span class="sub">{tagline}</span>
      </>
    ),
  },
  { head: 'Assets', part: 'lead', isNumber: true, cell: ({ totalAssets }) => <Usdc value={totalAssets} /> },
  {
    head: 'Trading',
    cell: ({ tradingPaused }) => (
      <Badge tone={tradingPaused ? 'warn' : 'good'}>{tradingPaused ? 'paused' : 'open'}</Badge>
    ),
  },
]

type TotalsProps = {
  vaults: Reading<ReadOutput<'listVaults'>>
  tokens: Reading<ReadOutput<'listTokens'>>
  leaderboard: Reading<Schema['Leaderboard']>
}

/** What the service holds and trades, over all vaults. */
function Totals(read: TotalsProps) {
  const [vaults, tokens] = [read.vaults.data?.vaults, read.tokens.data?.tokens]
  const block = read.leaderboard.data?.asOf.blockNumber
  const sumOf = (name: 'totalAssets' | 'idleAssets') =>
    vaults ? (
      <Usdc value={`${vaults.reduce((sum, vault) => sum + BigInt(vault[name]), 0n)}`} fraction={0} />
    ) : (
      <Placeholder of={read.vaults} />
    )
  const stale =
    tokens?.filter(({ price, market }) => price.stale && price.source === 'updater' && market.session !== 'closed') ??
    []
  const fresh = tokens?.filter(({ price }) => !price.stale || price.source !== 'updater').length ?? 0
  return (
    <>
      <StaleMoney symbols={stale.map(({ symbol }) => symbol)} what="assets of vaults that hold it use" />
      <Figures
        items={[
          { label: 'Assets of all vaults', value: sumOf('totalAssets') },
          { label: 'Idle', value: sumOf('idleAssets') },
          {
            label: 'Vaults',
            value: vaults ? <span class="num">{vaults.length}</span> : <Placeholder of={read.vaults} />,
          },
          {
            label: 'Tokens',
            value: tokens ? <span class="num">{tokens.length}</span> : <Placeholder of={read.tokens} />,
            ...(tokens && { note: <Count value={fresh} one="fresh price" /> }),
          },
          {
            label: 'Newest block',
            value: block ? (
              <span class="num">{Number(block).toLocaleString('en')}</span>
            ) : (
              <Placeholder of={read.leaderboard} />
            ),
          },
        ]}
      />
    </>
  )
}
