import { type Hex, hexToNumber } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { contractsWithoutCode } from '../chain/contracts-without-code.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { blockRequest, chainIdRequest, type NodeLog, toHeader } from '../rpc/requests.ts'
import type { MissingRows } from './audit-index.ts'
import { type NamedContracts, toIndexRows } from './followed-events.ts'
import type { IndexRows, IndexStore } from './store.ts'
import type { IndexCursor, Reorg } from './tables/cursor.ts'

/** Called after commit. Delivery is at-least-once: the last write may be repeated after a crash. */
export type IndexListener = {
  onAppend(rows: IndexRows): void
  onReorg(reorg: Reorg): void
}

type Block = { number: number; hash: Hex; timestamp: number }

/** How many hashes are compared per request to find the common ancestor. Most reorgs are shorter. */
const ANCESTORS_PER_REQUEST = 64

/** Creates the branch of the chain that the index holds: blocks are appended to it, and rolled back after a reorg. */
export function createIndexBranch(chain: Chain, store: IndexStore, listener: IndexListener) {
  const { rpc } = chain
  let cursor: IndexCursor | undefined
  let isLoaded = false
  /** The newest block that is known to have a log. */
  let anchor: { number: number; hash: Hex } | undefined
  /** The last rollback: when it was, at which head, and which block the chain has lost. */
  let rolledBack: { at: number; head: number; lostHash: Hex | undefined } = { at: 0, head: 0, lostHash: undefined }

  /**
   * Loads the cursor if it is not known. Returns false while rows of an earlier index are being deleted. Throws
   * CHAIN_UNREACHABLE.
   */
  async function load(): Promise<boolean> {
    if (isLoaded) return true
    cursor = await store.readCursor()
    if (cursor === undefined) {
      // An index of other contracts is deleted here, which a wrong address must not cause.
      if ((await contractsWithoutCode(chain)).length > 0) throw unreachable('configured contracts have no code')
      if (await store.deleteObsolete()) return false
    }
    isLoaded = true
    return true
  }

  /** Writes the rows of logs up to a block. `newest` is the newest log that the chain has. Throws CursorMoved. */
  async function append(
    to: Block,
    logs: readonly NodeLog[],
    named: NamedContracts,
    { head, final, newest = logs.at(-1) }: { head: number; final: number; newest?: NodeLog | undefined },
  ): Promise<void> {
    const rows = await toIndexRows(chain, named, logs, await readBlockTimes(rpc, logs), store)
    const next = { block: to.number, hash: to.hash, timestamp: to.timestamp, head, final }
    await store.append(cursor, next, rows)
    cursor = next
    if (newest) anchor = { number: hexToNumber(newest.blockNumber), hash: newest.blockHash }
    listener.onAppend(rows)
  }

  /**
   * Rolls the index back to the newest block, at most at `head`, that the chain still has. Returns whether anything was
   * undone. A node of another chain, to which a provider may fail over, undoes nothing. Throws CHAIN_UNREACHABLE.
   */
  async function rollBack(head: number): Promise<boolean> {
    if (cursor === undefined) return false
    const candidates = (await store.readBranch()).filter(({ number }) => number <= head)
    // The first page is one block, because a node that is behind is more common than a reorg.
    for (let start = 0, size = 1; start < candidates.length; start += size, size = ANCESTORS_PER_REQUEST) {
      const page = candidates.slice(start, start + size)
      const [, ...responses] = await rpc.batch(
        [chainIdRequest, ...page.map(({ number }) => blockRequest(number))] as const,
        ([id]) => Number(id.result) === chain.id,
      )
      for (const [index, { hash }] of page.entries()) {
        const block = toHeader(responses[index]?.result)
        if (block === undefined) return false // the node is behind
        if (block.hash !== hash) continue
        if (start + index === 0) return false // the node is behind, or the chain has returned to our branch
        await undoAbove(cursor, block, head)
        return true
      }
    }
    if (candidates.length === 0) return false
    // No common block: the chain has begun again, or the reorg is longer than the index can undo.
    const { block: lost, hash: lostHash } = cursor
    await store.discard()
    forget()
    listener.onReorg({ ancestor: -1, ancestorHash: '0x', lost, lostHash, at: nowSeconds() })
    return true
  }

  async function undoAbove(from: IndexCursor, ancestor: Block, head: number): Promise<void> {
    const { number: block, hash, timestamp } = ancestor
    const reorg = { ancestor: block, ancestorHash: hash, lost: from.block, lostHash: from.hash, at: nowSeconds() }
    await store.rollback(from, { block, hash, timestamp }, reorg)
    cursor = { ...from, block, hash, timestamp, final: Math.min(from.final, block) }
    anchor = undefined
    rolledBack = { at: Date.now(), head, lostHash: from.hash }
    listener.onReorg(reorg)
  }

  /**
   * Rolls the index back to the block before its first missing row, which streams see as a reorg. Returns the block
   * that it had reached; undefined if there was a reorg since the audit, whose next run finds what is still missing.
   * Throws CHAIN_UNREACHABLE or CursorMoved.
   */
  async function undoMissing(
    { firstBlock, upTo }: MissingRows & { upTo: IndexCursor },
    head: number,
  ): Promise<number | undefined> {
    const [own, ancestor] = await rpc.batch([blockRequest(upTo.block), blockRequest(firstBlock - 1)])
    const block = toHeader(ancestor.result)
    if (block === undefined || own.result?.hash !== upTo.hash) return undefined
    if (cursor === undefined || cursor.block < upTo.block) return undefined
    const { block: reached } = cursor
    await undoAbove(cursor, block, head)
    return reached
  }

  /** Drops the stored cursor: the next steps delete the rows from events and read the chain from the start block. */
  async function drop(): Promise<void> {
    await store.dropCursor()
    forget()
  }

  function forget(): void {
    cursor = undefined
    anchor = undefined
    isLoaded = false
  }

  return {
    load,
    append,
    rollBack,
    undoMissing,
    drop,
    /** The cursor; undefined while the index is empty, or nothing was loaded. */
    cursor: () => cursor,
    /** The newest block that is known to have a log; undefined if none is. */
    anchor: () => anchor,
    /** Makes the next load read the stored cursor again, from which all goes on. */
    forget,
    rolledBack: () => rolledBack,
  }
}

const nowSeconds = () => Math.floor(Date.now() / 1000)
