import type { Chain } from '../chain/configured-chain.ts'
import { isRefusedForNow, REFUSED_SENDS } from '../rpc/log-range-size.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { inOrder } from '../rpc/proved-logs.ts'
import { blockRequest, type LogFilter, logsRequest, type NodeLog } from '../rpc/requests.ts'
import type { IndexRows, IndexStore } from './store.ts'
import type { IndexCursor } from './tables/cursor.ts'

/** What the audit found: the first block of which the index lacks rows, and how many rows it lacks. */
export type MissingRows = { firstBlock: number; count: number }

/** Where the log of a row is. */
export type RowPlace = { block: number; logIndex: number }

type BlockRange = { fromBlock: number; toBlock: number }

/** How many passes read a block. With several nodes each of them is asked. */
const PASSES_PER_BLOCK = 5
/** The most ranges per pass over blocks of one kind. A node that accepts only tiny ranges is audited in part. */
const MAX_RANGES = 4
const TIMEOUT_MS = 10_000

/**
 * Creates the audit of the index. Each pass reads the logs of the last passes' blocks again, from one node after the
 * other, and with several nodes also final ones from another node than the first. It finds rows that the index lacks; a
 * node that returns less than the index has proves nothing. `readRows` converts logs to rows.
 */
export function createIndexAudit(
  chain: Chain,
  store: Pick<IndexStore, 'readPlaces'>,
  readRows: (logs: readonly NodeLog[]) => Promise<IndexRows>,
) {
  const { rpc } = chain
  let passes = 0
  /** The cursors of the last passes, oldest first. */
  let ends: number[] = []
  /** Where the next range starts. */
  let nextRecent = 0
  let nextFinal: number | undefined

  /**
   * Runs one pass, in ranges of at most `rangeBlocks` blocks; the first one reads `auditedBlocks` below the cursor.
   * Throws CHAIN_UNREACHABLE.
   */
  async function run(
    cursor: IndexCursor,
    {
      filters,
      rangeBlocks,
      auditedBlocks,
    }: { filters: readonly LogFilter[]; rangeBlocks: number; auditedBlocks: number },
  ): Promise<MissingRows | undefined> {
    const turn = passes++
    if (ends.length === 0) ends = [cursor.block - auditedBlocks]
    const start = Math.max(Number(chain.startBlock), Math.min(ends[0] ?? 0, cursor.block) + 1)
    ends = [...ends.slice(1 - PASSES_PER_BLOCK), cursor.block]
    if (nextRecent < start || nextRecent > cursor.block) nextRecent = start
    for (const range of rangesOf(nextRecent, cursor.block, rangeBlocks)) {
      const missing = await missingIn(range, filters, turn)
      if (missing) return missing
      nextRecent = range.toBlock + 1
    }
    const final = Math.min(cursor.final, cursor.block)
    if (rpc.nodes === 1) return undefined
    nextFinal = Math.max(Math.min(nextFinal ?? final, final), final - auditedBlocks)
    for (const range of rangesOf(nextFinal + 1, final, rangeBlocks)) {
      const missing = await missingIn(range, filters, 1)
      if (missing) return missing
      nextFinal = range.toBlock
    }
    return undefined
  }

  const missingIn = async (range: BlockRange, filters: readonly LogFilter[], turn: number) => {
    const logs = await Promise.all(filters.map(filter => readLogs(filter, range, turn)))
    return missingOf(inOrder(logs.flat()))
  }

  /** Reads logs from the node whose turn it is. */
  async function readLogs(filter: LogFilter, range: BlockRange, turn: number) {
    const endpoint = rpc.preferred(turn)
    for (let sends = 1; ; sends++) {
      const response = await rpc
        .abortAfter(TIMEOUT_MS, async ({ signal }) => endpoint?.send(logsRequest(filter, range), signal))
        .catch(() => undefined)
      if (response?.result !== undefined) return response.result
      if (sends >= REFUSED_SENDS || !isRefusedForNow(response?.error))
        throw unreachable('the node returns no logs for the audit')
    }
  }

  /** Returns the rows that the index lacks of the logs of blocks that the chain has. */
  async function missingOf(logs: readonly NodeLog[]): Promise<MissingRows | undefined> {
    if (logs.length === 0) return undefined
    const { trades, prices, orders, events } = await readRows(logs)
    return missingAt(logs, [
      ...trades.map(({ blockNumber, logIndex }) => ({ block: Number(blockNumber), logIndex })),
      ...prices,
      ...orders,
      ...events.filter(({ name }) => name !== 'AssetConfigUpdated'), // an oracle is configured before it is named and followed
    ])
  }

  /** Returns which of the rows of logs the index lacks, of blocks that the chain has. */
  async function missingAt(logs: readonly NodeLog[], expected: readonly RowPlace[]): Promise<MissingRows | undefined> {
    const numbers = expected.map(({ block }) => block)
    const places = await store.readPlaces({ fromBlock: Math.min(...numbers), toBlock: Math.max(...numbers) })
    const rows = expected.filter(({ block, logIndex }) => !places.has(`${block}:${logIndex}`))
    if (rows.length === 0) return undefined
    const firstBlock = Math.min(...rows.map(({ block }) => block))
    const hashes = new Map(logs.map(({ blockNumber, blockHash }) => [Number(blockNumber), blockHash]))
    const [own] = await rpc.batch([blockRequest(firstBlock)])
    // The audited node is on another branch than the others.
    if (own.result?.hash !== hashes.get(firstBlock)) return undefined
    return { firstBlock, count: rows.length }
  }

  return { run, missingAt }
}

/** Splits blocks into ranges, at most MAX_RANGES of them. */
function rangesOf(from: number, to: number, size: number): BlockRange[] {
  const count = Math.min(MAX_RANGES, Math.max(0, Math.ceil((to - from + 1) / size)))
  return Array.from({ length: count }, (_, index) => ({
    fromBlock: from + index * size,
    toBlock: Math.min(to, from + (index + 1) * size - 1),
  }))
}
