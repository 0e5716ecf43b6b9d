import { hexToNumber } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { FINAL_SECONDS, MAX_REORG_SECONDS } from '../rpc/finality.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { isSelectedBy, readProvedLogs } from '../rpc/proved-logs.ts'
import { blockRequest, headerRequest, type NodeHeader, type NodeLog, toHeader } from '../rpc/requests.ts'
import { createIndexAudit, type MissingRows } from './audit-index.ts'
import { createBlockPace, MIN_PACE_SECONDS } from './block-pace.ts'
import { createFollowedContracts, type FollowerMemory } from './followed-contracts.ts'
import { changesOfLogs, toIndexRows, tradePlacesIn } from './followed-events.ts'
import { createIndexBranch, type IndexListener } from './index-branch.ts'
import { createNewEventsReader, LAGGING_NODE_MS } from './new-events-reader.ts'
import { createRangeReader } from './range-reader.ts'
import type { IndexStore } from './store.ts'
import type { IndexCursor } from './tables/cursor.ts'

/**
 * The state after a step. `hasMore` means that the next step has work without waiting for a new block, and
 * `isHeadKnown` that it has read the head.
 */
export type FollowerStep = { cursor: IndexCursor | undefined; head: number; hasMore: boolean; isHeadKnown: boolean }

/**
 * How far a step reads: to the `head` with proof of each block, to the newest `events`, or only `settled` blocks, which
 * takes the fewest requests.
 */
export type StepTarget = 'head' | 'events' | 'settled'

/** The blocks of the cursor and of the head after the last step; undefined before the first. */
export type IndexerStatus = { cursor: number | undefined; head: number | undefined }

export type ChainFollower = ReturnType<typeof createChainFollower>

type Head = NonNullable<ReturnType<typeof toHeader>> & { header: NodeHeader }

/** No block above this depth counts as final, whatever the node names: some name their newest block. */
const MIN_FINAL_DEPTH = 64
/** Any block this far below the head, and MAX_REORG_SECONDS old, counts as final. A longer reorg clears the index. */
const MAX_REORG_BLOCKS = 20_000
const FINALITY_INTERVAL_MS = 60_000
/** A block that is at least this old, and this far below the head, is settled: every node that is in use has it. */
const SETTLED_SECONDS = 30
const MIN_SETTLED_DEPTH = 16
/**
 * An index this far behind does not wait for blocks to settle: the chain is quiet, or was halted, so its pace is
 * unknown.
 */
const MAX_WAIT_SECONDS = 120
/** The depth at which blocks probably are old enough, while the index is empty and their pace unknown. */
const FIRST_SETTLED_DEPTH = 1_000
/** So few blocks are read one by one although nothing waits for them: that costs no more than a range. */
const FEW_BLOCKS = 10
/** The most blocks that a step reads one by one. */
const MAX_BLOCKS_ONE_BY_ONE = 100
/** While more blocks than this come in a second, events are read by their logs: a header for each costs too much. */
const MAX_HEADERS_PER_SECOND = 2
/** With more blocks than this to read, a step to the head reads the newest events first. */
const MANY_BLOCKS = 25
/** How often steps that read events also read the head, and the blocks that have settled. */
const HEAD_INTERVAL_MS = 15_000
const SETTLED_INTERVAL_MS = 60_000
/** The blocks that the first audit after a restart reads: those of this time, and at least this many. */
const AUDITED_SECONDS = 600
const MIN_AUDITED_BLOCKS = 1_000
/** How many logs of own receipts wait for an audit. */
const MAX_OWN_LOGS = 2_000
/** How long after a reorg a node below the head that showed it, or at the lost one, counts as not having noticed it. */
const UNNOTICED_MS = 3_000
/** An index this far below the head is read in ranges even while these are not trusted. */
const MAX_DISTRUSTED_BLOCKS = 5_000

/**
 * Follows the chain into the index, one piece per step. No event may be lost because a node behind a load balancer
 * lags: it returns an empty list for a range that it does not have. Near the head, a step reads block by block, with
 * proof that a node knew each one (`readProvedLogs`). Older blocks are read in ranges, which needs fewer requests;
 * `audit-index.ts` reads them again.
 */
