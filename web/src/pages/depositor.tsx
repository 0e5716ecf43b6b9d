import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useStore } from '../data/store.ts'
import { useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { Usdc } from '../parts/figures.tsx'
import { Facts, PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { Address } from '../parts/text.tsx'
import { navigate } from '../router.tsx'
import { WalletBar } from '../wallet/wallet-bar.tsx'
import { connected } from '../wallet/wallets.ts'
import { DepositForm } from './depositor/deposit-form.tsx'
import { Holdings } from './depositor/holdings.tsx'
import { Requests } from './depositor/requests.tsx'
import { Result } from './depositor/result.tsx'
import { useHoldings } from './depositor/use-holdings.ts'
import { WithdrawForm } from './depositor/withdraw-form.tsx'
import { StaleMoney, staleHoldings } from './vault/market-hours.tsx'
import { Contributions, Terms } from './vault.tsx'

/** Holdings of the wallet's account in a vault, deposits and withdrawals, and what they cost. */
export function DepositorPage({ query }: PageProps) {
  const vaults = useRead('listVaults', {})
  return (
    <>
      <PageTitle
        title="Depositor's desk"
        kicker="Deposit USDC for shares of a vault, and redeem them. The wallet sends each transaction"
      />
      <Panel title="Wallet">
        <WalletBar />
      </Panel>
      <WhenReady resource={vaults} what="the vaults" lines={4}>
        {({ vaults }) => {
          const vault = vaults.find(({ id }) => id === query.get('vault')) ?? vaults[0]
          return vault === undefined ? (
            <Empty title="This deployment has no vault yet." />
          ) : (
            <>
              <label class="field narrow">
                <span>Vault</span>
                <select
                  value={vault.id}
                  onChange={event => navigate(`/app/depositor?vault=${event.currentTarget.value}`)}
                >
                  {vaults.map(({ id, name }) => (
                    <option key={id} value={id} selected={id === vault.id}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
              <VaultDesk key={vault.id} vault={vault} />
            </>
          )
        }}
      </WhenReady>
    </>
  )
}

function VaultDesk({ vault }: { vault: Schema['Vault'] }) {
  useLive({ vault: vault.id })
  const wallet = useStore(connected)
  const stats = useRead('getVaultStats', { id: vault.id, interval: '1d' })
  const holdings = useHoldings(vault)
  return (
    <div class="columns halves">
      <div class="stack">
        <Panel title="Deposit">
          <DepositForm vault={vault} holdings={holdings} liquidity={stats.data?.liquidity ?? null} />
        </Panel>
        <Panel title="Withdraw">
          <WithdrawForm vault={vault} holdings={holdings} liquidity={stats.data?.liquidity ?? null} />
        </Panel>
        <Requests vault={vault} holdings={holdings} />
      </div>
      <div class="stack">
        <Panel title="Your holdings">
          {wallet === undefined ? (
            <Empty title="No wallet is connected.">Shares, their worth and what is locked appear here.</Empty>
          ) : (
            <Holdings holdings={holdings} />
          )}
        </Panel>
        {holdings.ready && <Result key={holdings.ready.address} vault={vault.contractAddress} holdings={holdings} />}
        <Panel title="Terms">
          <WhenReady resource={stats} what="the terms">
            {data => (
              <>
                <Terms liquidity={data.liquidity} />
                <StaleMoney symbols={staleHoldings(data)} what="share price and assets use" />
                <Facts
                  items={[
                    ['Share price', <Usdc key="price" value={data.sharePriceUsdc} fraction={6} />],
                    ['Assets of the vault', <Usdc key="assets" value={data.totalAssets} />],
                    ['Idle, for withdrawals', <Usdc key="idle" value={data.idleAssets} />],
                    ['Vault', <Address key="vault" value={vault.contractAddress} />],
                    ['USDC', <Address key="asset" value={vault.asset} />],
                  ]}
                />
              </>
            )}
          </WhenReady>
        </Panel>
        <Panel title="Shares that cover losses first" flush>
          <WhenReady resource={stats} what="the first-loss capital">
            {({ performance }) => <Contributions performance={performance} />}
          </WhenReady>
        </Panel>
      </div>
    </div>
  )
}
