import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Count, Percent, Price, Usdc } from '../parts/figures.tsx'
import { Figures, PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, Placeholder, WhenReady } from '../parts/states.tsx'
import { Badge } from '../parts/text.tsx'
import { MarketHours, StalePrice } from './vault/market-hours.tsx'
import { TrackTable } from './vault/tracks.tsx'

/** All vaults with their tracks. */
export function VaultsPage() {
  useLive({})
  const vaults = useRead('listVaults', {})
  const tokens = useRead('listTokens', {})
  return (
    <>
      <PageTitle
        title="Vaults"
        kicker="Depositors' USDC, traded by agents within limits that contracts enforce"
        aside={<a href="/app/depositor">Deposit or withdraw</a>}
      />
      <WhenReady resource={vaults} what="the vaults" lines={8}>
        {({ vaults }) =>
          vaults.length === 0 ? (
            <Empty title="This deployment has no vault yet.">
              A vault appears here once it is registered on chain.
            </Empty>
          ) : (
            <div class="stack">
              {vaults.length > 1 && (
                <Panel title="Comparison" flush>
                  <DataTable label="Vaults" columns={COMPARED} rows={vaults} keyOf={({ id }) => id} />
                </Panel>
              )}
              {vaults.map(vault => (
                <VaultSummary key={vault.id} vault={vault} tokens={tokens.data?.tokens} />
              ))}
            </div>
          )
        }
      </WhenReady>
    </>
  )
}

type Shown = { stats: Schema['VaultStats'] }

/** A cell of what is read for each vault; all cells and the figures below share the read. */
function OfVault({ id, show: Show }: { id: string; show: (shown: Shown) => preact.VNode }) {
  const read = useRead('getVaultStats', { id, interval: '1d' })
  return read.data ? <Show stats={read.data} /> : <Placeholder of={read} />
}
const column = (head: string, show: (shown: Shown) => preact.VNode): Column<Schema['Vault']> => ({
  head,
  isNumber: true,
  cell: ({ id }) => <OfVault id={id} show={show} />,
})

const COMPARED: Column<Schema['Vault']>[] = [
  { head: 'Vault', part: 'name', cell: ({ id, name }) => <a href={`/app/vaults/${id}`}>{name}</a> },
  { head: 'Assets', part: 'lead', isNumber: true, cell: ({ totalAssets }) => <Usdc value={totalAssets} /> },
  { head: 'At risk now', isNumber: true, cell: vault => <Percent bps={usedBps(vault)} fraction={1} /> },
  column('30 days', ({ stats }) => <Percent ppm={stats.performance.return30dPpm} signed />),
  column('Since the start', ({ stats }) => <Percent ppm={stats.performance.returnPpm} signed />),
  column('Deepest fall, 90 days', ({ stats }) => <Percent ppm={stats.performance.maxDrawdown90d?.ppm} />),
  column('Withdrawal fee', ({ stats }) => <Percent bps={stats.liquidity?.withdrawFeeBps ?? 0} />),
]

type VaultProps = { vault: Schema['Vault'] }

function VaultSummary({ vault, tokens }: VaultProps & { tokens: Schema['Token'][] | undefined }) {
  const own = tokens?.filter(({ vaultIds }) => vaultIds.includes(vault.id)) ?? []
  return (
    <article class="panel vault" aria-labelledby={`vault-${vault.id}`}>
      <header>
        <div>
          <h2 id={`vault-${vault.id}`}>
            <a href={`/app/vaults/${vault.id}`}>{vault.name}</a>
          </h2>
          <p class="tagline">{vault.tagline}</p>
        </div>
        <Badge tone={vault.tradingPaused ? 'warn' : 'good'}>
          {vault.tradingPaused ? 'trading paused' : 'trading open'}
        </Badge>
      </header>
      <div class="body">
        <VaultFigures vault={vault} />
        <p class="prose">{vault.description}</p>
        <Ticker tokens={own} label={`Tokens of ${vault.name}`} />
      </div>
      <TrackTable vault={vault} />
    </article>
  )
}

/** The tokens that a vault trades, with their prices and what its markets do. */
function Ticker({ tokens, label }: { tokens: Schema['Token'][]; label: string }) {
  const [first] = tokens
  if (first === undefined) return null
  const isOneMarket = tokens.every(({ market }) => market.session === first.market.session)
  return (
    <div class="ticker">
      <ul aria-label={label}>
        {tokens.map(({ address, symbol, price, market }) => (
          <li key={address}>
            <a href={`/app/tokens/${symbol}`}>
              <b>{symbol}</b>
            </a>{' '}
            <Price usd={price.priceUsd} /> <StalePrice isStale={price.stale} source={price.source} market={market} />
            {!isOneMarket && (
              <span class="fine">
                <MarketHours market={market} />
              </span>
            )}
          </li>
        ))}
      </ul>
      {isOneMarket && (
        <p class="fine">
          Market <MarketHours market={first.market} />
        </p>
      )}
    </div>
  )
}

/** The headline figures of a vault. */
export function VaultFigures({ vault }: VaultProps) {
  const read = useRead('getVaultStats', { id: vault.id, interval: '1d' })
  const { data: stats } = read
  const idleBps = shareBps(vault.idleAssets, vault.totalAssets)
  return (
    <Figures
      items={[
        { label: 'Assets', value: <Usdc value={vault.totalAssets} /> },
        {
          label: 'Share price',
          value: stats ? <Usdc value={stats.sharePriceUsdc} fraction={6} /> : <Placeholder of={read} />,
        },
        {
          label: 'Idle',
          value: <Usdc value={vault.idleAssets} />,
          note: (
            <>
              <Percent bps={idleBps} fraction={1} /> of the assets
            </>
          ),
        },
        {
          label: 'Agents',
          value: stats ? <span class="num">{stats.agents.total}</span> : <Placeholder of={read} />,
          note:
            stats &&
            (stats.agents.byStatus.map(({ statusName, count }) => `${count} ${statusName.toLowerCase()}`).join(', ') ||
              'none yet'),
        },
        {
          label: 'Holdings',
          value: stats ? <Count value={stats.deployed.length} one="token" /> : <Placeholder of={read} />,
        },
      ]}
    />
  )
}

/** The part of a vault's assets that is in tokens. */
export const usedBps = ({ totalAssets, idleAssets }: { totalAssets: string; idleAssets: string }): number =>
  shareBps(`${BigInt(totalAssets) - BigInt(idleAssets)}`, totalAssets)

export const shareBps = (part: string, whole: string): number =>
  BigInt(whole) === 0n ? 0 : Number((BigInt(part) * 10_000n) / BigInt(whole))
