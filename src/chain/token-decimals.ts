import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'
import { tokenRegistry } from './contracts.ts'
import { call, readTree } from './read-tree.ts'

/**
 * Returns a function for the decimals of tokens, after reading those that are not known yet. Throws CHAIN_UNREACHABLE.
 */
export async function readDecimals(chain: Chain, tokens: Iterable<Address>): Promise<(token: Address) => number> {
  const { decimals } = chain.memory
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
