import { domainAbi } from '@agent-trading-service/protocol/typed-data'
import { type Address, BaseError, createPublicClient, HttpRequestError, http, parseAbi, TimeoutError } from 'viem'
import { NetworkError, UntrustedQuoteError } from './errors.ts'
import type { SigningContract } from './typed-data.ts'

const noncesOfAgentsAbi = parseAbi(['function nonces(uint256 agentId) view returns (uint256)'])
const noncesOfAccountsAbi = parseAbi(['function nonces(address account) view returns (uint256)'])

/** What bounds a signature whose size the caller leaves to the client. A tuple without names is decoded to a list. */
const abi = parseAbi([
  'function positionManager() view returns (address)',
  'function getPosition(uint256) view returns ((uint256, uint256, address, address, uint256, uint256, uint256, uint16, uint8, uint8, uint64, int256))',
  'function getExitRules(uint256) view returns ((uint8 triggerType, int256 triggerBps, uint16 exitBps)[])',
  'function trackOf(uint256) view returns (uint8)',
  'function vaultOf(uint256) view returns (address)',
  'function allocationManager() view returns (address)',
  'function requiredFirstLossUsdc(uint256, uint256) view returns (uint256)',
  'function convertToShares(uint256) view returns (uint256)',
])

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
    /** Returns the token of a position, its cost and its pending exit rules. */
    async positionOf(router: Address, positionId: bigint) {
      const address = await client
        .readContract({ address: router, abi, functionName: 'positionManager' })
        .catch(throwWithoutUrl)
      const [[, , , token, , , usdcCostBasis, , , nextRuleIndex], rules] = await Promise.all([
        client.readContract({ address, abi, functionName: 'getPosition', args: [positionId] }),
        client.readContract({ address, abi, functionName: 'getExitRules', args: [positionId] }),
      ]).catch(throwWithoutUrl)
      return { token, usdcCostBasis, exits: rules.slice(nextRuleIndex) }
    },
    /**
     * Returns the shares that the next track of an agent requires, with a hundredth more: the share price moves until
     * then.
     */
    async requiredShares(registry: Address, agentId: bigint): Promise<bigint> {
      const ofAgent = { address: registry, abi, args: [agentId] } as const
      const [track, vault, allocations] = await Promise.all([
        client.readContract({ ...ofAgent, functionName: 'trackOf' }),
        client.readContract({ ...ofAgent, functionName: 'vaultOf' }),
        client.readContract({ address: registry, abi, functionName: 'allocationManager' }),
      ]).catch(throwWithoutUrl)
      const usdc = await client
        .readContract({
          address: allocations,
          abi,
          functionName: 'requiredFirstLossUsdc',
          args: [agentId, BigInt(track) + 1n],
        })
        .catch(throwWithoutUrl)
      return client
        .readContract({ address: vault, abi, functionName: 'convertToShares', args: [(usdc * 101n) / 100n] })
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
