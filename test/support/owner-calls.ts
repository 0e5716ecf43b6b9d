import { MandateMode } from '@agent-trading-service/protocol/enums'
import {
  type Address,
  createTestClient,
  createWalletClient,
  type Hex,
  http,
  publicActions,
  type TransactionReceipt,
  zeroAddress,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import type { Trader } from './actors.ts'
import { deployment } from './surfaces.ts'

// Owners that call OwnerControls themselves: such a call needs no signature, and no service.

const client = createWalletClient({ transport: retryLatest(http(deployment.rpcUrl)), pollingInterval: 50 }).extend(
  publicActions,
)
const testClient = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) })
const ownerControls = { address: deployment.contracts.OwnerControls as Address, abi: ownerControlsAbi } as const
const NO_DEADLINE = 2n ** 64n

/** The terms of a mandate that differ from one that allows everything. Amounts are USDC base units. */
export type MandateChanges = {
  mode?: number
  maxTradeUsdc?: bigint
  maxDailyTurnoverUsdc?: bigint
  maxExposureUsdc?: bigint
  allowedTokens?: readonly Address[]
  validUntil?: bigint
}

/** An account with gas that owns agents. */
export type Owner = PrivateKeyAccount

/** Returns a new account with gas. */
export const newOwner = (): Promise<Owner> => withGas(privateKeyToAccount(generatePrivateKey()))

/** Returns the owner of an agent that its signer registered alone: the signer, with gas. */
export const ownerOf = ({ account }: Trader): Promise<Owner> => withGas(account)

async function withGas(owner: Owner): Promise<Owner> {
  await testClient.setBalance({ address: owner.address, value: 10n ** 18n })
  return owner
}

const nonceOf = ({ address }: Owner) =>
  client.readContract({ ...ownerControls, functionName: 'nonces', args: [address] })

/** Waits for the receipt of a call that the owner made. */
async function mined(hash: Promise<Hex>): Promise<TransactionReceipt> {
  const receipt = await client.waitForTransactionReceipt({ hash: await hash })
  if (receipt.status !== 'success') throw new Error(`The owner's call reverted in ${receipt.transactionHash}`)
  return receipt
}

/** Returns the trader, whose signer has given the agent to the owner. */
export async function ownedBy(owner: Owner, trader: Trader): Promise<Trader> {
  const account = await ownerOf(trader)
  const registry = { address: deployment.contracts.AgentRegistry, abi: agentRegistryAbi } as const
  const args = [BigInt(trader.agentId), owner.address] as const
  await mined(client.writeContract({ account, chain: null, ...registry, functionName: 'transferAgentOwnership', args }))
  return trader
}

/** Sets the whole mandate of an agent. */
export async function setMandate(owner: Owner, agentId: string, changes: MandateChanges = {}) {
  const mandate = {
    mode: MandateMode.Trade,
    maxTradeUsdc: 0n,
    maxDailyTurnoverUsdc: 0n,
    maxExposureUsdc: 0n,
    allowedTokens: [],
    validUntil: 0n,
    ...changes,
  }
  const args = [BigInt(agentId), mandate, await nonceOf(owner), NO_DEADLINE, '0x'] as const
  return mined(
    client.writeContract({ account: owner, chain: null, ...ownerControls, functionName: 'setMandate', args }),
  )
}

/** Stops the buying of agents. */
export async function stopBuying(owner: Owner, agentIds: string[]) {
  const args = [agentIds.map(BigInt), await nonceOf(owner), NO_DEADLINE, '0x'] as const
  return mined(
    client.writeContract({ account: owner, chain: null, ...ownerControls, functionName: 'stopBuying', args }),
  )
}

/** Stops the buying of agents and has their positions sold. */
export async function closeAll(owner: Owner, agentIds: string[]) {
  const args = [agentIds.map(BigInt), await nonceOf(owner), NO_DEADLINE, '0x'] as const
  return mined(client.writeContract({ account: owner, chain: null, ...ownerControls, functionName: 'closeAll', args }))
}

/** Replaces the key that signs an agent's intents. */
export async function setSigner(owner: Owner, agentId: string, signer: Address) {
  const args = [BigInt(agentId), signer, await nonceOf(owner), NO_DEADLINE, '0x'] as const
  return mined(client.writeContract({ account: owner, chain: null, ...ownerControls, functionName: 'setSigner', args }))
}

/** Voids an agent's intents with nonces below `untilNonce`. */
export async function cancelIntents(owner: Owner, agentId: string, untilNonce: bigint) {
  const args = [BigInt(agentId), untilNonce, await nonceOf(owner), NO_DEADLINE, '0x'] as const
  return mined(
    client.writeContract({ account: owner, chain: null, ...ownerControls, functionName: 'cancelIntents', args }),
  )
}

/** Offers an agent to an account; the zero address withdraws the offer. */
export async function offerOwnership(owner: Owner, agentId: string, newOwner: Address = zeroAddress) {
  const args = [BigInt(agentId), newOwner, await nonceOf(owner), NO_DEADLINE, '0x'] as const
  return mined(
    client.writeContract({ account: owner, chain: null, ...ownerControls, functionName: 'offerOwnership', args }),
  )
}

/** Takes an agent that was offered, and names its signer. */
export async function acceptOwnership(newOwner: Owner, agentId: string, signer: Address) {
  const args = [BigInt(agentId), signer, await nonceOf(newOwner), NO_DEADLINE, '0x'] as const
  return mined(
    client.writeContract({ account: newOwner, chain: null, ...ownerControls, functionName: 'acceptOwnership', args }),
  )
}
