import type { Address } from 'viem'
import { type Chain, unreachable } from './client.ts'

// Code does not leave an address again: what was found once is not asked for.
const found = new WeakMap<object, Set<string>>()

/** Names of the configured contracts that have no code on the chain. Throws CHAIN_UNREACHABLE. */
export async function contractsWithoutCode({ client, contracts, trading }: Chain): Promise<string[]> {
  const known = found.get(contracts) ?? new Set()
  found.set(contracts, known)
  const unseen = Object.entries({ ...contracts, ...trading }).filter(
    (entry): entry is [string, Address] => entry[1] !== undefined && !known.has(entry[0]),
  )
  const codes = await Promise.all(unseen.map(([, address]) => client.getCode({ address }))).catch(error => {
    throw unreachable(error)
  })
  for (const [index, [name]] of unseen.entries()) if (codes[index] !== undefined) known.add(name)
  return unseen.flatMap(([name], index) => (codes[index] === undefined ? [name] : []))
}
