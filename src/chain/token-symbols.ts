import type { Address } from 'viem'
import { refuse } from '../errors/catalogue.ts'
import { type Chain, maybe, read } from './chain.ts'
import { erc20Abi, readMarket } from './listings.ts'

/** Symbols learned from token contracts that the configuration does not name; a symbol never changes. */
const learned = new WeakMap<object, Map<Address, string>>()

/** Symbols of tokens by address: from the configuration, without a call, or else from the token contracts. */
export async function symbolsOf(chain: Chain, tokens: readonly Address[]): Promise<(token: Address) => string> {
  const known =
    learned.get(chain.contracts) ?? new Map(Object.entries(chain.tokens).map(([symbol, at]) => [at, symbol]))
  learned.set(chain.contracts, known)
  const missing = [...new Set(tokens)].filter(token => !known.has(token))
  if (missing.length > 0) {
    const calls = missing.map(address => ({ address, abi: erc20Abi, functionName: 'symbol' }) as const)
    const { results } = await read(chain, calls)
    for (const [index, token] of missing.entries()) known.set(token, maybe(results[index] as never) ?? token)
  }
  return token => known.get(token) ?? token
}

/**
 * The address of a token by its symbol, from the configuration or else from the token registry.
 * Throws UNKNOWN_SYMBOL.
 */
export async function tokenBySymbol(chain: Chain, symbol: string): Promise<Address> {
  const configured = Object.hasOwn(chain.tokens, symbol) ? chain.tokens[symbol] : undefined
  if (configured !== undefined) return configured
  const { market } = await readMarket(chain)
  const token = market.tokens.find(candidate => candidate.symbol === symbol)
  if (token === undefined) throw refuse('UNKNOWN_SYMBOL', { symbol })
  return token.address
}
