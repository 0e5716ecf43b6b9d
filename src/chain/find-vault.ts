import { nearestName } from '@agent-trading-service/protocol/nearest-name'
import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { type Address, getAddress, isAddress } from 'viem'
import { refuse } from '../errors/refuse.ts'
import type { Chain } from './configured-chain.ts'
import { readVaultsAndTokens, type Vault, type VaultsAndTokens } from './read-vaults-and-tokens.ts'

/** Finds a vault by slug, or by address in any case. Throws VAULT_NOT_FOUND. */
export function findVault({ vaults }: VaultsAndTokens, id: string): Vault {
  const address = isAddress(id, { strict: false }) ? getAddress(id) : undefined
  const vault = vaults.find(vault => (address ? vault.address === address : vaultSlug(vault) === id))
  if (vault === undefined) throw refuse('VAULT_NOT_FOUND', { id, nearest: nearestName(id, vaults.map(vaultSlug)) })
  return vault
}

/** Returns the address of a vault in a request, which need not be registered if it is one. Throws VAULT_NOT_FOUND. */
export async function addressOfReference(chain: Chain, reference: string): Promise<Address> {
  if (isAddress(reference)) return reference
  return (Object.hasOwn(chain.vaults, reference) && chain.vaults[reference]) || vaultAddress(chain, reference)
}

/** Returns the contract address of a registered vault, given by slug or address. Throws VAULT_NOT_FOUND. */
export async function vaultAddress(chain: Chain, id: string): Promise<Address> {
  const { registered } = await readVaultsAndTokens(chain)
  return findVault(registered, id).address
}
