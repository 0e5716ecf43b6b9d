import { type Address, type Hex, hexToNumber } from 'viem'
import type { Chain } from '../chain/chain.ts'
import { readMarket } from '../chain/listings.ts'
import { learnDecimals } from '../chain/trade-details.ts'
import { readBlockTimes } from '../rpc/block-times.ts'
import { createLogRangeSize, isOverload } from '../rpc/log-range.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { blockRequest, logsRequest, type NodeBlock, type NodeLog, toHeader } from '../rpc/requests.ts'
import { FOLLOWED_TOPICS, followedAddresses, registeredVault, toRows, toTrades } from './index-rows.ts'
import type { Cursor, Reorg, Rows, Store } from './store.ts'

/** Told after the transaction that wrote it; nothing is told twice, but after a crash what was written last may be. */
export type Listener = {
  appended(rows: Rows, cursor: Cursor): void
  reorganized(reorg: Reorg): void
}

/** What a step found; `more` where the next one need not wait for the chain. */
export type Step = { cursor: Cursor | undefined; head: number; more: boolean }

export type Follower = ReturnType<typeof createFollower>

/** A block this far below the head is taken for final where the node knows no finality, or claims too much of it. */
const CONFIRMATIONS = 64
/** Blocks further below the head are taken for final whatever the node says: their hashes are not kept. */
const LONGEST_REORG = 20_000
/** The node is asked for its finality once in so many steps. */
const FINALITY_STEPS = 30
/** Hashes that are compared at once to find the common ancestor: most reorganizations are shorter. */
const ANCESTORS = 64

/**
 * Follows the chain into the store, one range of blocks per step. The head that a step sees is where the next one reads
 * to: by then a node behind a balancer has its logs, and the hash of both steps must agree.
 */
