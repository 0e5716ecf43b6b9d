import { type Address, bytesToHex, checksumAddress, type Hex, hexToBytes } from 'viem'
import { keccak256 } from './keccak256.ts'
import { javascript, ORDER } from './secp256k1-javascript.ts'
import { instantiateWebAssembly } from './secp256k1-webassembly.ts'
import { webAssemblyOrJavaScript } from './webassembly-or-javascript.ts'

export const { provideWebAssembly, current: secp256k1 } = webAssemblyOrJavaScript(instantiateWebAssembly, javascript)

/** The signer of a signature; null if there is none. `problem` explains a signer other than the expected one. */
type RecoveredSigner = { address: Address | null; problem: string }

/** Recovers the signer of a 65-byte signature in its canonical form (low s, v 27 or 28), as the contracts do. */
export function recoverSigner(digest: Hex, signature: Hex): RecoveredSigner {
  const bytes = hexToBytes(signature)
  if (bytes.length !== 65) return { address: null, problem: `it has ${bytes.length} bytes; a key signs 65 (r, s, v)` }
  const v = bytes[64] ?? 0
  if (v !== 27 && v !== 28) return { address: null, problem: `its v is ${v}, not 27 or 28` }
  if (BigInt(`0x${signature.slice(66, 130)}`) > ORDER / 2n)
    return { address: null, problem: 'its s is in the upper half of the curve order' }
  const address = recoverAddress(digest, signature)
  if (address === undefined) return { address: null, problem: 'it is not a point of the curve' }
  return { address, problem: `it was made by ${address} for other values, or by another key` }
}

/**
 * Returns the address that signed a hash; undefined if there is none. The signature has 65 bytes: r, s, v (27 or 28).
 */
export function recoverAddress(hash: Hex, signature: Hex): Address | undefined {
  const bytes = hexToBytes(signature)
  const v = bytes[64]
  if (bytes.length !== 65 || (v !== 27 && v !== 28)) return undefined
  const publicKey = secp256k1().recover(hexToBytes(hash), bytes.subarray(0, 64), v === 28 ? 1 : 0)
  return publicKey && addressOfPublicKey(publicKey)
}

/** Signs a hash. Throws if the key is not one of secp256k1. */
export function signHash(hash: Hex, privateKey: Hex): { r: Hex; s: Hex; yParity: 0 | 1 } {
  const { signature, yParity } = secp256k1().sign(hexToBytes(hash), hexToBytes(privateKey))
  return { r: bytesToHex(signature.subarray(0, 32)), s: bytesToHex(signature.subarray(32)), yParity }
}

/** Returns the address of a private key. Throws if the key is not one of secp256k1. */
export const addressOfPrivateKey = (privateKey: Hex): Address =>
  addressOfPublicKey(secp256k1().publicKeyOf(hexToBytes(privateKey)))

const addressOfPublicKey = (publicKey: Uint8Array): Address =>
  checksumAddress(bytesToHex(keccak256(publicKey.subarray(1)).subarray(12)))
