import { readText, writeText } from '../data/storage.ts'
import { createStore } from '../data/store.ts'
import { type Connected, isUnknownChain, type Provider, untilStopped, type Wallet } from './provider.ts'

type Announcement = CustomEvent<{
  info: { uuid: string; rdns: string; name: string; icon?: unknown }
  provider: Provider
}>

export const wallets = createStore<Wallet[]>([])
export const connected = createStore<Connected | undefined>(undefined)

let isListening = false

/** Asks the browser's wallets to announce themselves. Pages of desks call it; no other page does. */
export function discoverWallets(): void {
  if (!isListening)
    window.addEventListener('eip6963:announceProvider', event => {
      const { info, provider } = (event as Announcement).detail
      const known = wallets.get().filter(({ id }) => id !== info.uuid)
      const icon = `${info.icon}`.startsWith('data:image/') ? `${info.icon}` : undefined
      offer([
        ...known.filter(({ id }) => id !== UNANNOUNCED),
        { id: info.uuid, rdns: info.rdns, name: info.name, icon, provider },
      ])
    })
  isListening = true
  window.dispatchEvent(new Event('eip6963:requestProvider'))
  // The browsers of some wallets for phones announce nothing.
  const { ethereum: provider } = window as { ethereum?: Provider }
  if (wallets.get().length === 0 && provider)
    offer([{ id: UNANNOUNCED, rdns: UNANNOUNCED, name: 'the wallet of this browser', provider }])
}

/** Stands for the id of a wallet that has not announced itself. */
const UNANNOUNCED = 'window.ethereum'

function offer(offered: Wallet[]) {
  wallets.set(offered)
  const remembered = offered.find(({ rdns }) => rdns === readText('localStorage', REMEMBERED))
  if (connected.get() === undefined && remembered) reconnect(remembered)
}

/** The wallet that was connected last, by its rdns. */
const REMEMBERED = 'wallet'

/** Takes up the connection of an earlier visit if the wallet still allows it. It is not asked anything. */
async function reconnect(wallet: Wallet): Promise<void> {
  const accounts = await wallet.provider.request({ method: 'eth_accounts' }).catch(() => [])
  const [address] = accounts as `0x${string}`[]
  if (address !== undefined) await adopt(wallet, address).catch(() => {})
}

/** Asks a wallet for an account. Throws what the wallet throws, and Stopped. */
export async function connect(wallet: Wallet, signal: AbortSignal): Promise<void> {
  const accounts = await untilStopped(wallet.provider.request({ method: 'eth_requestAccounts' }), signal)
  const [address] = accounts as `0x${string}`[]
  if (address === undefined) throw new Error('The wallet gave no account.')
  await adopt(wallet, address, signal)
}

async function adopt(wallet: Wallet, address: `0x${string}`, signal?: AbortSignal): Promise<void> {
  const chainId = Number(await untilStopped(wallet.provider.request({ method: 'eth_chainId' }), signal))
  connected.set({ wallet, address, chainId })
  writeText('localStorage', REMEMBERED, wallet.rdns)
  listenTo(wallet)
}

const followed = new Set<Provider>()

function listenTo({ id, provider }: Wallet) {
  if (followed.has(provider)) return
  followed.add(provider)
  const update = (change: (current: Connected) => Connected | undefined) => {
    const current = connected.get()
    if (current?.wallet.id === id) connected.set(change(current))
  }
  provider.on?.('accountsChanged', ([address]: `0x${string}`[]) =>
    update(current => address && { ...current, address }),
  )
  provider.on?.('chainChanged', (chainId: string) => update(current => ({ ...current, chainId: Number(chainId) })))
  provider.on?.('disconnect', () => update(() => undefined))
}

export function disconnect(): void {
  writeText('localStorage', REMEMBERED, undefined)
  connected.set(undefined)
}

/** Notes the chain or the account that the wallet reported, for wallets that do not announce a change. */
export function note(reported: Partial<Pick<Connected, 'chainId' | 'address'>>): void {
  const current = connected.get()
  if (current) connected.set({ ...current, ...reported })
}

/** What a wallet has to know of a chain. */
export type WalletChain = {
  chainId: number
  chainName?: string | undefined
  node?: string | undefined
  explorer?: string | undefined
}

/** Asks the wallet to go to a chain, and offers the chain to a wallet that does not know it. */
export async function switchChain({ wallet }: Connected, chain: WalletChain, signal: AbortSignal): Promise<void> {
  const chainId = `0x${chain.chainId.toString(16)}`
  const request = (method: string, params: object) =>
    untilStopped(wallet.provider.request({ method, params: [params] }), signal)
  try {
    await request('wallet_switchEthereumChain', { chainId })
  } catch (error) {
    if (!isUnknownChain(error)) throw error
    await request('wallet_addEthereumChain', { chainId, ...definitionOf(chain) })
    // Some wallets only add the chain; for one that is on it already, this does nothing.
    await request('wallet_switchEthereumChain', { chainId })
  }
  note({ chainId: chain.chainId })
}

/** Returns the parameters of EIP-3085 for a chain. Throws if no public node of it is known. */
function definitionOf({ chainId, chainName = `Chain ${chainId}`, node, explorer }: WalletChain) {
  if (node === undefined)
    throw new Error(
      `The wallet does not know chain ${chainId}. Add it in the wallet with the URL of a node, and switch.`,
    )
  return {
    chainName,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: [node],
    ...(explorer !== undefined && { blockExplorerUrls: [explorer] }),
  }
}
