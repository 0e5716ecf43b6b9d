import { type Address, bytesToHex, checksumAddress, type Hex, hexToBytes } from 'viem'
import { keccak256 } from './keccak256.ts'
import { secp256k1 } from './secp256k1.ts'

/** Returns the address that signed a hash; undefined if there is none. The signature has 65 bytes: r, s, v (27 or 28). */
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
