import { secp256k1 } from '@noble/curves/secp256k1'

/** The order of the curve. */
export const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

/**
 * ECDSA over secp256k1. Hashes and private keys have 32 bytes, signatures 64 (r, s) and public keys 65 (0x04, x, y);
 * other lengths throw.
 */
export type Secp256k1 = {
  name: 'JavaScript' | 'WebAssembly'
  /** Returns the public key of a signature; undefined if there is none. Accepts s in the upper half of the order. */
  recover(hash: Uint8Array, signature: Uint8Array, yParity: 0 | 1): Uint8Array | undefined
  /**
   * Signs with the nonce of RFC 6979 and s in the lower half of the order. Throws if the key is not below the order.
   */
  sign(hash: Uint8Array, privateKey: Uint8Array): { signature: Uint8Array; yParity: 0 | 1 }
  /** Returns the public key of a private key. Throws if the key is not below the order. */
  publicKeyOf(privateKey: Uint8Array): Uint8Array
}

/** Throws a RangeError if a value does not have its length. Its content is not part of the message. */
export function assertLength(what: 'hash' | 'signature' | 'private key', bytes: Uint8Array, length: number): void {
  if (bytes.length !== length) throw new RangeError(`The ${what} has ${bytes.length} bytes, not ${length}`)
}

/** The implementation of @noble/curves: the reference, and what scripts and the command line use. */
export const javascript: Secp256k1 = {
  name: 'JavaScript',
  recover(hash, signature, yParity) {
    assertLength('hash', hash, 32)
    assertLength('signature', signature, 64)
    try {
      const parsed = secp256k1.Signature.fromCompact(signature).addRecoveryBit(yParity)
      return parsed.recoverPublicKey(hash).toRawBytes(false)
    } catch {
      return undefined
    }
  },
  sign(hash, privateKey) {
    assertLength('hash', hash, 32)
    assertLength('private key', privateKey, 32)
    const signature = secp256k1.sign(hash, privateKey, { lowS: true })
    return { signature: signature.toCompactRawBytes(), yParity: signature.recovery === 1 ? 1 : 0 }
  },
  publicKeyOf(privateKey) {
    assertLength('private key', privateKey, 32)
    return secp256k1.getPublicKey(privateKey, false)
  },
}
