import { invert } from '@noble/curves/abstract/modular'
import { secp256k1 } from '@noble/curves/secp256k1'
import { type Address, bytesToHex, type Hex, hexToBigInt } from 'viem'
import { publicKeyToAddress } from 'viem/accounts'

const { ProjectivePoint: Point, CURVE } = secp256k1
const ORDER = CURVE.n

/**
 * Whose key made a signature, for many digests: recovery is Q = r⁻¹(sR − eG), of which only eG depends on the digest e.
 * Undefined when r is no point of the curve; the answer is undefined for a digest that recovers to no key.
 */
export function recoverer(signature: Hex): ((digest: Hex) => Address | undefined) | undefined {
  const r = hexToBigInt(`0x${signature.slice(2, 66)}`)
  const s = hexToBigInt(`0x${signature.slice(66, 130)}`)
  const parity = signature.endsWith('1c') ? '03' : '02'
  if (r === 0n || r >= ORDER || s === 0n || s >= ORDER) return undefined
  try {
    const rInverse = invert(r, ORDER)
    const constant = Point.fromHex(`${parity}${signature.slice(2, 66)}`).multiply((s * rInverse) % ORDER)
    return digest => {
      const factor = (hexToBigInt(digest) * rInverse) % ORDER
      const key = factor === 0n ? constant : constant.subtract(Point.BASE.multiply(factor))
      return key.equals(Point.ZERO) ? undefined : publicKeyToAddress(bytesToHex(key.toRawBytes(false)))
    }
  } catch {
    return undefined
  }
}
