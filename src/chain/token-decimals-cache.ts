import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'

/** Decimals of traded tokens by the configured contracts. They never change. */
const decimalsByContracts = new WeakMap<object, Map<Address, number>>()

/** Returns the decimals that are known, by token. The caller adds what it reads. */
export function knownDecimals({ contracts }: Chain): Map<Address, number> {
  const decimals = decimalsByContracts.get(contracts) ?? new Map<Address, number>()
  decimalsByContracts.set(contracts, decimals)
  return decimals
}

/** Records decimals that another read returned, so that they need not be read again. */
export function learnDecimals(chain: Chain, tokens: readonly { address: Address; decimals: number }[]): void {
  const decimals = knownDecimals(chain)
  for (const token of tokens) decimals.set(token.address, token.decimals)
}
