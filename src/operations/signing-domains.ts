import type { Address } from 'viem'
import { must, read } from '../chain/chain.ts'
import type { Context } from '../context.ts'
import { type Domain, domainAbi, type PrimaryType, toDomain } from '../protocol/typed-data.ts'

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

/** Reads the EIP-712 domains of registry and router in one round trip. */
export async function readSigningDomains({
  chain,
  trading,
}: Pick<Context, 'chain' | 'trading'>): Promise<Record<SigningContract, Domain>> {
  const domainCall = (address: Address) => ({ address, abi: domainAbi, functionName: 'eip712Domain' }) as const
  const { results } = await read(chain, [
    domainCall(chain.contracts.AgentRegistry),
    domainCall(trading.trading.TradeRouter),
  ] as const)
  return { AgentRegistry: toDomain(must(results[0])), TradeRouter: toDomain(must(results[1])) }
}
