import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import {
  bytesToBigInt,
  bytesToHex,
  fromRlp,
  type Hex,
  keccak256,
  numberToBytes,
  recoverAddress,
  serializeSignature,
} from 'viem'
import { privateKeyToAccount, publicKeyToAddress, sign as signWithViem } from 'viem/accounts'
import { describe, expect, inject, it } from 'vitest'
import { provideWebAssembly, recoverSigner, secp256k1 } from '../../src/crypto/secp256k1.ts'
import { javascript, ORDER } from '../../src/crypto/secp256k1-javascript.ts'
import { instantiateWebAssembly } from '../../src/crypto/secp256k1-webassembly.ts'
import { addressOfKey, signingAccountOf } from '../../src/executor/signing-account.ts'
import { type Random, randomOf } from '../support/seeded-random.ts'

// The WebAssembly against the JavaScript implementation on random and adversarial inputs.

const file = createRequire(import.meta.url).resolve('@bitauth/libauth/build/lib/bin/secp256k1/secp256k1.wasm')
/** The project has a Worker's types, and Workers compile no bytes. */
const Module = WebAssembly.Module as unknown as new (bytes: Uint8Array) => WebAssembly.Module
const module = new Module(readFileSync(file))
const webassembly = instantiateWebAssembly(module)

const CASES = inject('isLong') ? 10_000 : 240
const RECOVERIES_OF_EACH_KIND = (CASES * 0.8) / 6
const SIGNATURES = CASES * 0.2
const FIELD = 2n ** 256n - 2n ** 32n - 977n
const MAX = 2n ** 256n - 1n
/** Numbers at which a comparison may be wrong by one. */
const EDGES = [
  0n,
  1n,
  2n,
  ORDER / 2n,
  ORDER / 2n + 1n,
  ORDER - 1n,
  ORDER,
  ORDER + 1n,
  FIELD - ORDER,
  FIELD - 1n,
  FIELD,
  MAX,
]

const word = (value: bigint) => numberToBytes(value, { size: 32 })
const randomWord = (random: Random) => Uint8Array.from({ length: 32 }, () => random.integer(0, 255))
const anyWord = (random: Random) => (random.chance(0.2) ? word(random.pick(EDGES)) : randomWord(random))
/** Returns a valid private key. */
const randomKey = (random: Random) => word((bytesToBigInt(randomWord(random)) % (ORDER - 1n)) + 1n)
const flipped = (yParity: 0 | 1) => (yParity === 0 ? 1 : 0)

type Recovery = { hash: Uint8Array; signature: Uint8Array; yParity: 0 | 1 }
const joined = (r: Uint8Array, s: Uint8Array) => Uint8Array.from([...r, ...s])

function validRecovery(random: Random): Recovery {
  const hash = anyWord(random)
  return { hash, ...webassembly.sign(hash, randomKey(random)) }
}

/** Each makes one kind of input for a recovery. */
const recoveries: Record<string, (random: Random) => Recovery> = {
  'a valid signature': validRecovery,
  'another parity': random => {
    const { yParity, ...valid } = validRecovery(random)
    return { ...valid, yParity: flipped(yParity) }
  },
  'another hash': random => ({ ...validRecovery(random), hash: anyWord(random) }),
  'a high s': random => {
    const { signature, yParity, hash } = validRecovery(random)
    const high = word(ORDER - bytesToBigInt(signature.slice(32)))
    return {
      hash,
      signature: joined(signature.slice(0, 32), high),
      yParity: random.chance(0.5) ? yParity : flipped(yParity),
    }
  },
  'any r and s': random => ({
    hash: anyWord(random),
    signature: joined(anyWord(random), anyWord(random)),
    yParity: random.chance(0.5) ? 0 : 1,
  }),
  'a key at infinity': random => {
    // R = kG and e = sk, so that sR - eG is zero.
    const k = randomKey(random)
    const point = javascript.publicKeyOf(k)
    const s = bytesToBigInt(randomKey(random))
    return {
      hash: word((s * bytesToBigInt(k)) % ORDER),
      signature: joined(point.slice(1, 33), word(s)),
      yParity: ((point[64] ?? 0) & 1) as 0 | 1,
    }
  },
}

