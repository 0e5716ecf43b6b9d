import {
  blockOf,
  type TokenRestriction,
  toTokenRestriction,
  WHOLE_BALANCE,
} from '@agent-trading-service/protocol/token-restriction'
import { type Address, isAddressEqual, parseAbi } from 'viem'
import { batchesOf } from '../concurrency.ts'
import type { Chain } from './configured-chain.ts'
import { mandateVault, tokenRegistry } from './contracts.ts'
import { call, optional, readTree, untrusted } from './read-tree.ts'
import type { Token, Vault, VaultsAndTokens } from './read-vaults-and-tokens.ts'

/**
 * The calls that tell what keeps a vault from selling a token, within a tree of calls. The registry bounds the gas and
 * the return data of each call that it makes to the token and to its issuer.
 */
export const restrictionCalls = (chain: Chain, { token, vault }: { token: Address; vault: Address }) => ({
  restriction: optional(call(tokenRegistry(chain), 'restrictionOf', [token, vault, WHOLE_BALANCE])),
  ledger: optional(call(mandateVault(vault), 'tokenLedger', [token])),
})

/** The block lists of dollars: USDC's and that of USDG. A dollar has one of them, or none. */
const blockListAbi = parseAbi([
  'function isBlacklisted(address account) view returns (bool)',
  'function isFrozen(address account) view returns (bool)',
])

/** The accounts whose block by the dollar's issuer stops a vault's trades. */
const dollarPathOf = ({ contracts }: Chain, vault: Address) => [
  vault,
  ...(contracts.SwapAdapter ? [contracts.SwapAdapter] : []),
]

/** The calls that tell whether the issuer of a dollar blocks accounts, within a tree of calls. */
const dollarBlockCalls = (dollar: Address, accounts: readonly Address[]) =>
  accounts.map(account => ({
    account,
    usdc: untrusted(optional(call({ address: dollar, abi: blockListAbi }, 'isBlacklisted', [account]))),
    usdg: untrusted(optional(call({ address: dollar, abi: blockListAbi }, 'isFrozen', [account]))),
  }))

type DollarBlockValues = readonly { account: Address; usdc: boolean | undefined; usdg: boolean | undefined }[]

const blockIn = (values: DollarBlockValues): TokenRestriction | undefined => {
  const blocked = values.find(({ usdc, usdg }) => usdc || usdg)
  return blocked && blockOf(blocked.account)
}

/** Reads whether the dollar's issuer blocks what a vault's trades pass; undefined if not. Throws CHAIN_UNREACHABLE. */
export async function readDollarBlock(
  chain: Chain,
  { vault, dollar }: { vault: Address; dollar: Address },
): Promise<TokenRestriction | undefined> {
  const { values } = await readTree(chain, dollarBlockCalls(dollar, dollarPathOf(chain, vault)))
  return blockIn(values)
}

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
 * Reads which tokens the vaults cannot sell, and what keeps them from it; of their USDC, whether it is paused or
 * blocked. Throws CHAIN_UNREACHABLE.
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
  const read = await Promise.all(
    batchesOf(pairs, PAIRS_PER_CALL).map(async page => {
      const calls = page.map(({ vault, token }) => ({
        ...restrictionCalls(chain, { token: token.address, vault: vault.address }),
        blocks: isDollar({ vault, token })
          ? dollarBlockCalls(token.address, dollarPathOf(chain, vault.address))
          : undefined,
      }))
      const { values } = await readTree(chain, calls)
      return page.map((pair, index) => ({ ...pair, ...values[index] }))
    }),
  )
  return read.flat().flatMap(({ vault, token, restriction: answer, ledger = 0n, blocks = [] }) => {
    const restriction = toTokenRestriction(answer, ledger) ?? blockIn(blocks)
    return restriction === undefined ? [] : [{ vault, token, restriction, ledger }]
  })
}

/** Whether a restricted token is the dollar of the vault, which the vault pays rather than sells. */
export const isDollar = ({ vault, token }: Pick<RestrictedToken, 'vault' | 'token'>): boolean =>
  isAddressEqual(token.address, vault.asset)
