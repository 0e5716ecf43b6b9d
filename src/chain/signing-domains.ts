import { refuse } from '../errors/refuse.ts'
import { type Domain, isOwnerMessage, type PrimaryType, toDomain } from '../protocol/typed-data.ts'
import type { Chain } from './configured-chain.ts'
import { eip712Contract } from './contracts.ts'
import { readOwnerControls } from './read-owner-terms.ts'
import { call, readTree } from './read-tree.ts'

export type SigningContract = 'AgentRegistry' | 'TradeRouter' | 'OwnerControls'

/** Returns the verifying contract of a primary type. */
export function signingContractOf(primaryType: PrimaryType): SigningContract {
  if (isOwnerMessage(primaryType)) return 'OwnerControls'
  return primaryType === 'SelfRegister' || primaryType === 'LinkERC8004' ? 'AgentRegistry' : 'TradeRouter'
}

/**
 * Reads the EIP-712 domains of this deployment; that of OwnerControls is undefined where it is not deployed. Throws
 * TRADING_NOT_CONFIGURED, CHAIN_UNREACHABLE.
 */
export async function readSigningDomains(chain: Chain): Promise<Record<SigningContract, Domain | undefined>> {
  if (chain.trading === undefined) throw refuse('TRADING_NOT_CONFIGURED')
  const [{ values }, ownerControls] = await Promise.all([
    readTree(chain, {
      AgentRegistry: call(eip712Contract(chain.contracts.AgentRegistry), 'eip712Domain', []),
      TradeRouter: call(eip712Contract(chain.trading.TradeRouter), 'eip712Domain', []),
    }),
    readOwnerControls(chain),
  ])
  return {
    AgentRegistry: toDomain(values.AgentRegistry),
    TradeRouter: toDomain(values.TradeRouter),
    OwnerControls: ownerControls,
  }
}
