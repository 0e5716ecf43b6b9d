import { invert } from '@noble/curves/abstract/modular'
import { secp256k1 } from '@noble/curves/secp256k1'
import { type Address, bytesToHex, type Hex, hexToBigInt } from 'viem'
import { publicKeyToAddress } from 'viem/accounts'

const { ProjectivePoint: Point, CURVE } = secp256k1
const ORDER = CURVE.n

/**
 * Returns a function that recovers the signer of a canonical 65-byte signature for a digest. It is fast for many digests:
 * recovery is Q = r⁻¹(sR − eG), of which only eG depends on the digest e. Returns undefined if the signature is not a
 * point of the curve; the function returns undefined for a digest that recovers to no key.
 */
export function signerRecovery(signature: Hex): ((digest: Hex) => Address | undefined) | undefined {
  const r = hexToBigInt(`0x${signature.slice(2, 66)}`)
  const s = hexToBigInt(`0x${signature.slice(66, 130)}`)
  const pointPrefix = signature.endsWith('1c') ? '03' : '02'
  if (r === 0n || r >= ORDER || s === 0n || s >= ORDER) return undefined
  try {
    const rInverse = invert(r, ORDER)
    const constant = Point.fromHex(`${pointPrefix}${signature.slice(2, 66)}`).multiply((s * rInverse) % ORDER)
    return digest => {
      const factor = (hexToBigInt(digest) * rInverse) % ORDER
      const key = factor === 0n ? constant : constant.subtract(Point.BASE.multiply(factor))
      return key.equals(Point.ZERO) ? undefined : publicKeyToAddress(bytesToHex(key.toRawBytes(false)))
    }
  } catch {
    return undefined
  }
}
