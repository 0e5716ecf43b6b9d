import type { Address } from 'viem'
import type { Call } from '../call.ts'

/**
 * Counts a new message of an agent's signer or owner against the limit of that account, and raises the limits of the address
 * that it comes from; waiting for the chain takes nobody's turn. Repeated bodies must not get here: anybody can repeat one that is on the chain. A message that lets
 * somebody out is not counted. Throws RATE_LIMITED.
 */
export async function countSigner({ client }: Call, signer: Address, { getsOut }: { getsOut: boolean }): Promise<void> {
  client?.raise(signer)
  client?.leave()
  if (!getsOut) await client?.countSigner(signer)
}
