import { bytesToHex, type Hex, hexToBytes } from 'viem'
import { keccak256 } from '../crypto/keccak256.ts'
import type { LogFilter, NodeLog } from './requests.ts'

const BLOOM_BYTES = 256
const BLOOM_HEX_LENGTH = '0x'.length + 2 * BLOOM_BYTES

/** The bits of values that filters name again and again: the contracts and events that are followed. */
const knownBits = new Map<Hex, readonly number[]>()
const MAX_KNOWN = 1_000

/** Returns the three bits that a value sets in a bloom filter (Ethereum's yellow paper, section 4.3.1). */
function bitsOf(value: Hex): readonly number[] {
  const known = knownBits.get(value)
  if (known) return known
  const bits = computeBits(value)
  if (knownBits.size >= MAX_KNOWN) knownBits.clear()
  knownBits.set(value, bits)
  return bits
}

function computeBits(value: Hex): readonly number[] {
  const hash = keccak256(hexToBytes(value))
  return [0, 2, 4].map(at => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) % (8 * BLOOM_BYTES))
}

/** Returns the place of a bit in the bytes of a filter. */
const placeOf = (bit: number) => ({ byte: BLOOM_BYTES - 1 - (bit >> 3), mask: 1 << (bit & 7) })

/** Returns whether logs are all of a block's: their filter is the one in its header, which must be valid. */
export function areAllLogs(bloom: Hex | null | undefined, logs: readonly NodeLog[]): boolean {
  const bytes = new Uint8Array(BLOOM_BYTES)
  for (const value of new Set(logs.flatMap(({ address, topics }) => [address, ...topics])))
    for (const { byte, mask } of computeBits(value).map(placeOf)) bytes[byte] = (bytes[byte] ?? 0) | mask
  return bytesToHex(bytes) === bloom?.toLowerCase()
}

export const hasBloom = (bloom: Hex | null | undefined): bloom is Hex => bloom?.length === BLOOM_HEX_LENGTH

/**
 * Returns whether a block may have logs that a filter selects. `bloom` is the filter in the block's header; without a
 * valid one, every block may have some.
 */
export function mayHaveLogs(bloom: Hex | null | undefined, { address, topics }: LogFilter): boolean {
  if (!hasBloom(bloom)) return true
  const bytes = hexToBytes(bloom)
  const isSet = (bit: number) => {
    const { byte, mask } = placeOf(bit)
    return ((bytes[byte] ?? 0) & mask) !== 0
  }
  const mayContainOne = (values: readonly Hex[]) => values.some(value => bitsOf(value).every(isSet))
  return [address, ...topics].every(choice => choice === null || mayContainOne([choice].flat() as Hex[]))
}