export function createFollower({ chain, store, listener }: { chain: Chain; store: Store; listener: Listener }) {
  const { rpc } = chain
  const rangeSize = createLogRangeSize()
  let cursor: Cursor | undefined
  let isLoaded = false
  let seen: { number: number; hash: Hex } | undefined
  let vaults: Set<Address> | undefined
  let final = -1
  let steps = 0

  /** Reads one range of blocks. Throws CHAIN_UNREACHABLE or CursorMoved; then nothing has changed. */
  async function step(): Promise<Step> {
    if (!isLoaded) cursor = await store.cursor()
    isLoaded = true
    vaults ??= await knownVaults()
    try {
      return await advance(vaults)
    } catch (error) {
      isLoaded = false // what the database holds decides
      throw error
    }
  }

  async function advance(vaults: Set<Address>): Promise<Step> {
    const first = cursor === undefined ? Number(chain.startBlock) : cursor.block + 1
    const to = seen === undefined ? -1 : Math.min(seen.number, first + rangeSize.blocks() - 1)
    const wantsFinality = steps++ % FINALITY_STEPS === 0
    const filter = { address: followedAddresses(chain, vaults), topics: [FOLLOWED_TOPICS] }
    const range = { fromBlock: first, toBlock: to }
    // Whether the chain still has the cursor's block is asked last: logs of a branch that came meanwhile do not fit it.
    const requests = [
      blockRequest('latest'),
      to >= first ? blockRequest(to) : undefined,
      to >= first ? logsRequest(filter, range) : undefined,
      cursor && blockRequest(cursor.block),
      wantsFinality ? blockRequest('finalized') : undefined,
    ] as const
    const [latest, target, logs, attached, finalized] = await rpc.batch(requests).catch(error => {
      rangeSize.reject(to - first + 1, '') // an answer that does not come may be one that is too large
      throw error
    })
    const head = toHeader(latest.result)
    if (head === undefined) throw unreachable('the node has no newest block')
    const before = seen
    seen = head
    if (wantsFinality) final = finalOf(finalized?.result, head.number)
    final = Math.max(final, head.number - LONGEST_REORG)
    const rest = (more: boolean): Step => ({ cursor, head: head.number, more })

    if (cursor && attached && attached.result?.hash !== cursor.hash) return rest(await goBack(cursor, head.number))
    if (target === undefined || logs === undefined) return rest(false)
    if (logs.error) {
      if (isOverload(logs.error.message) || !rangeSize.reject(to - first + 1, logs.error.message))
        throw unreachable('the node returns no logs')
      return rest(true)
    }
    const end = toHeader(target.result)
    const found = logs.result
    // Not the block of the step before, or the logs of another one: the chain is changing under us.
    if (end === undefined || (to === before?.number && end.hash !== before.hash)) return rest(false)
    if (found.some(log => hexToNumber(log.blockNumber) === to && log.blockHash !== end.hash)) return rest(false)

    const added = found.flatMap(log => registeredVault(chain, log) ?? []).filter(vault => !vaults.has(vault))
    if (added.length > 0) {
      for (const vault of added) vaults.add(vault)
      return rest(true) // the same range once more, with their events
    }
    const rows = await toRows(chain, found, await readBlockTimes(rpc, found), store)
    const next = { block: to, hash: end.hash, timestamp: end.timestamp, head: head.number, final }
    await store.append(cursor, next, rows)
    cursor = next
    rangeSize.accept(to - first + 1, found.length)
    listener.appended(rows, next)
    return rest(before !== undefined && to < before.number)
  }

  /** Writes trades from receipts, which the next steps find on the chain, or not. */
  async function addRelayed(logs: readonly NodeLog[]): Promise<void> {
    const newer = logs.filter(
      ({ blockNumber, blockHash }) =>
        hexToNumber(blockNumber) > (cursor?.block ?? -1) && !/^0x0*$/.test(blockHash ?? '0x'),
    )
    if (newer.length === 0) return
    const hashes = new Map(newer.map(({ blockNumber, blockHash }) => [hexToNumber(blockNumber), blockHash]))
    const trades = await toTrades(chain, newer, await readBlockTimes(rpc, newer), store.positionsOf)
    await store.addRelayed(trades.map(trade => ({ trade, blockHash: hashes.get(Number(trade.blockNumber)) ?? '0x' })))
  }

  /** Goes back to the newest block that store and chain have in common; answers whether there was one to go back to. */
  async function goBack(from: Cursor, head: number): Promise<boolean> {
    const kept = (await store.blocks()).filter(({ number }) => number <= head)
    for (let start = 0; start < kept.length; start += ANCESTORS) {
      const some = kept.slice(start, start + ANCESTORS)
      const answers = await rpc.batch(some.map(({ number }) => blockRequest(number)))
      for (const [index, { number, hash }] of some.entries()) {
        const block = toHeader(answers[index]?.result)
        if (block === undefined) return false // a node that is behind
        if (block.hash !== hash) continue
        if (start + index === 0) return false // behind too, or back on our branch meanwhile
        const reorg = { ancestor: number, ancestorHash: hash, lost: from.block, lostHash: from.hash, at: now() }
        const to = { block: number, hash, timestamp: block.timestamp }
        await store.rollback(from, to, reorg)
        cursor = { ...from, ...to, final: Math.min(from.final, number) }
        listener.reorganized(reorg)
        return true
      }
    }
    if (kept.length === 0) return false
    // Nothing of it is this chain's: it is another one, or was taken back beyond what can be followed.
    await store.clear()
    cursor = undefined
    listener.reorganized({ ancestor: -1, ancestorHash: '0x', lost: from.block, lostHash: from.hash, at: now() })
    return true
  }

  async function knownVaults(): Promise<Set<Address>> {
    const { market } = await readMarket(chain)
    learnDecimals(chain, market.tokens)
    return new Set([...Object.values(chain.vaults), ...market.vaults.map(({ address }) => address)])
  }

  return { step, addRelayed, vaults: (): Address[] => [...(vaults ?? [])] }
}

const now = () => Math.floor(Date.now() / 1000)

/** The newest block that is taken for final: what the node says, and never one that is young. */
function finalOf(finalized: NodeBlock | null | undefined, head: number): number {
  const confirmed = head - CONFIRMATIONS
  return Math.min(toHeader(finalized)?.number ?? confirmed, confirmed)
}
