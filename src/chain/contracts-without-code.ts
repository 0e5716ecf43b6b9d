import type { Address } from 'viem'
import { unreachable } from '../rpc/node-errors.ts'
import { chainIdRequest, codeRequest } from '../rpc/requests.ts'
import type { Chain } from './configured-chain.ts'

/**
 * Returns the names of the configured contracts that have no code on the chain, from one JSON-RPC batch. Code never
 * disappears, so it is read once. Throws CHAIN_UNREACHABLE.
 */
export async function contractsWithoutCode({ id, rpc, contracts, trading, memory }: Chain): Promise<string[]> {
  const known = memory.contractsWithCode
  const { ServiceReader: _, ...needed } = contracts // reads work without it
  const unchecked = Object.entries({ ...needed, ...trading }).filter(
    (entry): entry is [string, Address] => entry[1] !== undefined && !known.has(entry[0]),
  )
  if (unchecked.length === 0) return []
  // A node of another chain is passed over.
  const [, ...responses] = await rpc.batch(
    [chainIdRequest, ...unchecked.map(([, address]) => codeRequest(address))],
    ([chainId, ...responses]) => Number(chainId?.result) === id && responses.every(({ error }) => error === undefined),
  )
  return unchecked.flatMap(([name], index) => {
    const code = responses[index]?.result
    if (code === undefined) throw unreachable('the node returned no code')
    if (code === '0x') return [name]
    known.add(name)
    return []
  })
}