describe('WebAssembly', () => {
  it.each(Object.entries(recoveries))('WebAssembly recovers what JavaScript recovers: %s', (kind, recoveryOf) => {
    const random = randomOf('recover', kind)
    const found = { keys: 0, nothing: 0 }
    for (let index = 0; index < RECOVERIES_OF_EACH_KIND; index++) {
      const { hash, signature, yParity } = recoveryOf(random)
      const expected = javascript.recover(hash, signature, yParity)
      const recovered = webassembly.recover(hash, signature, yParity)
      if (hexOf(recovered) !== hexOf(expected))
        expect.fail(
          `${bytesToHex(hash)} ${bytesToHex(signature)} ${yParity}: ${hexOf(recovered)}, not ${hexOf(expected)}`,
        )
      found[expected ? 'keys' : 'nothing']++
    }
    if (kind === 'a valid signature') expect(found.nothing).toBe(0)
    if (kind === 'a key at infinity') expect(found.keys).toBe(0)
    if (kind === 'any r and s') expect(Math.min(found.keys, found.nothing)).toBeGreaterThan(0)
  })

  it('WebAssembly signs the same bytes as JavaScript, with s in the lower half', async () => {
    const random = randomOf('sign')
    const edges = EDGES.flatMap(hash => [1n, 2n, ORDER - 1n].map(key => ({ hash: word(hash), key: word(key) })))
    const others = Array.from({ length: SIGNATURES }, () => ({ hash: anyWord(random), key: randomKey(random) }))
    for (const { hash, key } of [...edges, ...others]) {
      const { signature, yParity } = webassembly.sign(hash, key)
      const [r, s] = [bytesToHex(signature.slice(0, 32)), bytesToHex(signature.slice(32))]
      const expected = await signWithViem({ hash: bytesToHex(hash), privateKey: bytesToHex(key) })
      if (r !== expected.r || s !== expected.s || yParity !== expected.yParity)
        expect.fail(`${bytesToHex(hash)} with ${bytesToHex(key)}: ${r} ${s} ${yParity}`)
      expect(BigInt(s) <= ORDER / 2n).toBe(true)
    }
  })

  it('WebAssembly derives the same public keys as JavaScript', () => {
    const random = randomOf('keys')
    for (const key of [word(1n), word(ORDER - 1n), ...Array.from({ length: SIGNATURES / 10 }, () => randomKey(random))])
      expect(bytesToHex(webassembly.publicKeyOf(key))).toBe(bytesToHex(javascript.publicKeyOf(key)))
  })

  it.each([javascript, webassembly])('WebAssembly refuses keys that are none: $name', implementation => {
    for (const key of [0n, ORDER, ORDER + 1n, MAX]) {
      expect(() => implementation.sign(word(7n), word(key))).toThrow()
      expect(() => implementation.publicKeyOf(word(key))).toThrow()
    }
  })

  it.each([javascript, webassembly])('WebAssembly refuses values of another length: $name', implementation => {
    for (const length of [0, 1, 31, 33, 64, 65]) {
      const bytes = new Uint8Array(length).fill(1)
      expect(() => implementation.recover(bytes, new Uint8Array(64).fill(1), 0)).toThrow(RangeError)
      expect(() => implementation.sign(bytes, word(1n))).toThrow(RangeError)
      expect(() => implementation.sign(word(1n), bytes)).toThrow(RangeError)
      expect(() => implementation.publicKeyOf(bytes)).toThrow(RangeError)
      if (length !== 64) expect(() => implementation.recover(word(1n), bytes, 0)).toThrow(RangeError)
    }
  })
})

