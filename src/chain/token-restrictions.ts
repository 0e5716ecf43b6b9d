import {
  type TokenRestriction,
  toTokenRestriction,
  WHOLE_BALANCE,
} from '@agent-trading-service/protocol/token-restriction'
import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'
import { mandateVault, tokenRegistry } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'
import type { Token, Vault, VaultsAndTokens } from './read-vaults-and-tokens.ts'

/**
 * The calls that tell what keeps a vault from selling a token, within a tree of calls. The registry bounds the gas and
 * the return data of each call that it makes to the token and to its issuer.
 */
export const restrictionCalls = (chain: Chain, { token, vault }: { token: Address; vault: Address }) => ({
  restriction: optional(call(tokenRegistry(chain), 'restrictionOf', [token, vault, WHOLE_BALANCE])),
  ledger: optional(call(mandateVault(vault), 'tokenLedger', [token])),
})

/** A token that a vault holds or may buy and cannot sell, with what the vault's ledger says it holds (base units). */
export type RestrictedToken = {
  vault: Vault
  token: Pick<Token, 'address' | 'symbol'>
  restriction: TokenRestriction
  ledger: bigint
}

/** Far below the gas that nodes allow for a call, also if every token spends what the registry allows it. */
const PAIRS_PER_CALL = 64

/**
 * Reads which tokens the vaults cannot sell, and what keeps them from it; of their USDC, whether it is paused. Throws
 * CHAIN_UNREACHABLE.
 */
export async function readRestrictedTokens(
  chain: Chain,
  { vaults, tokens, allows }: Pick<VaultsAndTokens, 'vaults' | 'tokens' | 'allows'>,
): Promise<RestrictedToken[]> {
  const pairs = vaults.flatMap(vault =>
    [{ address: vault.asset, symbol: 'USDC' }, ...tokens.filter(({ address }) => allows(vault.address, address))].map(
      token => ({ vault, token }),
    ),
  )
  const pages = Array.from({ length: Math.ceil(pairs.length / PAIRS_PER_CALL) }, (_, page) =>
    pairs.slice(page * PAIRS_PER_CALL, (page + 1) * PAIRS_PER_CALL),
  )
  const read = await Promise.all(
    pages.map(async page => {
      const calls = page.map(({ vault, token }) =>
        restrictionCalls(chain, { token: token.address, vault: vault.address }),
      )
      const { values } = await readTree(chain, calls)
      return page.map((pair, index) => ({ ...pair, ...values[index] }))
    }),
  )
  return read.flat().flatMap(({ vault, token, restriction: answer, ledger = 0n }) => {
    const restriction = toTokenRestriction(answer, ledger)
    return restriction === undefined ? [] : [{ vault, token, restriction, ledger }]
  })
}