export function createChainFollower(chain: Chain, store: IndexStore, listener: IndexListener, memory?: FollowerMemory) {
  const { rpc } = chain
  const branch = createIndexBranch(chain, store, listener)
  const pace = createBlockPace()
  const ranges = createRangeReader(rpc)
  const contracts = createFollowedContracts(chain, store, ranges, memory)
  const newEvents = createNewEventsReader(rpc)
  let headNumber = 0
  let headReadAt = 0
  let final = -1
  let finalityReadAt = 0
  let settledAt = 0
  /**
   * The blocks up to this one are read with proof, although they are settled: the index lacked some of their events.
   */
  let repairTo = -1
  /** The logs of the service's own receipts, newest last, that the index was not compared with. */
  let ownLogs: NodeLog[] = []

  /** Indexes the next blocks. Throws CHAIN_UNREACHABLE or CursorMoved; then nothing was written. */
  async function step(upTo: StepTarget): Promise<FollowerStep> {
    if (!(await branch.load())) return done(true)
    try {
      return await advance(upTo)
    } catch (error) {
      branch.forget()
      throw error
    }
  }

  const done = (hasMore: boolean, isHeadKnown = true): FollowerStep => ({
    cursor: branch.cursor(),
    head: headNumber,
    hasMore,
    isHeadKnown,
  })

  async function advance(upTo: StepTarget): Promise<FollowerStep> {
    if (upTo === 'events' && followsEvents()) {
      if (Date.now() - settledAt >= SETTLED_INTERVAL_MS) return advance('settled')
      if (Date.now() - headReadAt >= HEAD_INTERVAL_MS) await readHead()
      // A head below the index may be that of a shorter branch, which lists no logs.
      const isBelow = headNumber < (branch.cursor()?.block ?? 0)
      const step = isBelow ? undefined : await readNewEvents({ needsEvents: true })
      if (step !== undefined) return step
    }
    const head = await readHead()
    if (upTo === 'settled') settledAt = Date.now()
    else if (followsEvents() && head.number - indexed() > MANY_BLOCKS) {
      await readNewEvents({ needsEvents: false })
      if (indexed() >= head.number) return done(false)
    }
    const cursor = branch.cursor()
    const from = indexed() + 1
    if (head.number < from) {
      const isOnBranch = cursor === undefined || (head.number === cursor.block && head.hash === cursor.hash)
      return done(!isOnBranch && (await branch.rollBack(head.number)))
    }
    const { at, head: headThen, lostHash } = branch.rolledBack()
    const isUnnoticed = head.number < headThen || head.hash === lostHash
    if (isUnnoticed && Date.now() - at < UNNOTICED_MS) return done(false)
    const settled = head.number - settledDepthAt(head)
    if (from <= settled && trustsRanges(from, head.number)) {
      const step = await readSettled(from, { settled, head, upTo })
      if (step !== undefined) return step
    }
    const isNear = cursor !== undefined && head.timestamp - cursor.timestamp < MAX_WAIT_SECONDS
    const canWait = upTo === 'settled' && isNear && trustsRanges(from, head.number)
    if (canWait && head.number - from >= FEW_BLOCKS) return done(false)
    return readToHead(from, head)
  }

  /** The newest block of the index, or the one before the first that it will have. */
  const indexed = (): number => branch.cursor()?.block ?? Number(chain.startBlock) - 1

  /**
   * Returns whether blocks may be read in ranges: no node was far behind lately, and the index lacked none of their
   * events.
   */
  const trustsRanges = (from: number, head: number): boolean =>
    from > repairTo && (ranges.isTrusted() || head - from > MAX_DISTRUSTED_BLOCKS)

  async function readHead(): Promise<Head> {
    const isFinalityDue = Date.now() - finalityReadAt >= FINALITY_INTERVAL_MS
    const requests = [headerRequest('latest'), isFinalityDue ? blockRequest('finalized') : undefined] as const
    const [latest, finalized] = await rpc.batch(requests)
    const head = toHeader(latest.result)
    if (head === undefined) throw unreachable('the node has no newest block')
    headNumber = head.number
    headReadAt = Date.now()
    const cursor = branch.cursor()
    pace.measure(head, cursor && { number: cursor.block, timestamp: cursor.timestamp })
    if (finalized !== undefined) {
      const old = pace.perSecond() === 0 ? final : head.number - pace.blocksIn(FINAL_SECONDS)
      final = Math.min(toHeader(finalized.result)?.number ?? old, head.number - MIN_FINAL_DEPTH)
      finalityReadAt = Date.now()
    }
    final = Math.max(final, head.number - Math.max(MAX_REORG_BLOCKS, pace.blocksIn(MAX_REORG_SECONDS)))
    return { ...head, header: latest.result as NodeHeader }
  }

  /**
   * Returns whether the newest events may be read by their logs: blocks come fast, the node takes their range, and
   * every replica has had the time to notice the last reorg.
   */
  const followsEvents = (): boolean =>
    branch.cursor() !== undefined &&
    Date.now() - branch.rolledBack().at >= UNNOTICED_MS &&
    pace.perSecond() > MAX_HEADERS_PER_SECOND &&
    trustsRanges(indexed() + 1, headNumber) &&
    headNumber + pace.perSecond() * MIN_PACE_SECONDS - (knownLog()?.number ?? indexed()) < ranges.blocks()

  const auditedBlocks = (): number => Math.max(MIN_AUDITED_BLOCKS, pace.blocksIn(AUDITED_SECONDS))

  /** Returns the newest block of the index that is known to have a log, if it is not too old for a range. */
  function knownLog() {
    const anchor = branch.anchor()
    const age = anchor && indexed() - anchor.number
    return age !== undefined && age >= 0 && age < pace.perSecond() * MAX_WAIT_SECONDS ? anchor : undefined
  }

  /** Reads the newest events by their logs. Returns undefined if the head must be read. */
  async function readNewEvents({ needsEvents }: { needsEvents: boolean }): Promise<FollowerStep | undefined> {
    const cursor = branch.cursor()
    if (cursor === undefined) return undefined
    const read = await newEvents.read(cursor, { known: knownLog(), filters: await contracts.filters(), needsEvents })
    if (read === 'unusable') return undefined
    if (read === 'nothing') return done(false, false)
    headNumber = Math.max(headNumber, read.last.number)
    return done(!(await append(read.last, read.logs, read.newest)), false)
  }

  /** Reads blocks one by one, as far as nodes prove that they know them. */
  async function readToHead(from: number, head: Head): Promise<FollowerStep> {
    const after = { number: from - 1, hash: branch.cursor()?.hash }
    const to = Math.min(head.number, after.number + MAX_BLOCKS_ONE_BY_ONE)
    const range = { after, to, newest: head.header }
    const { last, logs, isForked } = await readProvedLogs(rpc, await contracts.filters(), range, LAGGING_NODE_MS)
    if (last === undefined) return done(isForked && (await branch.rollBack(head.number)))
    if (!(await append(last, logs))) return done(true)
    return done(last.number === to && to < head.number)
  }

  /** Returns how far below the head a block is probably settled, from the pace of the blocks above the cursor. */
  function settledDepthAt(head: { number: number; timestamp: number }): number {
    const cursor = branch.cursor()
    if (cursor === undefined) return FIRST_SETTLED_DEPTH
    const secondsPerBlock = (head.timestamp - cursor.timestamp) / (head.number - cursor.block)
    return Math.max(MIN_SETTLED_DEPTH, Math.ceil((1.25 * SETTLED_SECONDS) / Math.max(secondsPerBlock, 0.01)))
  }

  /**
   * Reads blocks up to a settled one in ranges. Returns undefined if it is not old enough, or a node does not have it.
   */
  async function readSettled(
    from: number,
    { settled, head, upTo }: { settled: number; head: Head; upTo: StepTarget },
  ): Promise<FollowerStep | undefined> {
    const filters = await contracts.filters()
    const read = await ranges.read(from, settled, { filters, cursor: branch.cursor(), auditedBlocks: auditedBlocks() })
    if (read === 'forked') return done(await branch.rollBack(head.number))
    if (read === 'behind') return undefined
    if (read === 'limited') {
      await contracts.remember()
      return done(true)
    }
    const { target, logs } = read
    if (head.timestamp - target.timestamp < SETTLED_SECONDS) return undefined
    // The chain changed during the step: the logs are not from the target's branch.
    if (logs.some(log => hexToNumber(log.blockNumber) === target.number && log.blockHash !== target.hash))
      return done(false)
    if (!(await append(target, logs))) return done(true)
    return done(target.number < settled || upTo !== 'settled')
  }

  /**
   * Writes the rows of logs up to a block. Returns false if a log names a contract whose logs must be read too.
   * `newest` is a log that the chain has besides.
   */
  async function append(to: Parameters<typeof branch.append>[0], logs: readonly NodeLog[], newest?: NodeLog) {
    if (await contracts.addNamed(logs)) return false
    await branch.append(to, logs, await contracts.open(), { head: headNumber, final, newest })
    return true
  }

  const indexAudit = createIndexAudit(chain, store, async logs =>
    toIndexRows(chain, await contracts.open(), logs, await readBlockTimes(rpc, logs), store),
  )

  /**
   * Compares the index with what nodes return now, and returns what it lacks up to a block. Throws CHAIN_UNREACHABLE.
   */
  async function audit(): Promise<(MissingRows & { upTo: IndexCursor }) | undefined> {
    const upTo = branch.cursor()
    if (upTo === undefined) return undefined
    const missing =
      (await missingOwnTrades(upTo)) ??
      (await indexAudit.run(upTo, {
        filters: await contracts.filters(),
        rangeBlocks: ranges.blocks(),
        auditedBlocks: auditedBlocks(),
      }))
    return missing && { ...missing, upTo }
  }

  /** Compares the trades of own receipts with the index once it has passed them: a node may hide any of its logs. */
  async function missingOwnTrades({ block }: IndexCursor): Promise<MissingRows | undefined> {
    const passed = ownLogs.filter(({ blockNumber }) => hexToNumber(blockNumber) <= block)
    const places = tradePlacesIn(chain, await contracts.open(), passed)
    const missing = places.length === 0 ? undefined : await indexAudit.missingAt(passed, places)
    ownLogs = ownLogs.filter(log => !passed.includes(log))
    return missing
  }

  /** Remembers logs of the service's own receipts for the next audit. */
  function expectOwn(logs: readonly NodeLog[]): void {
    ownLogs = [...ownLogs, ...logs].slice(-MAX_OWN_LOGS)
  }

  /**
   * Makes the next steps read the blocks again from the first missing row on. Returns false if there was a reorg since
   * the audit. Throws CHAIN_UNREACHABLE or CursorMoved.
   */
  async function repair(missing: MissingRows & { upTo: IndexCursor }): Promise<boolean> {
    const reached = await branch.undoMissing(missing, headNumber)
    if (reached !== undefined) repairTo = reached
    return reached !== undefined
  }

  /** Drops the cursor: the next step deletes the rows from events and reads the chain from the start block. */
  async function restart(): Promise<void> {
    await branch.drop()
    contracts.forget()
  }

  /** Returns what the logs of a receipt change. Throws CHAIN_UNREACHABLE. */
  const changesIn = async (logs: readonly NodeLog[]) => changesOfLogs(chain, await contracts.open(), logs)

  /** Returns the newest block of logs that are followed; undefined if none is. Throws CHAIN_UNREACHABLE. */
  async function newestFollowed(logs: readonly NodeLog[]): Promise<number | undefined> {
    const filters = await contracts.filters()
    const followed = logs.filter(log => filters.some(filter => isSelectedBy(filter)(log)))
    return followed.length === 0 ? undefined : Math.max(...followed.map(log => hexToNumber(log.blockNumber)))
  }

  return {
    step,
    audit,
    repair,
    expectOwn,
    changesIn,
    newestFollowed,
    restart,
  }
}
