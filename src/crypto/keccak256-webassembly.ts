import type { Keccak256 } from './keccak256-implementation.ts'

/** The module's exports that this file uses (hash-wasm's src/sha3.c). */
type Exports = {
  memory: WebAssembly.Memory
  /** Returns where the module reads input and writes hashes. */
  Hash_GetBuffer(): number
  Hash_Init(bits: number): void
  /** Hashes bytes at the start of the buffer. */
  Hash_Update(length: number): void
  /** Writes the hash to the start of the buffer. */
  Hash_Final(padding: number): void
}

/** The size of the buffer (hash-wasm's src/hash-wasm.h). */
const BUFFER_BYTES = 16_384
const BITS = 256
/** The padding of Keccak; that of SHA-3 is 6. */
const PADDING = 1

/** Instantiates the Keccak of hash-wasm. */
export function instantiateWebAssembly(module: WebAssembly.Module): Keccak256 {
  const { memory, ...keccak } = new WebAssembly.Instance(module).exports as unknown as Exports
  const buffer = new Uint8Array(memory.buffer, keccak.Hash_GetBuffer(), BUFFER_BYTES)
  return {
    name: 'WebAssembly',
    hash(bytes) {
      keccak.Hash_Init(BITS)
      for (let at = 0; at < bytes.length; at += BUFFER_BYTES) {
        const chunk = bytes.length <= BUFFER_BYTES ? bytes : bytes.subarray(at, at + BUFFER_BYTES)
        buffer.set(chunk)
        keccak.Hash_Update(chunk.length)
      }
      keccak.Hash_Final(PADDING)
      return buffer.slice(0, 32)
    },
  }
}
