import { bytesToBigInt, numberToBytes } from 'viem'
import { assertLength, ORDER, type Secp256k1 } from './secp256k1-javascript.ts'

/**
 * The module's exports that this file uses; each is a function of libsecp256k1. Pointers are offsets into the module's
 * memory.
 */
type Exports = {
  _malloc(bytes: number): number
  _secp256k1_context_create(flags: number): number
  _secp256k1_context_randomize(context: number, seed: number): number
  _secp256k1_ec_pubkey_create(context: number, publicKey: number, privateKey: number): number
  _secp256k1_ec_pubkey_serialize(context: number, out: number, length: number, publicKey: number, form: number): number
  _secp256k1_ecdsa_recover(context: number, publicKey: number, signature: number, hash: number): number
  _secp256k1_ecdsa_sign_recoverable(context: number, signature: number, hash: number, privateKey: number): number
  _secp256k1_ecdsa_recoverable_signature_parse_compact(
    context: number,
    signature: number,
    compact: number,
    recoveryId: number,
  ): number
  _secp256k1_ecdsa_recoverable_signature_serialize_compact(
    context: number,
    compact: number,
    recoveryId: number,
    signature: number,
  ): number
}

const SIGN_AND_VERIFY = 0x301
const UNCOMPRESSED = 2

// The memory layout that the module was compiled for (libauth's src/lib/bin/secp256k1/secp256k1-wasm.ts).
const MEMORY_PAGES = 256
const PAGE_BYTES = 65_536
const DYNAMIC_TOP_POINTER = 1_024 + 67_696 + 16
const STACK_TOP = (DYNAMIC_TOP_POINTER + 4 + 15) & -16
const STACK_BYTES = 5_242_880
const TABLE_SIZE = 6

/**
 * Instantiates libsecp256k1 as compiled by @bitauth/libauth. Takes about 10 ms of CPU and needs random bytes, which the
 * global scope of a Worker does not have.
 */
export function instantiateWebAssembly(module: WebAssembly.Module): Secp256k1 {
  const { bytes, words, library } = instantiate(module)
  const allocate = (length: number) => library._malloc(length)
  const hashAt = allocate(32)
  const privateKeyAt = allocate(32)
  const compactAt = allocate(64)
  const signatureAt = allocate(65)
  const publicKeyAt = allocate(64)
  const serializedAt = allocate(65)
  const numberAt = allocate(4)

  const context = library._secp256k1_context_create(SIGN_AND_VERIFY)
  // Blinds the scalar multiplication against side channels; signatures do not depend on it.
  bytes.set(crypto.getRandomValues(new Uint8Array(32)), hashAt)
  library._secp256k1_context_randomize(context, hashAt)

  const read = (at: number, length: number) => bytes.slice(at, at + length)
  function readPublicKey(): Uint8Array {
    words[numberAt >> 2] = 65
    library._secp256k1_ec_pubkey_serialize(context, serializedAt, numberAt, publicKeyAt, UNCOMPRESSED)
    return read(serializedAt, 65)
  }
  /** Calls a function while the private key is in the module's memory. Throws if the function returns 0. */
  function withPrivateKey(privateKey: Uint8Array, run: () => number): void {
    assertLength('private key', privateKey, 32)
    bytes.set(privateKey, privateKeyAt)
    try {
      if (run() !== 1) throw new RangeError('The private key is not between 1 and the order of the curve')
    } finally {
      bytes.fill(0, privateKeyAt, privateKeyAt + 32)
    }
  }

  return {
    name: 'WebAssembly',
    recover(hash, signature, yParity) {
      assertLength('hash', hash, 32)
      assertLength('signature', signature, 64)
      bytes.set(hash, hashAt)
      bytes.set(signature, compactAt)
      const isParsed =
        library._secp256k1_ecdsa_recoverable_signature_parse_compact(context, signatureAt, compactAt, yParity) === 1
      if (!isParsed || library._secp256k1_ecdsa_recover(context, publicKeyAt, signatureAt, hashAt) !== 1)
        return undefined
      return readPublicKey()
    },
    sign(hash, privateKey) {
      assertLength('hash', hash, 32)
      bytes.set(modulo(hash), hashAt)
      withPrivateKey(privateKey, () =>
        library._secp256k1_ecdsa_sign_recoverable(context, signatureAt, hashAt, privateKeyAt),
      )
      library._secp256k1_ecdsa_recoverable_signature_serialize_compact(context, compactAt, numberAt, signatureAt)
      return { signature: read(compactAt, 64), yParity: ((words[numberAt >> 2] ?? 0) & 1) as 0 | 1 }
    },
    publicKeyOf(privateKey) {
      withPrivateKey(privateKey, () => library._secp256k1_ec_pubkey_create(context, publicKeyAt, privateKeyAt))
      return readPublicKey()
    },
  }
}

/**
 * Returns a hash modulo the order of the curve. RFC 6979 derives the nonce from the reduced hash; the library would use
 * the hash as it is.
 */
function modulo(hash: Uint8Array): Uint8Array {
  const value = bytesToBigInt(hash)
  return value < ORDER ? hash : numberToBytes(value - ORDER, { size: 32 })
}

function instantiate(module: WebAssembly.Module) {
  const memory = new WebAssembly.Memory({ initial: MEMORY_PAGES, maximum: MEMORY_PAGES })
  const bytes = new Uint8Array(memory.buffer)
  const words = new Uint32Array(memory.buffer)
  words[DYNAMIC_TOP_POINTER >> 2] = STACK_TOP + STACK_BYTES
  const abort = () => {
    throw new Error('libsecp256k1 aborted')
  }
  const { exports } = new WebAssembly.Instance(module, {
    env: {
      memory,
      table: new WebAssembly.Table({ element: 'anyfunc', initial: TABLE_SIZE, maximum: TABLE_SIZE }),
      tableBase: 0,
      DYNAMICTOP_PTR: DYNAMIC_TOP_POINTER,
      STACKTOP: STACK_TOP,
      abort,
      _abort: abort,
      enlargeMemory: abort,
      abortOnCannotGrowMemory: abort,
      getTotalMemory: () => MEMORY_PAGES * PAGE_BYTES,
      ___setErrNo: (value: number) => value,
      _emscripten_memcpy_big: (target: number, source: number, length: number) => {
        bytes.copyWithin(target, source, source + length)
        return target
      },
    },
  })
  return { bytes, words, library: exports as unknown as Exports }
}
