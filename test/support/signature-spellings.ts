import { concat, encodeAbiParameters, type Hex, parseAbiParameters, slice } from 'viem'

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const MAGIC: Hex = `0x${'6492'.repeat(16)}`

const word = (value: bigint): Hex => `0x${value.toString(16).padStart(64, '0')}`
const partsOf = (signature: Hex) => {
  const [r, s, v] = [slice(signature, 0, 32), BigInt(slice(signature, 32, 64)), Number(slice(signature, 64))]
  return { r, s, v }
}

/** The forms in which wallets return a key's signature, besides the one of the contracts. */
export const spellings = {
  'v of 0 or 1': (signature: Hex): Hex => {
    const { r, s, v } = partsOf(signature)
    return concat([r, word(s), v === 27 ? '0x00' : '0x01'])
  },
  's in the upper half': (signature: Hex): Hex => {
    const { r, s, v } = partsOf(signature)
    return concat([r, word(ORDER - s), v === 27 ? '0x1c' : '0x1b'])
  },
  's in the upper half and v of 0 or 1': (signature: Hex): Hex => {
    const { r, s, v } = partsOf(signature)
    return concat([r, word(ORDER - s), v === 27 ? '0x01' : '0x00'])
  },
  'the 64 bytes of EIP-2098': (signature: Hex): Hex => {
    const { r, s, v } = partsOf(signature)
    return concat([r, word(s | (v === 28 ? 1n << 255n : 0n))])
  },
  'upper-case hex': (signature: Hex): Hex => `0x${signature.slice(2).toUpperCase()}`,
  'an ERC-6492 wrapper': (signature: Hex): Hex => wrap(signature),
}

/** Wraps the signature of an account as wallets do that know how to deploy it (ERC-6492). */
export const wrap = (signature: Hex): Hex =>
  concat([
    encodeAbiParameters(parseAbiParameters('address, bytes, bytes'), [`0x${'fa'.repeat(20)}`, '0xdeadbeef', signature]),
    MAGIC,
  ])
