export type Keccak256 = {
  name: 'JavaScript' | 'WebAssembly'
  /** Returns the 32 bytes of a keccak-256 hash. */
  hash(bytes: Uint8Array): Uint8Array
}
