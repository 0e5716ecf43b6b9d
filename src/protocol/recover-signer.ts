import { invert } from '@noble/curves/abstract/modular'
import { secp256k1 } from '@noble/curves/secp256k1'
import { type Address, bytesToHex, type Hex, hexToBigInt, hexToBytes, recoverAddress } from 'viem'
import { publicKeyToAddress } from 'viem/accounts'

const { ProjectivePoint: Point, CURVE } = secp256k1
const ORDER = CURVE.n

/** The signer of a signature; null if there is none. `problem` says what is wrong if it is not the expected one. */
export type RecoveredSigner = { address: Address | null; problem: string }

/** Recovers the signer of a 65-byte signature in its canonical form (low s, v 27 or 28), as the contracts do. */
export async function recoverSigner(digest: Hex, signature: Hex): Promise<RecoveredSigner> {
  const bytes = hexToBytes(signature)
  if (bytes.length !== 65) return { address: null, problem: `it has ${bytes.length} bytes; a key signs 65 (r, s, v)` }
  const v = bytes[64] ?? 0
  if (v === 0 || v === 1) return { address: null, problem: `its v is ${v}; add 27` }
  if (v !== 27 && v !== 28) return { address: null, problem: `its v is ${v}, not 27 or 28` }
  if (BigInt(`0x${signature.slice(66, 130)}`) > ORDER / 2n)
    return { address: null, problem: 'its s is in the upper half of the curve order' }
  try {
    const address = await recoverAddress({ hash: digest, signature })
    return { address, problem: `it was made by ${address} for other values, or by another key` }
  } catch {
    return { address: null, problem: 'it is not a point of the curve' }
  }
}

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
