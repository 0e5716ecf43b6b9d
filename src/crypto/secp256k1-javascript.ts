import { secp256k1 } from '@noble/curves/secp256k1'
import { assertLength, type Secp256k1 } from './secp256k1-implementation.ts'

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
