import { type Hex, isErc6492Signature, parseErc6492Signature } from 'viem'

/** The order of secp256k1. */
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const EIP_2098_PARITY = 1n << 255n

/** A signature without its wrapper, in every form that a contract may accept. */
type SignatureForms = {
  /** The form that a key's signature must have, then the one that was sent; a single one if they are the same. */
  forms: readonly [Hex, ...Hex[]]
  /** Whether it came in an ERC-6492 wrapper, which carries the deployment of its account. */
  isWrapped: boolean
}

/**
 * Returns the forms of a signature. The digest that was signed does not depend on them, but contracts accept only one:
 * 65 bytes (r, s, v) with v of 27 or 28 and s in the lower half of the order. Wallets also send v of 0 or 1 (Ledger,
 * MPC), s in the upper half (key management services), the 64 bytes of EIP-2098, and ERC-6492 wrappers (smart
 * accounts). An account with code may give the same bytes another meaning, as a Safe does, so they are kept as a second
 * form.
 */
export function formsOf(given: Hex): SignatureForms {
  const { signature, isWrapped } = unwrap(given.toLowerCase() as Hex)
  const canonical = canonicalForm(signature)
  return { forms: canonical === undefined || canonical === signature ? [signature] : [canonical, signature], isWrapped }
}

/** Removes an ERC-6492 wrapper (ABI-encoded factory, its calldata and the signature, then 32 magic bytes). */
function unwrap(signature: Hex): { signature: Hex; isWrapped: boolean } {
  if (!isErc6492Signature(signature)) return { signature, isWrapped: false }
  try {
    return { signature: parseErc6492Signature(signature).signature.toLowerCase() as Hex, isWrapped: true }
  } catch {
    return { signature, isWrapped: false }
  }
}

/** Returns a key's signature in the form that contracts accept; undefined if it is none. */
function canonicalForm(signature: Hex): Hex | undefined {
  const parts =
    signature.length === 132 ? fromBytes(signature) : signature.length === 130 ? fromCompact(signature) : undefined
  if (parts === undefined || parts.s >= ORDER) return undefined
  const isHigh = parts.s > ORDER / 2n
  const s = isHigh ? ORDER - parts.s : parts.s
  const v = 27 + (isHigh ? 1 - parts.parity : parts.parity)
  return `${signature.slice(0, 66)}${s.toString(16).padStart(64, '0')}${v.toString(16)}` as Hex
}

type Parts = { s: bigint; parity: number }

function fromBytes(signature: Hex): Parts | undefined {
  const v = Number.parseInt(signature.slice(130), 16)
  const parity = v >= 27 ? v - 27 : v
  return parity > 1 ? undefined : { s: BigInt(`0x${signature.slice(66, 130)}`), parity }
}

/** Parses the 64 bytes of EIP-2098, which carry the parity in the top bit of s. */
function fromCompact(signature: Hex): Parts {
  const word = BigInt(`0x${signature.slice(66)}`)
  return { s: word & (EIP_2098_PARITY - 1n), parity: word < EIP_2098_PARITY ? 0 : 1 }
}
