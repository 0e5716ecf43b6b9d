import { type Address, type Hex, hexToNumber, zeroAddress } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { agentRegistry } from '../chain/contracts.ts'
import { contractsWithoutCode } from '../chain/contracts-without-code.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { learnDecimals } from '../chain/token-decimals-cache.ts'
import { createLogRangeSize, isOverload } from '../rpc/log-range-size.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { blockRequest, logsRequest, type NodeBlock, type NodeLog, toHeader } from '../rpc/requests.ts'
import {
  addNamedContract,
  FOLLOWED_TOPICS,
  followedAddresses,
  type NamedContracts,
  toIndexRows,
  toTrades,
} from './followed-events.ts'
import type { IndexRows, IndexStore } from './store.ts'
import type { IndexCursor, Reorg } from './tables/cursor.ts'

/** The newest block that a step saw, and when it first did (epoch milliseconds). */
type SeenHead = { number: number; hash: Hex; seenAt: number }

/** Called after commit. Delivery is at-least-once: the last write may be repeated after a crash. */
export type IndexListener = {
  onAppend(rows: IndexRows): void
  onReorg(reorg: Reorg): void
}

/** The state after a step. `hasMore` means that the next step has work without waiting for a new block. */
export type FollowerStep = { cursor: IndexCursor | undefined; head: number; hasMore: boolean }

/** The blocks of the cursor and of the head after the last step; undefined before the first. */
export type IndexerStatus = { cursor: number | undefined; head: number | undefined }

export type ChainFollower = ReturnType<typeof createChainFollower>

/** A block this far below the head counts as final if the node knows no finality or claims a newer final block. */
const MIN_FINAL_DEPTH = 64
/** Any block this far below the head counts as final. A longer reorg clears the index. */
const MAX_REORG_BLOCKS = 20_000
/** The final block is requested once in this many steps. */
const STEPS_PER_FINALITY_CHECK = 30
/** How many hashes are compared per request to find the common ancestor. Most reorgs are shorter. */
const ANCESTORS_PER_REQUEST = 64

/**
 * Follows the chain into the index, one range of blocks per step. A step reads up to a head that an earlier step saw at least
 * `headAgeMs` ago: by then every node behind a load balancer has its logs. Both steps must agree on its hash.
 */