describe('the implementation of a process', () => {
  it('the implementation of a process is JavaScript where no WebAssembly is provided', () => {
    expect(secp256k1().name).toBe('JavaScript')
  })

  it('the implementation of a process stays with JavaScript if the WebAssembly does not load, and reports that once', () => {
    const failures: unknown[] = []
    const empty = new Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0))
    provideWebAssembly(empty, error => failures.push(error))
    expect(secp256k1().name).toBe('JavaScript')
    expect(secp256k1().recover(word(1n), new Uint8Array(64), 0)).toBeUndefined()
    expect(failures).toHaveLength(1)
  })

  it('the implementation of a process recovers the signer that viem recovers, and only from the canonical form', async () => {
    provideWebAssembly(module, error => expect.fail(`${error}`))
    expect(secp256k1().name).toBe('WebAssembly')
    const random = randomOf('signers')
    for (let index = 0; index < SIGNATURES / 10; index++) {
      const key = randomKey(random)
      const hash = bytesToHex(anyWord(random))
      const canonical = await signWithViem({ hash, privateKey: bytesToHex(key), to: 'hex' })
      const address = publicKeyToAddress(bytesToHex(javascript.publicKeyOf(key)))
      expect(recoverSigner(hash, canonical).address).toBe(address)
      const another = bytesToHex(anyWord(random))
      expect(recoverSigner(another, canonical).address).toBe(
        await recoverAddress({ hash: another, signature: canonical }).catch(() => null),
      )
      const withV = (v: number) => `${canonical.slice(0, 130)}${v.toString(16).padStart(2, '0')}` as const
      for (const v of [0, 1, 2, 26, 29, 31, 35, 37, 255])
        expect(recoverSigner(hash, withV(v) as `0x${string}`).address).toBeNull()
      const { r, s, yParity } = await signWithViem({ hash, privateKey: bytesToHex(key) })
      const high = bytesToHex(word(ORDER - BigInt(s)))
      expect(recoverSigner(hash, serializeSignature({ r, s: high, yParity: yParity === 0 ? 1 : 0 })).address).toBeNull()
      for (const cut of ['0x', canonical.slice(0, 130), `${canonical}00`] as `0x${string}`[])
        expect(recoverSigner(hash, cut).address).toBeNull()
    }
  })
})

describe('an account of the service', () => {
  it('an account of the service signs the same transactions as viem', async () => {
    const random = randomOf('transactions')
    const numbers = [0, 1, 127, 128, 255, 256, 2 ** 32, Number.MAX_SAFE_INTEGER]
    for (const size of [0, 1, 4, 54, 55, 56, 255, 256, 700, 70_000])
      for (const first of [0, 0x7f, 0x80]) {
        const key = bytesToHex(randomKey(random))
        const account = privateKeyToAccount(key)
        const data = new Uint8Array(size).fill(0xa5)
        if (size > 0) data[0] = first
        const call = { to: addressOfKey(bytesToHex(randomKey(random))), data: bytesToHex(data) }
        const [nonce, gas] = [random.pick(numbers), random.pick(numbers)]
        const maxPriorityFeePerGas = BigInt(random.pick(numbers))
        const fees = { maxFeePerGas: maxPriorityFeePerGas + BigInt(random.pick(numbers)), maxPriorityFeePerGas }
        const chainId = random.pick([1, 8453, 31337])
        const { sign } = signingAccountOf(account.address, chainId, { EXECUTOR_PRIVATE_KEY: key })
        const { raw, hash } = await sign({ nonce, gas, fees, call })
        expect(raw).toBe(await account.signTransaction({ chainId, nonce, gas: BigInt(gas), ...fees, ...call }))
        expect(hash).toBe(keccak256(raw))
      }
  })

  it('an account of the service signs the same transactions as viem if r or s starts with a zero', async () => {
    const key = bytesToHex(word(7n))
    const account = privateKeyToAccount(key)
    const { sign } = signingAccountOf(account.address, 1, { EXECUTOR_PRIVATE_KEY: key })
    const call = { to: account.address, data: '0x' } as const
    const fees = { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }
    const found = new Set<string>()
    for (let nonce = 0; found.size < 2; nonce++) {
      const { raw } = await sign({ nonce, gas: 21_000, fees, call })
      const [r, s] = (fromRlp(`0x${raw.slice(4)}`) as Hex[]).slice(-2)
      if (r?.length === 66 && s?.length === 66) continue
      found.add(r?.length === 66 ? 's' : 'r')
      expect(raw).toBe(await account.signTransaction({ chainId: 1, nonce, gas: 21_000n, ...fees, ...call }))
    }
  })
})

const hexOf = (bytes: Uint8Array | undefined) => bytes && bytesToHex(bytes)
