import type { Address } from 'viem'
import { codeRequest } from '../rpc/requests.ts'
import type { Chain } from './chain.ts'

// Code does not leave an address again: what was found once is not asked for.
const found = new WeakMap<object, Set<string>>()

/** Names of the configured contracts that have no code on the chain. Throws CHAIN_UNREACHABLE. */
export async function contractsWithoutCode({ rpc, contracts, trading }: Chain): Promise<string[]> {
  const known = found.get(contracts) ?? new Set()
  found.set(contracts, known)
  const unseen = Object.entries({ ...contracts, ...trading }).filter(
    (entry): entry is [string, Address] => entry[1] !== undefined && !known.has(entry[0]),
  )
  const missing: string[] = []
  await Promise.all(
    unseen.map(async ([name, address]) => {
      if ((await rpc.read(codeRequest(address))) === '0x') missing.push(name)
      else known.add(name)
    }),
  )
  return missing
}
