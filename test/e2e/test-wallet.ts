import type { Page } from 'playwright-core'
import { createWalletClient, type Hex, http, type TypedDataDefinition } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Account } from '../../devnet/accounts.ts'
import type { Deployment } from '../../devnet/deployment.ts'

export const WALLET_NAME = 'Test wallet'

type Reply = { result?: unknown; error?: { code: number; message: string; data?: unknown } }

/** What a test changes in its wallet. The wallet announces a change only with `announce`. */
export type TestWallet = {
  account: Account
  chainId: number
  /** Methods that fail once, each with its message or its error. */
  failing: Map<string, string | { code: number; message: string }>
  /** Methods that are not answered before the promise resolves. */
  hanging: Map<string, Promise<void>>
  /** Methods that find nothing. */
  blind: Set<string>
  /** Runs after each transaction that the wallet sends. */
  onSent: () => void
  /** How the wallet refuses to switch to a chain that it does not know; undefined if it knows every chain. */
  unknownChain?: (error: { code: number; message: string }) => NonNullable<Reply['error']>
  /** The chains that pages have offered. */
  added: Record<string, unknown>[]
  announce(event: string, value: unknown): Promise<void>
}

/**
 * Gives a page a wallet that announces itself as EIP-6963 says. The page sees the provider only: the key stays in the
 * test, which signs typed data and sends transactions to the embedded chain.
 */
export async function injectWallet(page: Page, owner: Account, { rpcUrl, chainId }: Deployment): Promise<TestWallet> {
  const wallet: TestWallet = {
    account: owner,
    chainId,
    failing: new Map(),
    hanging: new Map(),
    blind: new Set(),
    onSent: () => {},
    added: [],
    announce: (event, value) => page.evaluate(`testWalletListeners.${event}?.(${JSON.stringify(value)})`),
  }
  await page.exposeFunction('testWallet', async (method: string, params: unknown[]): Promise<Reply> => {
    try {
      return { result: await answer(rpcUrl, wallet, method, params) }
    } catch (error) {
      const { code = -32_603, message = String(error), data } = error as NonNullable<Reply['error']>
      return { error: { code, message, data } }
    }
  })
  await page.addInitScript({ content: announcement })
  return wallet
}

const ICON = `data:image/svg+xml,${encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8" width="32" height="32"><circle cx="4" cy="4" r="4"/></svg>')}`

const announcement = `(() => {
  window.testWalletListeners = {}
  const provider = {
    async request({ method, params = [] }) {
      const { result, error } = await window.testWallet(method, params)
      if (error) throw Object.assign(new Error(error.message), error)
      return result
    },
    on(event, listener) {
      window.testWalletListeners[event] = listener
    },
  }
  const info = { uuid: '7f7a7f0e-58f1-4a5e-9d1a-1d7d3f1d7a10', name: '${WALLET_NAME}', icon: '${ICON}', rdns: 'example.test' }
  const announce = () =>
    window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  window.addEventListener('eip6963:requestProvider', announce)
  announce()
})()`

async function answer(rpcUrl: string, wallet: TestWallet, method: string, params: unknown[]): Promise<unknown> {
  const failure = wallet.failing.get(method)
  if (wallet.failing.delete(method)) throw typeof failure === 'string' ? new Error(failure) : failure
  await wallet.hanging.get(method)
  if (wallet.blind.has(method)) return null
  const account = privateKeyToAccount(wallet.account.privateKey)
  switch (method) {
    case 'eth_requestAccounts':
    case 'eth_accounts':
      return [account.address]
    case 'eth_chainId':
      return `0x${wallet.chainId.toString(16)}`
    case 'wallet_addEthereumChain':
      wallet.added.push(params[0] as Record<string, unknown>)
      return null
    case 'wallet_switchEthereumChain':
      if (wallet.unknownChain && wallet.added.length === 0)
        throw wallet.unknownChain({ code: 4902, message: 'Unrecognized chain ID' })
      wallet.chainId = Number((params[0] as { chainId: Hex }).chainId)
      return null
    case 'eth_signTypedData_v4': {
      const { types, ...typedData } = JSON.parse(params[1] as string)
      const { EIP712Domain: _, ...structs } = types
      return account.signTypedData({ ...typedData, types: structs } as TypedDataDefinition)
    }
    case 'eth_sendTransaction': {
      const { to, data } = params[0] as { to: Hex; data: Hex }
      const client = createWalletClient({ account, transport: http(rpcUrl) })
      return client.sendTransaction({ chain: null, to, data }).finally(wallet.onSent)
    }
    default:
      return forward(rpcUrl, method, params)
  }
}

async function forward(rpcUrl: string, method: string, params: unknown[]): Promise<unknown> {
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result, error } = (await response.json()) as Reply
  if (error) throw error
  return result
}
