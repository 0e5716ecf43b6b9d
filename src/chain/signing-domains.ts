import { refuse } from '../errors/refuse.ts'
import { type Domain, type PrimaryType, toDomain } from '../protocol/typed-data.ts'
import type { Chain } from './configured-chain.ts'
import { eip712Contract } from './contracts.ts'
import { call, readTree } from './read-tree.ts'

export type SigningContract = 'AgentRegistry' | 'TradeRouter'

/** The verifying contract of each primary type. */
export const signingContracts: Record<PrimaryType, SigningContract> = {
  SelfRegister: 'AgentRegistry',
  LinkERC8004: 'AgentRegistry',
  OpenPosition: 'TradeRouter',
  AddToPosition: 'TradeRouter',
  ReducePosition: 'TradeRouter',
  UpdateExitLadder: 'TradeRouter',
}

/** Reads the EIP-712 domains of registry and router in one round trip. Throws TRADING_NOT_CONFIGURED, CHAIN_UNREACHABLE. */
export async function readSigningDomains(chain: Chain): Promise<Record<SigningContract, Domain>> {
  if (chain.trading === undefined) throw refuse('TRADING_NOT_CONFIGURED')
  const { values } = await readTree(chain, {
    AgentRegistry: call(eip712Contract(chain.contracts.AgentRegistry), 'eip712Domain', []),
    TradeRouter: call(eip712Contract(chain.trading.TradeRouter), 'eip712Domain', []),
  })
  return { AgentRegistry: toDomain(values.AgentRegistry), TradeRouter: toDomain(values.TradeRouter) }
}
