import { keccak256 as keccak256OfViem } from 'viem'
import { webAssemblyOrJavaScript } from './webassembly-or-javascript.ts'

type Keccak256 = {
  name: 'JavaScript' | 'WebAssembly'
  /** Returns the 32 bytes of a keccak-256 hash. */
  hash(bytes: Uint8Array): Uint8Array
}

/** The implementation of viem: the reference, and what scripts and the command line use. */
export const javascript: Keccak256 = {
  name: 'JavaScript',
  hash: bytes => keccak256OfViem(bytes, 'bytes'),
}

export const { provideWebAssembly, current: currentKeccak256 } = webAssemblyOrJavaScript(
  instantiateWebAssembly,
  javascript,
)

/** Returns the keccak-256 hash of bytes, 32 bytes. */
export const keccak256 = (bytes: Uint8Array): Uint8Array => currentKeccak256().hash(bytes)

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
function instantiateWebAssembly(module: WebAssembly.Module): Keccak256 {
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