export function createChainFollower({
  chain,
  store,
  headAgeMs,
  listener,
}: {
  chain: Chain
  store: IndexStore
  headAgeMs: number
  listener: IndexListener
}) {
  const { rpc } = chain
  const rangeSize = createLogRangeSize()
  let cursor: IndexCursor | undefined
  let isCursorLoaded = false
  /** The heads that steps saw, oldest first, from the newest that is old enough to be read. */
  let heads: SeenHead[] = []
  let named: NamedContracts | undefined
  let final = -1
  let steps = 0

  /** Indexes one range of blocks. Throws CHAIN_UNREACHABLE or CursorMoved; then nothing was written. */
  async function step(): Promise<FollowerStep> {
    if (!isCursorLoaded) {
      // An index of other contracts is deleted here, which a wrong address must not cause.
      if ((await contractsWithoutCode(chain)).length > 0) throw unreachable('configured contracts have no code')
      cursor = await store.readCursor()
      if (cursor === undefined && (await store.deleteObsolete()))
        return { cursor, head: heads.at(-1)?.number ?? 0, hasMore: true }
    }
    isCursorLoaded = true
    named ??= await readNamedContracts()
    try {
      return await advance(named)
    } catch (error) {
      isCursorLoaded = false // the stored cursor decides where the next step starts
      throw error
    }
  }

  async function advance(named: NamedContracts): Promise<FollowerStep> {
    const from = cursor === undefined ? Number(chain.startBlock) : cursor.block + 1
    const expected = heads.findLast(({ seenAt }) => Date.now() - seenAt >= headAgeMs)
    const to = expected === undefined ? -1 : Math.min(expected.number, from + rangeSize.blocks() - 1)
    const { head, target, logs, ownBlock, finalized } = await readRange(from, to, named)
    heads = [...heads.slice(expected ? heads.indexOf(expected) : 0), { ...head, seenAt: Date.now() }]
    if (finalized !== undefined) final = finalBlock(finalized, head.number)
    final = Math.max(final, head.number - MAX_REORG_BLOCKS)
    const done = (hasMore: boolean): FollowerStep => ({ cursor, head: head.number, hasMore })

    if (cursor && ownBlock?.hash !== cursor.hash) return done(await rollBack(cursor, head.number))
    if (logs === undefined) return done(false)
    if (logs.error) {
      if (isOverload(logs.error.message) || !rangeSize.reject(to - from + 1, logs.error.message))
        throw unreachable('the node returns no logs')
      return done(true)
    }
    // The chain changed during the step: the target is not the block that the previous step saw, or the logs are not
    // from the target's branch.
    if (target === undefined || (to === expected?.number && target.hash !== expected.hash)) return done(false)
    if (logs.result.some(log => hexToNumber(log.blockNumber) === to && log.blockHash !== target.hash))
      return done(false)

    const newlyNamed = logs.result.filter(log => addNamedContract(chain, named, log))
    if (newlyNamed.length > 0) return done(true) // reads the same range again, including the new contracts
    const rows = await toIndexRows(chain, named, logs.result, await readBlockTimes(rpc, logs.result), store)
    const next = { block: to, hash: target.hash, timestamp: target.timestamp, head: head.number, final }
    await store.append(cursor, next, rows)
    cursor = next
    rangeSize.accept(to - from + 1, logs.result.length)
    listener.onAppend(rows)
    return done(expected !== undefined && to < expected.number)
  }

  /** Reads everything that a step needs from one node. `logs` is undefined if there is no range to read. */
  async function readRange(from: number, to: number, named: NamedContracts) {
    const filter = { address: followedAddresses(chain, named), topics: [FOLLOWED_TOPICS] }
    const requests = [
      blockRequest('latest'),
      to >= from ? blockRequest(to) : undefined,
      to >= from ? logsRequest(filter, { fromBlock: from, toBlock: to }) : undefined,
      // After the logs: if a reorg happens in between, the cursor's block no longer matches.
      cursor && blockRequest(cursor.block),
      steps++ % STEPS_PER_FINALITY_CHECK === 0 ? blockRequest('finalized') : undefined,
    ] as const
    const [latest, target, logs, ownBlock, finalized] = await rpc.batch(requests).catch(error => {
      rangeSize.reject(to - from + 1, '') // the response may have been too large
      throw error
    })
    const head = toHeader(latest.result)
    if (head === undefined) throw unreachable('the node has no newest block')
    return {
      head,
      target: toHeader(target?.result),
      logs,
      ownBlock: ownBlock?.result,
      finalized: finalized === undefined ? undefined : (finalized.result ?? null),
    }
  }

  /** Rolls the index back to the newest block that the chain still has. Returns whether anything was undone. */
  async function rollBack(from: IndexCursor, head: number): Promise<boolean> {
    const candidates = (await store.readBlocks()).filter(({ number }) => number <= head)
    for (let start = 0; start < candidates.length; start += ANCESTORS_PER_REQUEST) {
      const page = candidates.slice(start, start + ANCESTORS_PER_REQUEST)
      const responses = await rpc.batch(page.map(({ number }) => blockRequest(number)))
      for (const [index, { hash }] of page.entries()) {
        const block = toHeader(responses[index]?.result)
        if (block === undefined) return false // the node is behind
        if (block.hash !== hash) continue
        if (start + index === 0) return false // the node is behind, or the chain has returned to our branch
        await undoAbove(from, block)
        return true
      }
    }
    if (candidates.length === 0) return false
    // No common block: this is another chain, or the reorg is longer than the index can undo.
    await store.discard()
    cursor = undefined
    isCursorLoaded = false // the next steps delete its rows
    listener.onReorg({ ancestor: -1, ancestorHash: '0x', lost: from.block, lostHash: from.hash, at: nowSeconds() })
    return true
  }

  async function undoAbove(from: IndexCursor, ancestor: { number: number; hash: Hex; timestamp: number }) {
    const { number: block, hash, timestamp } = ancestor
    const reorg = { ancestor: block, ancestorHash: hash, lost: from.block, lostHash: from.hash, at: nowSeconds() }
    await store.rollback(from, { block, hash, timestamp }, reorg)
    cursor = { ...from, block, hash, timestamp, final: Math.min(from.final, block) }
    listener.onReorg(reorg)
  }

  /** Adds the trades of receipts above the cursor. Later steps replace them with the chain's own rows. */
  async function addRelayed(logs: readonly NodeLog[]): Promise<void> {
    const trades = await toTrades(chain, logs, await readBlockTimes(rpc, logs), store.readPositions)
    if (trades.length === 0) return
    const blockHashes = new Map(logs.map(({ transactionHash, blockHash }) => [transactionHash, blockHash]))
    await store.addRelayed(trades.map(trade => ({ trade, blockHash: blockHashes.get(trade.transactionHash) ?? '0x' })))
  }

  async function readNamedContracts(): Promise<NamedContracts> {
    const [{ registered }, ownerControls] = await Promise.all([readVaultsAndTokens(chain), readOwnerControls()])
    learnDecimals(chain, registered.tokens)
    return {
      vaults: new Set([...Object.values(chain.vaults), ...registered.vaults.map(({ address }) => address)]),
      ownerControls: new Set(ownerControls),
    }
  }

  /** Returns the current contract that owners sign messages for; undefined in a deployment without one. */
  async function readOwnerControls(): Promise<Address[]> {
    const { values } = await readTree(chain, optional(call(agentRegistry(chain), 'ownerControls', [])))
    return values === undefined || values === zeroAddress ? [] : [values]
  }

  /** Drops the cursor: the next step deletes the rows from events and reads the chain from the start block. */
  async function restart(): Promise<void> {
    await store.dropCursor()
    isCursorLoaded = false
    heads = []
    named = undefined
  }

  return { step, addRelayed, restart, vaults: (): Address[] => [...(named?.vaults ?? [])] }
}

const nowSeconds = () => Math.floor(Date.now() / 1000)

/** Returns the newest final block: the node's, but at least MIN_FINAL_DEPTH below the head. */
function finalBlock(finalized: NodeBlock | null, head: number): number {
  const confirmed = head - MIN_FINAL_DEPTH
  return Math.min(toHeader(finalized)?.number ?? confirmed, confirmed)
}
