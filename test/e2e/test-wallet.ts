import type { Page } from 'playwright-core'
import { createWalletClient, type Hex, http, type TypedDataDefinition } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Account } from '../../devnet/accounts.ts'
import type { Deployment } from '../../devnet/deployment.ts'

export const WALLET_NAME = 'Test wallet'

type Reply = { result?: unknown; error?: { code: number; message: string; data?: unknown } }

/** What a test changes in its wallet. The wallet announces no change. */
export type TestWallet = {
  chainId: number
  failing: Set<string>
  /** How the wallet refuses to switch to a chain that it does not know; undefined if it knows every chain. */
  unknownChain?: (error: { code: number; message: string }) => NonNullable<Reply['error']>
  /** The chains that pages have offered. */
  added: Record<string, unknown>[]
}

/**
 * Gives a page a wallet that announces itself as EIP-6963 says. The page sees the provider only: the key stays in the test,
 * which signs typed data and sends transactions to the embedded chain.
 */
export async function injectWallet(page: Page, owner: Account, { rpcUrl, chainId }: Deployment): Promise<TestWallet> {
  const account = privateKeyToAccount(owner.privateKey)
  const wallet: TestWallet = { chainId, failing: new Set(), added: [] }
  await page.exposeFunction('testWallet', async (method: string, params: unknown[]): Promise<Reply> => {
    try {
      return { result: await answer(account, rpcUrl, wallet, method, params) }
    } catch (error) {
      const { code = -32_603, message = String(error), data } = error as NonNullable<Reply['error']>
      return { error: { code, message, data } }
    }
  })
  await page.addInitScript({ content: announcement })
  return wallet
}

const announcement = `(() => {
  const provider = {
    async request({ method, params = [] }) {
      const { result, error } = await window.testWallet(method, params)
      if (error) throw Object.assign(new Error(error.message), error)
      return result
    },
    on() {},
  }
  const info = { uuid: '7f7a7f0e-58f1-4a5e-9d1a-1d7d3f1d7a10', name: '${WALLET_NAME}', icon: 'data:,', rdns: 'example.test' }
  const announce = () =>
    window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  window.addEventListener('eip6963:requestProvider', announce)
  announce()
})()`

async function answer(
  account: PrivateKeyAccount,
  rpcUrl: string,
  wallet: TestWallet,
  method: string,
  params: unknown[],
): Promise<unknown> {
  if (wallet.failing.delete(method)) throw new Error(`${method} fails once.`)
  switch (method) {
    case 'eth_requestAccounts':
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
      return createWalletClient({ account, transport: http(rpcUrl) }).sendTransaction({ chain: null, to, data })
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
