import {
  type Domain,
  isOrderMessage,
  isOwnerMessage,
  isWebhookMessage,
  type PrimaryType,
  serviceDomainName,
  toDomain,
} from '@agent-trading-service/protocol/typed-data'
import { refuse } from '../errors/refuse.ts'
import type { Chain, TradingChain } from './configured-chain.ts'
import { eip712Contract } from './contracts.ts'
import { readOrderBookDomain } from './read-order-terms.ts'
import { readOwnerControls } from './read-owner-terms.ts'
import { call, readTree } from './read-tree.ts'

/** Who verifies a message: a contract, or the service itself. */
export const signingContracts = ['AgentRegistry', 'TradeRouter', 'OwnerControls', 'OrderBook', 'Service'] as const
export type SigningContract = (typeof signingContracts)[number]

/**
 * Returns the domain of messages that only the service verifies. It names the agent registry and the service's host, so
 * that a message is valid for one deployment and no other service over the same contracts can repeat it; its name
 * differs from that of every contract, so that no contract accepts the message.
 */
export const serviceDomain = ({ id, contracts }: Pick<Chain, 'id' | 'contracts'>, host: string): Domain => ({
  name: serviceDomainName(host),
  version: '1',
  chainId: BigInt(id),
  verifyingContract: contracts.AgentRegistry,
})

export function signingContractOf(primaryType: PrimaryType): SigningContract {
  if (isWebhookMessage(primaryType)) return 'Service'
  if (isOwnerMessage(primaryType)) return 'OwnerControls'
  if (isOrderMessage(primaryType)) return 'OrderBook'
  return primaryType === 'SelfRegister' || primaryType === 'LinkERC8004' ? 'AgentRegistry' : 'TradeRouter'
}

/**
 * Reads the EIP-712 domains of this deployment; those of OwnerControls and OrderBook are undefined where these are not
 * deployed. Throws TRADING_NOT_CONFIGURED, CHAIN_UNREACHABLE.
 */
export async function readSigningDomains(
  chain: Chain,
  serviceHost: string,
): Promise<Record<SigningContract, Domain | undefined>> {
  if (chain.trading === undefined) throw refuse('TRADING_NOT_CONFIGURED')
  const [{ values }, ownerControls, orderBook] = await Promise.all([
    readTree(chain, {
      AgentRegistry: call(eip712Contract(chain.contracts.AgentRegistry), 'eip712Domain', []),
      TradeRouter: call(eip712Contract(chain.trading.TradeRouter), 'eip712Domain', []),
    }),
    readOwnerControls(chain),
    readOrderBookDomain(chain as TradingChain),
  ])
  return {
    AgentRegistry: toDomain(values.AgentRegistry),
    TradeRouter: toDomain(values.TradeRouter),
    OwnerControls: ownerControls,
    OrderBook: orderBook,
    Service: serviceDomain(chain, serviceHost),
  }
}
