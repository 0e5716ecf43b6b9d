import { type Hex, numberToHex, zeroHash } from 'viem'
import { beforeEach, describe, expect, it } from 'vitest'
import { MAX_GAP_BLOCKS } from '../../src/history/read-index-to-head.ts'
import { createRelayedLogBuffer, MAX_HELD_LOGS, MAX_HOLD_MS } from '../../src/history/relayed-log-buffer.ts'
import type { NodeLog } from '../../src/rpc/requests.ts'

// When logs of the service's own receipts are written. history.test.ts and trades.test.ts test what the indexer does with them.

const NOW = 1_000_000

const hashOf = (value: number): Hex => numberToHex(value, { size: 32 })

/** Returns the two logs of a transaction's receipt. */
const receiptOf = (transaction: number, block: number, blockHash = hashOf(block)): NodeLog[] =>
  [0, 1].map(logIndex => ({
    address: `0x${'11'.repeat(20)}`,
    topics: [],
    data: '0x',
    blockNumber: numberToHex(block),
    blockHash,
    transactionHash: hashOf(transaction),
    logIndex: numberToHex(logIndex),
  }))

let buffer: ReturnType<typeof createRelayedLogBuffer>
const stepTo = (block: number, head: number) =>
  buffer.recordStep({ cursor: { block, hash: hashOf(block), timestamp: 0, head, final: -1 }, head })

beforeEach(() => {
  buffer = createRelayedLogBuffer()
  stepTo(10, 10)
})

const FOLLOWED = { isFollowed: true }

describe('while the index keeps up', () => {
  it('while the index keeps up logs are held until the cursor reaches their block', () => {
    buffer.hold([...receiptOf(1, 11), ...receiptOf(2, 12)], NOW)
    stepTo(10, 11) // sees the block
    stepTo(11, 12) // reads it
    expect(buffer.isWriteDue(NOW + 1, FOLLOWED)).toBe(false)
    stepTo(11, 12 + MAX_GAP_BLOCKS - 1)
    stepTo(13, 12 + MAX_GAP_BLOCKS)
    expect(buffer.isWriteDue(NOW + 1, FOLLOWED)).toBe(false)
    expect(buffer.take()).toEqual([])
  })

  it('while the index keeps up logs at or below the cursor, and those of an unsealed block, are not held', () => {
    buffer.hold([...receiptOf(1, 10), ...receiptOf(2, 11, zeroHash)], NOW)
    expect(buffer.take()).toEqual([])
  })
})

describe('held logs are due', () => {
  beforeEach(() => buffer.hold(receiptOf(1, 11), NOW))

  it('held logs are due after a step that failed, until one succeeds', () => {
    buffer.recordFailure()
    expect(buffer.isWriteDue(NOW, FOLLOWED)).toBe(true)
    stepTo(10, 10)
    expect(buffer.isWriteDue(NOW, FOLLOWED)).toBe(false)
  })

  it('held logs are due after a step that did not read the blocks up to the head of the previous one', () => {
    stepTo(10, 11)
    stepTo(10, 12)
    expect(buffer.isWriteDue(NOW, FOLLOWED)).toBe(true)
  })

  it('held logs are due if reads do not close the gap between cursor and head', () => {
    stepTo(10, 10 + MAX_GAP_BLOCKS + 1)
    expect(buffer.isWriteDue(NOW, FOLLOWED)).toBe(true)
  })

  it('held logs are due if the oldest were held for too long', () => {
    buffer.hold(receiptOf(2, 11), NOW + MAX_HOLD_MS)
    expect(buffer.isWriteDue(NOW + MAX_HOLD_MS, FOLLOWED)).toBe(false)
    expect(buffer.isWriteDue(NOW + MAX_HOLD_MS + 1, FOLLOWED)).toBe(true)
    stepTo(11, 11)
    buffer.hold(receiptOf(3, 12), NOW + MAX_HOLD_MS)
    expect(buffer.isWriteDue(NOW + MAX_HOLD_MS + 1, FOLLOWED)).toBe(false)
  })

  it('held logs are not due, however old, while the index does not follow the head: the first read makes it catch up', () => {
    expect(buffer.isWriteDue(NOW + 10 * MAX_HOLD_MS, { isFollowed: false })).toBe(false)
  })

  it('held logs are due if there are too many; further ones are dropped until the others are written', () => {
    for (let transaction = 1; transaction <= MAX_HELD_LOGS; transaction++) buffer.hold(receiptOf(transaction, 11), NOW)
    expect(buffer.isWriteDue(NOW, FOLLOWED)).toBe(true)
    expect(buffer.take()).toHaveLength(MAX_HELD_LOGS)
    expect(buffer.isWriteDue(NOW, FOLLOWED)).toBe(false)
    buffer.hold(receiptOf(1, 11), NOW)
    expect(buffer.take()).toHaveLength(2)
  })

  it('held logs are due once: taken logs are no longer held', () => {
    buffer.recordFailure()
    expect(buffer.take()).toEqual(receiptOf(1, 11))
    expect(buffer.isWriteDue(NOW, FOLLOWED)).toBe(false)
  })
})

describe('after a reorg', () => {
  it('after a reorg the logs above the ancestor are still held', () => {
    buffer.hold(receiptOf(1, 11), NOW)
    stepTo(8, 10)
    expect(buffer.take()).toEqual(receiptOf(1, 11))
  })

  it('after a reorg a transaction has only the logs of its last receipt', () => {
    buffer.hold([...receiptOf(1, 11), ...receiptOf(2, 11)], NOW)
    buffer.hold([...receiptOf(1, 12, hashOf(112)), ...receiptOf(2, 12), ...receiptOf(2, 11, hashOf(111))], NOW)
    expect(buffer.take()).toEqual([...receiptOf(1, 12, hashOf(112)), ...receiptOf(2, 11, hashOf(111))])
  })
})
