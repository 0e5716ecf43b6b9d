import type { Address } from 'viem'
import { codeRequest } from '../rpc/requests.ts'
import type { Chain } from './configured-chain.ts'

/** Names of contracts whose code was found, by the configured contracts. Code never disappears, so it is read once. */
const found = new WeakMap<object, Set<string>>()

/** Returns the names of the configured contracts that have no code on the chain. Throws CHAIN_UNREACHABLE. */
export async function contractsWithoutCode({ rpc, contracts, trading }: Chain): Promise<string[]> {
  const known = found.get(contracts) ?? new Set()
  found.set(contracts, known)
  const unchecked = Object.entries({ ...contracts, ...trading }).filter(
    (entry): entry is [string, Address] => entry[1] !== undefined && !known.has(entry[0]),
  )
  const checked = await Promise.all(
    unchecked.map(async ([name, address]) => ({ name, hasCode: (await rpc.read(codeRequest(address))) !== '0x' })),
  )
  for (const { name, hasCode } of checked) if (hasCode) known.add(name)
  return checked.filter(({ hasCode }) => !hasCode).map(({ name }) => name)
}
