import { domainAbi } from '@agent-trading-service/protocol/typed-data'
import { type Address, BaseError, createPublicClient, HttpRequestError, http, TimeoutError } from 'viem'
import { NetworkError, UntrustedQuoteError } from './errors.ts'
import type { SigningContract } from './typed-data.ts'

const noncesOfAgentsAbi = [
  {
    type: 'function',
    name: 'nonces',
    stateMutability: 'view',
    inputs: [{ name: 'agentId', type: 'uint256' }],
    outputs: [{ name: '', type: 'uint256' }],
  },
] as const

const noncesOfAccountsAbi = [
  {
    type: 'function',
    name: 'nonces',
    stateMutability: 'view',
    inputs: [{ name: 'account', type: 'address' }],
    outputs: [{ name: '', type: 'uint256' }],
  },
] as const

/** What the client reads from the chain itself, where the caller gives an RPC URL. */
export type ChainReader = ReturnType<typeof createChainReader>

/** Whose nonce a message takes: an agent's on the router, an account's elsewhere. */
export type NonceHolder = { agentId: string } | { account: Address }

export function createChainReader(rpcUrl: string) {
  const client = createPublicClient({ transport: http(rpcUrl) })
  return {
    chainId: () => client.getChainId().catch(throwWithoutUrl),
    /** Returns a contract's own signing domain (ERC-5267). */
    async domainOf(address: Address) {
      const [, name, version, chainId, verifyingContract] = await client
        .readContract({
          address,
          abi: domainAbi,
          functionName: 'eip712Domain',
        })
        .catch(error => throwUnlessDomain(error, address))
      return { name, version, chainId: Number(chainId), verifyingContract }
    },
    async nonceOf(contract: Address, holder: NonceHolder): Promise<bigint> {
      return 'agentId' in holder
        ? client
            .readContract({
              address: contract,
              abi: noncesOfAgentsAbi,
              functionName: 'nonces',
              args: [BigInt(holder.agentId)],
            })
            .catch(throwWithoutUrl)
        : client
            .readContract({
              address: contract,
              abi: noncesOfAccountsAbi,
              functionName: 'nonces',
              args: [holder.account],
            })
            .catch(throwWithoutUrl)
    },
    /** Returns the time of the newest block in Unix seconds. */
    async now(): Promise<number> {
      const { timestamp } = await client.getBlock().catch(throwWithoutUrl)
      return Number(timestamp)
    },
  }
}

/** Throws that the node failed. viem's messages contain its URL, which may hold a key, so they are not passed on. */
function throwWithoutUrl(error: unknown): never {
  const name = error instanceof Error ? error.name : 'error'
  throw new NetworkError('RPC_FAILED', `The node at rpcUrl did not answer (${name}). Nothing was signed.`, {
    remedy: 'Check rpcUrl and try again.',
    retryable: true,
  })
}

/** Throws that an address has no signing domain, or that the node failed. */
function throwUnlessDomain(error: unknown, address: Address): never {
  const isNode =
    error instanceof BaseError && error.walk(at => at instanceof HttpRequestError || at instanceof TimeoutError)
  if (isNode) throwWithoutUrl(error)
  const mismatch = { field: `eip712Domain() of ${address}`, expected: 'a signing domain', given: undefined }
  throw new UntrustedQuoteError('CONTRACT_NOT_CONFIRMED', [mismatch])
}

/** The names of the contracts in the service's discovery document. */
export const discoveryNames: Record<SigningContract, string> = {
  tradeRouter: 'TradeRouter',
  agentRegistry: 'AgentRegistry',
  ownerControls: 'OwnerControls',
  orderBook: 'OrderBook',
}
