import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { type Address, getAddress, isAddress } from 'viem'
import { z } from 'zod'
import type { Chain } from '../chain/configured-chain.ts'
import { readVaultsAndTokens, type Vault, type VaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { nearestName } from '../errors/nearest-name.ts'
import { refuse } from '../errors/refuse.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { presentToken, vaultTokens } from '../resources/token.ts'
import { presentVault, vaultList, vaultResponse } from '../resources/vault.ts'
import { vaultsMarkdown } from '../resources/vault-markdown.ts'
import { defineOperation } from './define-operation.ts'

export const vaultParams = z.object({
  id: z.string().min(1).max(128).meta({ description: 'Slug or contract address of the vault', example: 'genesis' }),
})

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

/** Returns the slugs of the vaults that allow a token. */
export const vaultIdsOf = ({ vaults, allows }: VaultsAndTokens, token: `0x${string}`): string[] =>
  vaults.filter(vault => allows(vault.address, token)).map(vault => vaultSlug(vault))

export const listVaults = defineOperation(
  {
    id: 'listVaults',
    tool: {
      name: 'svc_list_vaults',
      description:
        'Lists the vaults with the risk policy of their tracks. Start here: svc_list_vault_tokens takes the id, a registration the contractAddress.',
    },
    resource: {
      uri: 'svc://vaults',
      name: 'vaults',
      title: 'Vaults',
      description: 'The output of svc_list_vaults: every vault with the risk policy of its tracks.',
    },
    method: 'get',
    path: '/vaults',
    tag: 'Vaults',
    summary: 'List vaults',
    description:
      'Returns every registered vault with the risk policy of its tracks. Over HTTP, `format=md` (or `Accept: text/markdown`) returns Markdown.',
    markdown: vaultsMarkdown,
    cache: 'isolate',
    status: 200,
    output: vaultList,
    errors: [502],
  },
  async ({ chain }) => {
    const { block, registered } = await readVaultsAndTokens(chain)
    const vaults = registered.vaults.map(vault => presentVault(chain.id, vault))
    return { chainId: chain.id, vaults, total: vaults.length, asOf: presentAsOf(block) }
  },
)

export const getVault = defineOperation(
  {
    id: 'getVault',
    tool: {
      name: 'svc_get_vault',
      description:
        'Returns one vault, by slug or contract address, with the risk policy of its tracks. Example: {"id":"genesis"}',
    },
    method: 'get',
    path: '/vaults/{id}',
    tag: 'Vaults',
    summary: 'Get a vault',
    description: 'Returns a vault, by slug or contract address, with the risk policy of its tracks.',
    params: vaultParams,
    cache: 'isolate',
    status: 200,
    output: vaultResponse,
    errors: [404, 502],
  },
  async ({ chain }, { id }) => {
    const { block, registered } = await readVaultsAndTokens(chain)
    return { vault: presentVault(chain.id, findVault(registered, id)), asOf: presentAsOf(block) }
  },
)

export const listVaultTokens = defineOperation(
  {
    id: 'listVaultTokens',
    tool: {
      name: 'svc_list_vault_tokens',
      description:
        'Lists the tokens that may be traded in a vault, with prices in US dollars. svc_get_trade_intent_quote takes the symbol. Example: {"id":"genesis"}',
    },
    method: 'get',
    path: '/vaults/{id}/tokens',
    tag: 'Vaults',
    summary: 'List the tokens of a vault',
    description: "Returns the tokens that the vault's on-chain allowlist admits, with their oracle prices.",
    params: vaultParams,
    cache: 'isolate',
    status: 200,
    output: vaultTokens,
    errors: [404, 502],
  },
  async ({ chain }, { id }) => {
    const { block, registered } = await readVaultsAndTokens(chain)
    const vault = findVault(registered, id)
    const allowed = registered.tokens.filter(({ address }) => registered.allows(vault.address, address))
    const tokens = allowed.map(token => ({
      ...presentToken(token, vaultIdsOf(registered, token.address), registered.quoteIn(token.address, vault)),
      allowedInVault: true,
    }))
    return {
      vaultId: vaultSlug(vault),
      chainId: chain.id,
      priceOracle: chain.contracts.PriceOracle,
      tokens,
      total: tokens.length,
      asOf: presentAsOf(block),
    }
  },
)
