import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'
import { tokenRegistry } from './contracts.ts'
import { call, readTree } from './read-tree.ts'

/** Decimals of traded tokens by the configured contracts. They never change. */
const decimalsByContracts = new WeakMap<object, Map<Address, number>>()

/** Returns the decimals that are known, by token. The caller adds what it reads. */
export function knownDecimals({ contracts }: Chain): Map<Address, number> {
  const decimals = decimalsByContracts.get(contracts) ?? new Map<Address, number>()
  decimalsByContracts.set(contracts, decimals)
  return decimals
}

/** Returns a function for the decimals of tokens, after reading those that are not known yet. Throws CHAIN_UNREACHABLE. */
export async function readDecimals(chain: Chain, tokens: Iterable<Address>): Promise<(token: Address) => number> {
  const decimals = knownDecimals(chain)
  const unknown = [...new Set(tokens)].filter(token => !decimals.has(token))
  if (unknown.length > 0) {
    const { values } = await readTree(
      chain,
      unknown.map(token => ({ token, decimals: call(tokenRegistry(chain), 'tokenDecimals', [token]) })),
    )
    for (const { token, decimals: read } of values) decimals.set(token, read)
  }
  return token => {
    const known = decimals.get(token)
    if (known === undefined) throw new Error(`The decimals of ${token} were not read.`)
    return known
  }
}
