import { arbitrum, arbitrumSepolia, robinhoodTestnet } from 'viem/chains'
import { createStore } from '../data/store.ts'
import { type Connected, isUnknownChain, type Provider, type Wallet } from './provider.ts'

type Announcement = CustomEvent<{ info: { uuid: string; name: string }; provider: Provider }>

export const wallets = createStore<Wallet[]>([])
export const connected = createStore<Connected | undefined>(undefined)

let isListening = false

/** Asks the browser's wallets to announce themselves. Pages of desks call it; no other page does. */
export function discoverWallets(): void {
  if (!isListening)
    window.addEventListener('eip6963:announceProvider', event => {
      const { info, provider } = (event as Announcement).detail
      const known = wallets.get().filter(({ id }) => id !== info.uuid)
      wallets.set([...known, { id: info.uuid, name: info.name, provider }])
    })
  isListening = true
  window.dispatchEvent(new Event('eip6963:requestProvider'))
}

/** Asks a wallet for an account. Throws what the wallet throws. */
export async function connect(wallet: Wallet): Promise<void> {
  const accounts = (await wallet.provider.request({ method: 'eth_requestAccounts' })) as `0x${string}`[]
  const chainId = Number(await wallet.provider.request({ method: 'eth_chainId' }))
  const [address] = accounts
  if (address === undefined) throw new Error('The wallet gave no account.')
  connected.set({ wallet, address, chainId })
  wallet.provider.on?.('accountsChanged', (changed: `0x${string}`[]) => {
    const current = connected.get()
    if (current?.wallet.id !== wallet.id) return
    connected.set(changed[0] ? { ...current, address: changed[0] } : undefined)
  })
  wallet.provider.on?.('chainChanged', (changed: string) => {
    const current = connected.get()
    if (current?.wallet.id === wallet.id) connected.set({ ...current, chainId: Number(changed) })
  })
}

export const disconnect = (): void => connected.set(undefined)

/** Notes the chain that the wallet reported, for wallets that do not announce a change. */
export function noteChain(chainId: number): void {
  const current = connected.get()
  if (current && current.chainId !== chainId) connected.set({ ...current, chainId })
}

/** What a wallet has to know of a chain. */
export type WalletChain = { chainId: number; node?: string | undefined; explorer?: string | undefined }

/** Asks the wallet to go to a chain, and offers the chain to a wallet that does not know it. */
export async function switchChain({ wallet }: Connected, chain: WalletChain): Promise<void> {
  const chainId = `0x${chain.chainId.toString(16)}`
  const request = (method: string, params: object) => wallet.provider.request({ method, params: [params] })
  try {
    await request('wallet_switchEthereumChain', { chainId })
  } catch (error) {
    if (!isUnknownChain(error)) throw error
    await request('wallet_addEthereumChain', { chainId, ...definitionOf(chain) })
    // Some wallets only add the chain; for one that is on it already, this does nothing.
    await request('wallet_switchEthereumChain', { chainId })
  }
  noteChain(chain.chainId)
}

/** Returns the parameters of EIP-3085 for a chain. Throws if no public node of it is known. */
function definitionOf({ chainId, node, explorer }: WalletChain) {
  const known = [arbitrum, arbitrumSepolia, robinhoodTestnet].find(({ id }) => id === chainId)
  const rpcUrl = node ?? known?.rpcUrls.default.http[0]
  if (rpcUrl === undefined)
    throw new Error(
      `The wallet does not know chain ${chainId}. Add it in the wallet with the URL of a node, and switch.`,
    )
  const explorerUrl = explorer ?? known?.blockExplorers.default.url
  return {
    chainName: known?.name ?? `Chain ${chainId}`,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: [rpcUrl],
    ...(explorerUrl !== undefined && { blockExplorerUrls: [explorerUrl] }),
  }
}
