import { useEffect, useState } from 'preact/hooks'
import { useStore } from '../data/store.ts'
import { useDeployment } from '../parts/deployment.tsx'
import { Address, Badge, Untrusted } from '../parts/text.tsx'
import { type Wallet, walletProblem } from './provider.ts'
import { connect, connected, disconnect, discoverWallets, switchChain, wallets } from './wallets.ts'

/** Connects one of the browser's wallets, and shows the account and chain. */
export function WalletBar() {
  const found = useStore(wallets)
  const current = useStore(connected)
  const { chainId, node, explorer } = useDeployment()
  const [problem, setProblem] = useState('')
  useEffect(discoverWallets, [])

  async function attempt(action: () => Promise<void>) {
    setProblem('')
    await action().catch(error => setProblem(walletProblem(error)))
  }
  if (current)
    return (
      <div class="wallet">
        <p>
          <Badge tone="good">connected</Badge> <Address value={current.address} /> in{' '}
          <Untrusted text={current.wallet.name} />
        </p>
        {chainId !== undefined && chainId !== current.chainId && (
          <p class="note-line warn">
            The wallet is on chain {current.chainId}; this service is on chain {chainId}.{' '}
            <button
              type="button"
              class="link"
              onClick={() => attempt(() => switchChain(current, { chainId, node, explorer }))}
            >
              Switch the wallet
            </button>
          </p>
        )}
        <button type="button" onClick={disconnect}>
          Disconnect
        </button>
        <p class="problem" role="status">
          {problem}
        </p>
      </div>
    )
  return (
    <div class="wallet">
      {found.length === 0 ? (
        <p class="fine">
          No wallet has announced itself in this browser. Everything here can be read without one; signing needs a
          wallet with EIP-6963.
        </p>
      ) : (
        found.map(wallet => (
          <ConnectButton key={wallet.id} wallet={wallet} onConnect={() => attempt(() => connect(wallet))} />
        ))
      )}
      <p class="problem" role="status">
        {problem}
      </p>
    </div>
  )
}

const ConnectButton = ({ wallet, onConnect }: { wallet: Wallet; onConnect: () => void }) => (
  <button type="button" class="primary" onClick={onConnect}>
    Connect <Untrusted text={wallet.name} />
  </button>
)
