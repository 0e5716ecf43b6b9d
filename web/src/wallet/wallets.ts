import { createStore } from '../data/store.ts'

/** What pages need of an EIP-1193 provider. */
export type Provider = {
  request(call: { method: string; params?: readonly unknown[] }): Promise<unknown>
  on?(event: string, listener: (value: never) => void): void
}
/** A wallet that announced itself (EIP-6963). Its name is text that the wallet wrote. */
export type Wallet = { id: string; name: string; provider: Provider }
export type Connected = { wallet: Wallet; address: `0x${string}`; chainId: number }

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

/** Asks the wallet to go to a chain. */
export async function switchChain({ wallet }: Connected, chainId: number): Promise<void> {
  await wallet.provider.request({
    method: 'wallet_switchEthereumChain',
    params: [{ chainId: `0x${chainId.toString(16)}` }],
  })
  const current = connected.get()
  if (current) connected.set({ ...current, chainId })
}

const USER_REJECTED = 4001

/** Says in a sentence why a wallet's call failed. */
export function walletProblem(error: unknown): string {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (code === USER_REJECTED) return 'You declined in the wallet; nothing was sent.'
  return typeof message === 'string' && message !== '' ? message : 'The wallet did not respond.'
}
