import { useEffect, useState } from 'preact/hooks'
import { useStore } from '../data/store.ts'
import { useDeployment } from '../parts/deployment.tsx'
import { Address, Badge, Untrusted } from '../parts/text.tsx'
import { usePlace } from '../router.tsx'
import { Stopped, type Wallet, walletProblem } from './provider.ts'
import { connect, connected, disconnect, discoverWallets, switchChain, wallets } from './wallets.ts'

/** Connects one of the browser's wallets, and shows the account and chain. */
export function WalletBar() {
  const found = useStore(wallets)
  const current = useStore(connected)
  const { chainId, chainName, node, explorer } = useDeployment()
  const [problem, setProblem] = useState('')
  const [stop, setStop] = useState<AbortController>()
  useEffect(discoverWallets, [])

  async function attempt(action: (signal: AbortSignal) => Promise<void>) {
    const attempted = new AbortController()
    setProblem('')
    setStop(attempted)
    await action(attempted.signal).catch(error => setProblem(walletProblem(error)))
    setStop(undefined)
  }
  const progress = stop ? (
    <p role="status">
      Open your wallet and confirm.{' '}
      <button type="button" onClick={() => stop.abort(new Stopped())}>
        Cancel
      </button>
    </p>
  ) : (
    <p class="problem" role="status">
      {problem}
    </p>
  )
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
              disabled={stop !== undefined}
              onClick={() => attempt(signal => switchChain(current, { chainId, chainName, node, explorer }, signal))}
            >
              Switch the wallet
            </button>
          </p>
        )}
        <button type="button" onClick={disconnect}>
          Disconnect
        </button>
        {progress}
      </div>
    )
  return (
    <div class="wallet">
      {found.length === 0 ? (
        <NoWallet />
      ) : (
        found.map(wallet => (
          <ConnectButton
            key={wallet.id}
            wallet={wallet}
            isAsked={stop !== undefined}
            onConnect={() => attempt(signal => connect(wallet, signal))}
          />
        ))
      )}
      {progress}
    </div>
  )
}

type ConnectProps = { wallet: Wallet; isAsked: boolean; onConnect: () => void }

const ConnectButton = ({ wallet, isAsked, onConnect }: ConnectProps) => (
  <button type="button" class="primary" disabled={isAsked} onClick={onConnect}>
    {wallet.icon && <img src={wallet.icon} alt="" width="20" height="20" />}
    <span>
      Connect <Untrusted text={wallet.name} />
    </span>
  </button>
)

/** Wallets for phones whose own browser opens a page from a link, as their documentation says. */
const PHONE_WALLETS: [name: string, linkTo: (page: URL) => string][] = [
  ['MetaMask', ({ host, pathname, search }) => `https://metamask.app.link/dapp/${host}${pathname}${search}`],
  ['Coinbase Wallet', ({ href }) => `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(href)}`],
  ['Trust Wallet', ({ href }) => `https://link.trustwallet.com/open_url?coin_id=60&url=${encodeURIComponent(href)}`],
]

/** What to do without a wallet: on a phone, open the page in the browser of one. */
function NoWallet() {
  const page = usePlace()
  const isPhone = window.matchMedia('(pointer: coarse)').matches
  return (
    <div class="no-wallet">
      <p class="fine">
        No wallet has announced itself in this browser. Everything here can be read without one; signing needs{' '}
        {isPhone
          ? "a wallet. Open this page in a wallet's own browser:"
          : 'a wallet extension, such as MetaMask or Rabby.'}
      </p>
      {isPhone && (
        <ul>
          {PHONE_WALLETS.map(([name, linkTo]) => (
            <li key={name}>
              <a class="button" href={linkTo(page)} rel="noreferrer">
                {name}
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
