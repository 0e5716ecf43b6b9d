import { createStore } from '../data/store.ts'
import type { Connected, Provider, Wallet } from './provider.ts'

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

/** Asks the wallet to go to a chain. */
export async function switchChain({ wallet }: Connected, chainId: number): Promise<void> {
  await wallet.provider.request({
    method: 'wallet_switchEthereumChain',
    params: [{ chainId: `0x${chainId.toString(16)}` }],
  })
  noteChain(chainId)
}
