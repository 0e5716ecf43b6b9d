import type { Address, Hex } from 'viem'
import type { CallResult } from './encode-and-decode-call.ts'

// Multicall3's aggregate3, encoded without the ABI coder: a batch can have hundreds of calls.

const AGGREGATE3 = '0x82ad56cb'
/** Hex digits of an ABI word. */
const WORD = 64

/** Returns the calldata of `aggregate3` for calls that may fail one by one. */
export function encodeBatch(calls: readonly { address: Address; data: Hex }[]): Hex {
  let offset = calls.length * (WORD / 2)
  let offsets = ''
  let tuples = ''
  for (const { address, data } of calls) {
    const calldata = data.slice(2)
    const padded = calldata.padEnd(Math.ceil(calldata.length / WORD) * WORD, '0')
    const allowFailure = wordOf(1)
    const tuple = `${address.slice(2).padStart(WORD, '0')}${allowFailure}${wordOf(0x60)}${wordOf(calldata.length / 2)}${padded}`
    offsets += wordOf(offset)
    tuples += tuple
    offset += tuple.length / 2
  }
  return `${AGGREGATE3}${wordOf(0x20)}${wordOf(calls.length)}${offsets}${tuples}`
}

/** Returns the results in the return data of `aggregate3`, in order. Throws if it is not such data. */
export function decodeBatch(data: Hex): CallResult[] {
  const numberAt = (byte: number) => {
    const start = 2 + byte * 2
    const digits = data.slice(start, start + WORD)
    const value = Number(`0x${digits}`)
    if (digits.length < WORD || !Number.isSafeInteger(value)) throw new Error('not the return data of aggregate3')
    return value
  }
  const list = numberAt(0)
  return Array.from({ length: numberAt(list) }, (_, index) => {
    const tuple = list + 32 + numberAt(list + 32 * (index + 1))
    const bytes = tuple + numberAt(tuple + 32)
    const start = 2 + (bytes + 32) * 2
    return { success: numberAt(tuple) === 1, data: `0x${data.slice(start, start + numberAt(bytes) * 2)}` }
  })
}

const wordOf = (value: number) => value.toString(16).padStart(WORD, '0')
