import { createWalletClient, type Hex, http, type PrivateKeyAccount, publicActions } from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { promotionCriteriaAbi } from '../contracts-abi/promotion-criteria.ts'
import { retryLatest } from '../devnet/retry-latest.ts'

// The errors of the criteria come through the registry.
const abi = [...agentRegistryAbi, ...promotionCriteriaAbi]

/**
 * Promotes an agent to its next track and returns the mined transaction's hash. Any account may call the contract, so
 * the service has no operation for it; `sender` pays the gas and the promotion fee. Throws with the contract's error,
 * such as `TooFewTrades`, while a criterion is missing.
 */
export async function promoteAgent(
  { rpcUrl, registry, sender }: { rpcUrl: string; registry: Hex; sender: PrivateKeyAccount },
  agentId: bigint,
): Promise<Hex> {
  const client = createWalletClient({
    account: sender,
    transport: retryLatest(http(rpcUrl)),
    pollingInterval: 100,
  }).extend(publicActions)
  const track = await client.readContract({ address: registry, abi, functionName: 'trackOf', args: [agentId] })
  const call = { address: registry, abi, functionName: 'promoteAgent', args: [agentId, track + 1] } as const
  await client.simulateContract({ ...call, account: sender })
  const hash = await client.writeContract({ ...call, chain: null })
  const { status } = await client.waitForTransactionReceipt({ hash })
  if (status !== 'success') throw new Error(`The promotion of agent ${agentId} reverted in ${hash}.`)
  return hash
}
