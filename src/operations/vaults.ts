import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { z } from 'zod'
import { findVault } from '../chain/find-vault.ts'
import { readVaultsAndTokens, type VaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import type { HistoryContext } from '../history/client.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { briefToken, presentToken, vaultTokens } from '../resources/token.ts'
import { briefVault, presentVault, vaultList, vaultResponse } from '../resources/vault.ts'
import { vaultsMarkdown } from '../resources/vault-markdown.ts'
import { defineOperation } from './define-operation.ts'

export const vaultParams = z.object({
  id: z.string().min(1).max(128).meta({ description: 'Slug or contract address of the vault', example: 'genesis' }),
})

/** Returns the slugs of the vaults that allow a token. */
export const vaultIdsOf = ({ vaults, allows }: VaultsAndTokens, token: `0x${string}`): string[] =>
  vaults.filter(vault => allows(vault.address, token)).map(vault => vaultSlug(vault))

export const listVaults = defineOperation(
  {
    id: 'listVaults',
    tool: {
      name: 'svc_list_vaults',
      description:
        'Lists the vaults with what the first track allows; detail "full" adds all tracks. Start here: svc_list_vault_tokens takes the id, a registration the contractAddress.',
      brief: { list: 'vaults', entry: briefVault },
    },
    resource: {
      uri: 'svc://vaults',
      name: 'vaults',
      title: 'Vaults',
      description: 'The full output of svc_list_vaults: every vault with the risk policy of its tracks.',
    },
    path: '/vaults',
    tag: 'Vaults',
    summary: 'List vaults',
    description:
      'Returns every registered vault with the risk policy of its tracks. Over HTTP, `format=md` (or `Accept: text/markdown`) returns Markdown.',
    markdown: vaultsMarkdown,
    cache: 'isolate',
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
      description: 'Returns one vault with the risk policy of its tracks. Example: {"id":"genesis"}',
    },
    path: '/vaults/{id}',
    tag: 'Vaults',
    summary: 'Get a vault',
    description: 'Returns a vault, by slug or contract address, with the risk policy of its tracks.',
    params: vaultParams,
    cache: 'isolate',
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
        'Lists the tokens that may be traded in a vault, with prices in US dollars. Purchases take the symbol. detail "full" adds addresses and markets. Example: {"id":"genesis"}',
      brief: { list: 'tokens', entry: briefToken },
    },
    path: '/vaults/{id}/tokens',
    tag: 'Vaults',
    summary: 'List the tokens of a vault',
    description: "Returns the tokens that the vault's on-chain allowlist admits, with their oracle prices.",
    params: vaultParams,
    cache: 'isolate',
    output: vaultTokens,
    errors: [404, 502],
  },
  async ({ chain, history }: HistoryContext, { id }) => {
    const { block, registered } = await readVaultsAndTokens(chain)
    const vault = findVault(registered, id)
    const allowed = registered.tokens.filter(({ address }) => registered.allows(vault.address, address))
    const dayBefore = await history.pricesDayBefore(
      allowed.map(({ address }) => address),
      block.timestamp,
    )
    const tokens = allowed.map(token => ({
      ...presentToken(
        token,
        vaultIdsOf(registered, token.address),
        registered.quoteIn(token.address, vault),
        dayBefore,
      ),
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
