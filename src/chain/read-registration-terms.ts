import { type Address, type Hex, zeroAddress } from 'viem'
import { type Domain, toDomain } from '../protocol/typed-data.ts'
import type { Block } from './block-number-and-time.ts'
import type { Chain } from './configured-chain.ts'
import { agentRegistry, eip712Contract, feeManager } from './contracts.ts'
import { call, readTree } from './read-tree.ts'

/** What a registration must match. `signerNonce` is undefined without a signer; the fee is in base units of its asset. */
export type RegistrationTerms = {
  domain: Domain
  selfRegisterTypehash: Hex
  signerNonce: bigint | undefined
  paused: boolean
  fee: { amount: bigint; asset: Address; treasury: Address; relayer: Address }
}

/** Reads the terms of a registration, with the next nonce of a signer if one is given. */
export async function getRegistrationTerms(
  chain: Chain,
  signer?: Address,
): Promise<{ block: Block; terms: RegistrationTerms }> {
  const registry = agentRegistry(chain)
  const fees = feeManager(chain)
  const { block, values } = await readTree(chain, {
    domain: call(eip712Contract(registry.address), 'eip712Domain', []),
    selfRegisterTypehash: call(registry, 'SELF_REGISTER_TYPEHASH', []),
    paused: call(registry, 'paused', []),
    fee: {
      amount: call(fees, 'getRegistrationFee', []),
      asset: call(fees, 'feeAsset', []),
      treasury: call(fees, 'treasury', []),
      relayer: call(fees, 'registrationFeeRelayer', []),
    },
    nonce: call(registry, 'nonces', [signer ?? zeroAddress]),
  })
  const { domain, nonce, ...terms } = values
  return { block, terms: { ...terms, domain: toDomain(domain), signerNonce: signer && nonce } }
}
