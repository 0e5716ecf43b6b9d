import { type Hex, hexToNumber } from 'viem'
import type { NodeLog } from '../rpc/requests.ts'
import type { FollowerStep } from './chain-follower.ts'
import { MAX_GAP_BLOCKS } from './read-index-to-head.ts'

/** Logs held for longer are written while the index follows the head: if it keeps up, it reaches a new block within about two seconds. */
export const MAX_HOLD_MS = 5_000
/** Logs are written as soon as this many are held. A log takes about 2 KB of memory. */
export const MAX_HELD_LOGS = 10_000

/** The logs of one receipt, and when they arrived (epoch milliseconds). */
type HeldReceipt = { logs: NodeLog[]; block: number; heldAt: number }

/**
 * Creates the buffer of logs from the service's own receipts, above the cursor. While the index keeps up, reads find these
 * logs on the chain, so they are only held here, undecoded, until the cursor reaches them. Otherwise they must be written.
 */
export function createRelayedLogBuffer() {
  /** By transaction, in the order of arrival. */
  const receipts = new Map<Hex, HeldReceipt>()
  let logCount = 0
  let last = { block: -1, head: -1 }
  let keepsUp = true

  function drop(transactionHash: Hex) {
    logCount -= receipts.get(transactionHash)?.logs.length ?? 0
    receipts.delete(transactionHash)
  }

  return {
    /**
     * Holds the logs of whole receipts, unless the cursor has reached them. After a reorg, the receipt of a transaction
     * replaces its earlier one. Logs beyond the maximum are dropped: they arrive while a write of the others is stuck.
     */
    hold(logs: readonly NodeLog[], now: number): void {
      if (logCount >= MAX_HELD_LOGS) return
      for (const [transactionHash, ofTransaction] of Map.groupBy(logs.filter(isSealed), log => log.transactionHash)) {
        const newest = ofTransaction.at(-1) as NodeLog
        const block = hexToNumber(newest.blockNumber)
        if (block <= last.block) continue
        const ofReceipt = ofTransaction.filter(({ blockHash }) => blockHash === newest.blockHash)
        drop(transactionHash)
        receipts.set(transactionHash, { logs: ofReceipt, block, heldAt: now })
        logCount += ofReceipt.length
      }
    },

    /** Records a step of the follower, and drops the logs that its cursor has reached. */
    recordStep({ cursor, head }: Pick<FollowerStep, 'cursor' | 'head'>): void {
      const block = cursor?.block ?? -1
      // A step reads up to the head of the previous one, so it cannot move if that was at the cursor.
      const isStuck = last.head > last.block && block <= last.block
      keepsUp = !isStuck && head - block <= MAX_GAP_BLOCKS
      last = { block, head }
      for (const [transactionHash, receipt] of receipts) if (receipt.block <= block) drop(transactionHash)
    },

    /** Records that a step failed. */
    recordFailure(): void {
      keepsUp = false
    },

    /**
     * Whether reads may need the held logs before the cursor reaches them. An index that does not follow the head catches up
     * with the first read.
     */
    isWriteDue(now: number, { isFollowed }: { isFollowed: boolean }): boolean {
      const [oldest] = receipts.values()
      if (oldest === undefined) return false
      return !keepsUp || (isFollowed && now - oldest.heldAt > MAX_HOLD_MS) || logCount >= MAX_HELD_LOGS
    },

    /** Returns the held logs and stops holding them. */
    take(): NodeLog[] {
      const logs = [...receipts.values()].flatMap(receipt => receipt.logs)
      receipts.clear()
      logCount = 0
      return logs
    },
  }
}

/** Whether the node had sealed the log's block. */
const isSealed = ({ blockHash }: NodeLog) => !/^0x0*$/.test(blockHash ?? '0x')
