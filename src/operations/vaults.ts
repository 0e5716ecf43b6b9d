import { getAddress, isAddress } from 'viem'
import { z } from 'zod'
import { catalogVault } from '../catalog/vault-texts.ts'
import type { Chain } from '../chain/chain.ts'
import { type Market, readMarket, type Vault } from '../chain/listings.ts'
import { refuse } from '../errors/catalogue.ts'
import { presentToken, vaultTokens } from '../resources/token.ts'
import { presentVault, vaultAnswer, vaultList } from '../resources/vault.ts'
import { vaultsMarkdown } from '../resources/vault-markdown.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'

export const vaultParams = z.object({
  id: z.string().min(1).max(128).meta({ description: 'Slug or contract address of the vault', example: 'genesis' }),
})

/** Finds a vault by slug or by address in any case. Throws VAULT_NOT_FOUND. */
export function findVault({ vaults }: Market, id: string): Vault {
  const address = isAddress(id, { strict: false }) ? getAddress(id) : undefined
  const vault = vaults.find(vault => (address ? vault.address === address : catalogVault(vault).slug === id))
  if (vault === undefined) throw refuse('VAULT_NOT_FOUND', { id })
  return vault
}

/** Slugs of the vaults that allow a token. */
export const vaultIdsOf = ({ vaults, allows }: Market, token: `0x${string}`): string[] =>
  vaults.filter(vault => allows(vault.address, token)).map(vault => catalogVault(vault).slug)

/** The vaults as the list answers them. */
export async function listedVaults(chain: Chain) {
  const { block, market } = await readMarket(chain)
  const vaults = market.vaults.map(vault => presentVault(chain.id, vault))
  return { chainId: chain.id, vaults, total: vaults.length, asOf: presentBlock(block) }
}

export const listVaults = defineOperation(
  {
    id: 'listVaults',
    tool: 'svc_list_vaults',
    method: 'get',
    path: '/vaults',
    tag: 'Vaults',
    summary: 'List the vaults',
    description:
      'Every registered vault with the risk policy of its tracks. Over HTTP `format=md` (or `Accept: text/markdown`) answers the same as markdown.',
    markdown: vaultsMarkdown,
    remembered: true,
    status: 200,
    output: vaultList,
    errors: [400, 500, 502],
  },
  async ({ chain }) => listedVaults(chain),
)

export const getVault = defineOperation(
  {
    id: 'getVault',
    tool: 'svc_get_vault',
    method: 'get',
    path: '/vaults/{id}',
    tag: 'Vaults',
    summary: 'Get one vault',
    description: 'One vault by slug or contract address, with the risk policy of its tracks.',
    params: vaultParams,
    remembered: true,
    status: 200,
    output: vaultAnswer,
    errors: [400, 404, 500, 502],
  },
  async ({ chain }, { id }) => {
    const { block, market } = await readMarket(chain)
    return { vault: presentVault(chain.id, findVault(market, id)), asOf: presentBlock(block) }
  },
)

export const listVaultTokens = defineOperation(
  {
    id: 'listVaultTokens',
    tool: 'svc_list_vault_tokens',
    method: 'get',
    path: '/vaults/{id}/tokens',
    tag: 'Vaults',
    summary: 'List the tokens of a vault',
    description: "Tokens of the vault's mandate that its on-chain allowlist admits, with the oracle's prices.",
    params: vaultParams,
    remembered: true,
    status: 200,
    output: vaultTokens,
    errors: [400, 404, 500, 502],
  },
  async ({ chain }, { id }) => {
    const { block, market } = await readMarket(chain)
    const vault = findVault(market, id)
    const allowed = market.tokens.filter(({ address }) => market.allows(vault.address, address))
    const tokens = allowed.map(token => ({
      ...presentToken(token, vaultIdsOf(market, token.address), market.quoteIn(token.address, vault)),
      allowedInVault: true,
    }))
    return {
      vaultId: catalogVault(vault).slug,
      chainId: chain.id,
      priceOracle: chain.contracts.PriceOracle,
      tokens,
      total: tokens.length,
      asOf: presentBlock(block),
    }
  },
)
