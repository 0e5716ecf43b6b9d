import { type Address, type Hex, hexToBytes, parseAbi, recoverAddress } from 'viem'
import { refuse } from '../errors.ts'
import { type Chain, maybe, read } from './client.ts'

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const ERC1271_MAGIC = '0x1626ba7e'
const erc1271Abi = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])

/**
 * Holds a signature against its signer, as the contracts do: ECDSA first, without a call, then ERC-1271, with one.
 * A malleable form (high s, v other than 27 or 28) is refused, since the contracts refuse it.
 * Throws INVALID_SIGNATURE with the problem in words.
 */
export async function verifySignature(chain: Chain, signer: Address, digest: Hex, signature: Hex): Promise<void> {
  const verdict = await recover(digest, signature)
  if (verdict.address === signer) return
  const { results } = await read(chain, [
    { address: signer, abi: erc1271Abi, functionName: 'isValidSignature', args: [digest, signature] },
  ] as const)
  if (maybe(results[0]) === ERC1271_MAGIC) return
  throw refuse('INVALID_SIGNATURE', { problem: verdict.problem, signer, recovered: verdict.address, digest })
}

type Verdict = { address: Address | null; problem: string }

/** Recovers the address of a canonical 65-byte signature, or says why there is none. */
export async function recover(digest: Hex, signature: Hex): Promise<Verdict> {
  const bytes = hexToBytes(signature)
  if (bytes.length !== 65) return { address: null, problem: `it has ${bytes.length} bytes; a key signs 65 (r, s, v)` }
  const v = bytes[64] ?? 0
  if (v === 0 || v === 1) return { address: null, problem: `its v is ${v}; add 27` }
  if (v !== 27 && v !== 28) return { address: null, problem: `its v is ${v}, not 27 or 28` }
  if (BigInt(`0x${signature.slice(66, 130)}`) > HALF_ORDER)
    return { address: null, problem: 'its s is in the upper half of the curve order' }
  try {
    const address = await recoverAddress({ hash: digest, signature })
    return { address, problem: `it was made by ${address} for other values, or by another key` }
  } catch {
    return { address: null, problem: 'it is not a point of the curve' }
  }
}
