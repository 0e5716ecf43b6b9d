import { keccak256 as keccak256OfViem } from 'viem'

/** Returns the 32 bytes of a keccak-256 hash. */
type Hash = (bytes: Uint8Array) => Uint8Array

let hash: Hash = bytes => keccak256OfViem(bytes, 'bytes')

/** Makes this process hash with another implementation than viem's. */
export function provideKeccak256(implementation: Hash): void {
  hash = implementation
}

/** Returns the 32 bytes of a keccak-256 hash. */
export const keccak256: Hash = bytes => hash(bytes)
