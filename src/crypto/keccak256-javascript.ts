import { keccak256 } from 'viem'
import type { Keccak256 } from './keccak256-implementation.ts'

/** The implementation of viem: the reference, and what scripts and the command line use. */
export const javascript: Keccak256 = {
  name: 'JavaScript',
  hash: bytes => keccak256(bytes, 'bytes'),
}
