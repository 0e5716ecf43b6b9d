import { join } from 'node:path'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { inject } from 'vitest'
import { type Account, type ClientOptions, createClient, type ExitRule } from '../../packages/client/src/index.ts'
import { createPayer } from '../../packages/client/src/pay.ts'

export const deployment = inject('deployment')
export const serviceUrl = inject('serviceUrl')

export const pins = {
  chainId: deployment.chainId,
  tradeRouter: deployment.contracts.TradeRouter,
  agentRegistry: deployment.contracts.AgentRegistry,
  ownerControls: deployment.contracts.OwnerControls,
  orderBook: deployment.contracts.OrderBook,
  vault: deployment.vaults.genesis ?? '0x',
  tokens: deployment.tokens,
}

export const newAccount = (): PrivateKeyAccount => privateKeyToAccount(generatePrivateKey())

export const LADDER: ExitRule[] = [
  { triggerBps: -800, exitBps: 10_000 },
  { triggerBps: 1_500, exitBps: 10_000 },
]

const funded = privateKeyToAccount(deployment.accounts.payer.privateKey)

/** The embedded chain's funded payer, which may pay one fee of 1 USDC at a time. */
export const newPayer = (maxAmount = 1_000_000n, account: Account = funded) =>
  createPayer({
    account,
    chainId: deployment.chainId,
    asset: deployment.contracts.USDC,
    maxAmount,
  })

/** An account that counts what it signs. */
export function countingAccount(inner: PrivateKeyAccount): Account & { signatures: number } {
  return {
    address: inner.address,
    signatures: 0,
    signTypedData(typedData) {
      this.signatures++
      return inner.signTypedData(typedData)
    },
  }
}

/** Returns a client that trusts nothing but its pins and the chain. */
export const clientOf = (account: Account, options: Partial<ClientOptions> = {}) =>
  createClient({ baseUrl: serviceUrl, account, pins, rpcUrl: deployment.rpcUrl, ...options })

/** Registers an agent of the account and returns its id. */
export async function newAgent(account: Account): Promise<string> {
  const { agentId } = await clientOf(account).register({
    vault: 'genesis',
    name: 'client test',
    metadataURI: 'https://agents.example/client.json',
    payer: newPayer(),
  })
  return agentId
}

/** Runs a Python program, given as its first argument, on any machine. */
export const runPython = join(import.meta.dirname, 'python/run.ts')
