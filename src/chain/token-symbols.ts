import { findSymbol } from '@agent-trading-service/protocol/find-symbol'
import { nearestName } from '@agent-trading-service/protocol/nearest-name'
import type { Address } from 'viem'
import { refuse } from '../errors/refuse.ts'
import type { Chain } from './configured-chain.ts'
import { call, optional, readTree, untrusted } from './read-tree.ts'
import { readVaultsAndTokens, type Token, tokenMetadataAbi } from './read-vaults-and-tokens.ts'

/**
 * Returns a function from a token to its symbol, for tokens or what has one. Symbols that are not configured are read
 * from the token contracts, once. A token without a symbol is named by its address.
 */
export async function symbolsOf(
  chain: Chain,
  tokens: readonly (Address | { token: Address })[],
): Promise<(token: Address) => string> {
  const { symbols } = chain.memory
  const addresses = tokens.map(each => (typeof each === 'string' ? each : each.token))
  const unknown = [...new Set(addresses)].filter(token => !symbols.has(token))
  if (unknown.length > 0) {
    const { values } = await readTree(
      chain,
      unknown.map(address => ({
        address,
        symbol: untrusted(optional(call({ address, abi: tokenMetadataAbi }, 'symbol', []))),
      })),
    )
    for (const { address, symbol = address } of values) symbols.set(address, symbol)
  }
  return token => symbols.get(token) ?? token
}

/** Returns the address of a token by its symbol in any case, from configuration or registry. Throws UNKNOWN_SYMBOL. */
export async function tokenBySymbol(chain: Chain, symbol: string): Promise<Address> {
  const [token] = await tokensBySymbols(chain, [symbol])
  return token as Address
}

/** Returns the addresses of tokens in the order of their symbols, with at most one read. Throws UNKNOWN_SYMBOL. */
export async function tokensBySymbols(chain: Chain, symbols: readonly string[]): Promise<Address[]> {
  const known = Object.entries(chain.tokens).map(([symbol, address]) => ({ symbol, address }))
  const configured = symbols.map(symbol => findSymbol(known, symbol)?.address)
  if (!configured.includes(undefined)) return configured as Address[]
  const { registered } = await readVaultsAndTokens(chain)
  return symbols.map((symbol, index) => {
    const token = configured[index] ?? findSymbol(registered.tokens, symbol)?.address
    if (token === undefined)
      throw refuse('UNKNOWN_SYMBOL', { symbol, nearest: nearestSymbol(symbol, registered.tokens) })
    return token
  })
}

/** Returns the symbol that a caller most likely meant, by symbol or by the name of the token. */
function nearestSymbol(given: string, tokens: readonly Token[]): string | undefined {
  const symbols = tokens.map(({ symbol }) => symbol)
  const name = nearestName(
    given,
    tokens.map(({ name }) => name),
  )
  return nearestName(given, symbols) ?? tokens.find(token => token.name === name)?.symbol
}
