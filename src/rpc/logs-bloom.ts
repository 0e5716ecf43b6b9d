import { type Hex, hexToBytes } from 'viem'
import { keccak256 } from '../crypto/keccak256.ts'
import type { LogFilter } from './requests.ts'

const BLOOM_BYTES = 256
const BLOOM_HEX_LENGTH = '0x'.length + 2 * BLOOM_BYTES

/** The bits of values that filters name again and again: the contracts and events that are followed. */
const knownBits = new Map<Hex, readonly number[]>()
const MAX_KNOWN = 1_000

/** Returns the three bits that a value sets in a bloom filter (Ethereum's yellow paper, section 4.3.1). */
function bitsOf(value: Hex): readonly number[] {
  const known = knownBits.get(value)
  if (known) return known
  const hash = keccak256(hexToBytes(value))
  const bits = [0, 2, 4].map(at => (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) % (8 * BLOOM_BYTES))
  if (knownBits.size >= MAX_KNOWN) knownBits.clear()
  knownBits.set(value, bits)
  return bits
}

/**
 * Returns whether a block may have logs that a filter selects. `bloom` is the filter in the block's header; without a valid
 * one, every block may have some.
 */
export function mayHaveLogs(bloom: Hex | null | undefined, { address, topics }: LogFilter): boolean {
  if (bloom?.length !== BLOOM_HEX_LENGTH) return true
  const bytes = hexToBytes(bloom)
  const isSet = (bit: number) => ((bytes[BLOOM_BYTES - 1 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0
  const mayContainOne = (values: readonly Hex[]) => values.some(value => bitsOf(value).every(isSet))
  return [address, ...topics].every(choice => choice === null || mayContainOne([choice].flat() as Hex[]))
}
