import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bytesToHex, hexToBytes, keccak256 as keccak256OfViem } from 'viem'
import { describe, expect, it } from 'vitest'
import { currentKeccak256, keccak256, provideWebAssembly } from '../../src/crypto/keccak256.ts'
import { type Random, randomOf } from '../support/seeded-random.ts'

// The WebAssembly against viem, on lengths around its block of 136 bytes and its buffer of 16 KiB.

/** The project has a Worker's types, and Workers compile no bytes. */
const Module = WebAssembly.Module as unknown as new (bytes: Uint8Array) => WebAssembly.Module
const module = new Module(readFileSync(join(import.meta.dirname, '../../src/crypto/keccak.wasm')))
const empty = new Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0))

const RANDOM_INPUTS = 10_000
const BUFFER = 16_384
const LONG = [BUFFER - 1, BUFFER, BUFFER + 1, BUFFER + 136, 2 * BUFFER, 2 * BUFFER + 1, 100_000]

const randomBytes = (random: Random, length: number) => Uint8Array.from({ length }, () => random.integer(0, 255))

function expectHashOfViem(bytes: Uint8Array) {
  const [hash, expected] = [bytesToHex(keccak256(bytes)), keccak256OfViem(bytes)]
  if (hash !== expected) expect.fail(`${bytesToHex(bytes)}: ${hash}, not ${expected}`)
}

const implementations = {
  JavaScript: () => provideWebAssembly(empty, () => {}),
  WebAssembly: () => provideWebAssembly(module, error => expect.fail(`${error}`)),
}

describe('the implementation of a process', () => {
  it('the implementation of a process is JavaScript where no WebAssembly is provided', () => {
    expect(currentKeccak256().name).toBe('JavaScript')
    expectHashOfViem(Uint8Array.of(1))
  })

  it('the implementation of a process stays JavaScript if the WebAssembly does not load, and reports that once', () => {
    const failures: unknown[] = []
    provideWebAssembly(empty, error => failures.push(error))
    for (const byte of [1, 2]) expectHashOfViem(Uint8Array.of(byte))
    expect(currentKeccak256().name).toBe('JavaScript')
    expect(failures).toHaveLength(1)
  })
})

describe.each(Object.entries(implementations))('%s', (name, provide) => {
  it('hashes every length as viem does', () => {
    provide()
    expect(currentKeccak256().name).toBe(name)
    const random = randomOf('lengths')
    for (let length = 0; length <= 2_000; length++) expectHashOfViem(randomBytes(random, length))
    for (const length of LONG) expectHashOfViem(randomBytes(random, length))
  })

  it('hashes a part of a buffer', () => {
    provide()
    const bytes = randomBytes(randomOf('parts'), 40_000)
    for (const [from, to] of [
      [1, 137],
      [3, 3],
      [7, 39_999],
    ])
      expectHashOfViem(bytes.subarray(from, to))
  })

  it('returns bytes that later calls do not change', () => {
    provide()
    const first = keccak256(Uint8Array.of(1))
    const copy = first.slice()
    keccak256(Uint8Array.of(2))
    expect(first).toEqual(copy)
  })
})

describe('WebAssembly', () => {
  it('WebAssembly hashes random bytes and hex as viem does', () => {
    implementations.WebAssembly()
    const random = randomOf('inputs')
    for (let index = 0; index < RANDOM_INPUTS; index++) {
      const bytes = randomBytes(random, random.integer(0, random.chance(0.9) ? 300 : 1_200))
      const hex = bytesToHex(bytes)
      if (index % 2 === 0) expectHashOfViem(bytes)
      else if (bytesToHex(keccak256(hexToBytes(hex))) !== keccak256OfViem(hex)) expect.fail(hex)
    }
  })
})
