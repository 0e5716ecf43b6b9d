import { type Address, type Hex, hexToBytes } from 'viem'
import { ORDER } from './secp256k1-implementation.ts'
import { recoverAddress } from './sign-and-recover.ts'

/** The signer of a signature; null if there is none. `problem` says what is wrong if it is not the expected one. */
export type RecoveredSigner = { address: Address | null; problem: string }

/** Recovers the signer of a 65-byte signature in its canonical form (low s, v 27 or 28), as the contracts do. */
export function recoverSigner(digest: Hex, signature: Hex): RecoveredSigner {
  const bytes = hexToBytes(signature)
  if (bytes.length !== 65) return { address: null, problem: `it has ${bytes.length} bytes; a key signs 65 (r, s, v)` }
  const v = bytes[64] ?? 0
  if (v === 0 || v === 1) return { address: null, problem: `its v is ${v}; add 27` }
  if (v !== 27 && v !== 28) return { address: null, problem: `its v is ${v}, not 27 or 28` }
  if (BigInt(`0x${signature.slice(66, 130)}`) > ORDER / 2n)
    return { address: null, problem: 'its s is in the upper half of the curve order' }
  const address = recoverAddress(digest, signature)
  if (address === undefined) return { address: null, problem: 'it is not a point of the curve' }
  return { address, problem: `it was made by ${address} for other values, or by another key` }
}
