import { type Address, type Hex, hexToNumber } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { contractsWithoutCode } from '../chain/contracts-without-code.ts'
import type { RpcResponse } from '../rpc/endpoint-client.ts'
import { FINAL_SECONDS, MAX_REORG_SECONDS } from '../rpc/finality.ts'
import {
  createLogRangeSize,
  isOverload,
  isRefusedForNow,
  isTopicLimit,
  mayBeTruncated,
  REFUSED_SENDS,
} from '../rpc/log-range-size.ts'
import { readBlockTimes } from '../rpc/logs.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { inOrder, isSelectedBy, readProvedLogs } from '../rpc/proved-logs.ts'
import {
  blockRequest,
  chainIdRequest,
  headerRequest,
  type LogFilter,
  logsRequest,
  type NodeBlock,
  type NodeHeader,
  type NodeLog,
  newLogsRequest,
  type RpcRequest,
  toHeader,
} from '../rpc/requests.ts'
import { createIndexAudit, type MissingRows } from './audit-index.ts'
import {
  addNamedContract,
  changesOfLogs,
  FOLLOWED_TOPICS,
  followedAddresses,
  MULTIPLIER_TOPICS,
  type NamedContracts,
  toIndexRows,
  tradePlacesIn,
} from './followed-events.ts'
import { readNamedContracts } from './read-named-contracts.ts'
import type { IndexRows, IndexStore } from './store.ts'
import { type IndexCursor, indexKeyOf, type Reorg } from './tables/cursor.ts'

/** Called after commit. Delivery is at-least-once: the last write may be repeated after a crash. */
export type IndexListener = {
  onAppend(rows: IndexRows): void
  onReorg(reorg: Reorg): void
}

/**
 * What the follower keeps while its object is evicted, so that the first step after that asks no more of a node than
 * others.
 */
export type FollowerMemory = {
  read(): Promise<RememberedNode | undefined>
  write(remembered: RememberedNode): Promise<void>
}
/**
 * What was read at a time (epoch milliseconds) for the contracts of `key`. `rangeBlocks` is the range of logs that the
 * node accepts.
 */
type RememberedNode = { key: string; at: number; named: NamedContracts; rangeBlocks: number }

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
const MAX_MEMORY_AGE_MS = 3_600_000
/** How many hashes are compared per request to find the common ancestor. Most reorgs are shorter. */
const ANCESTORS_PER_REQUEST = 64
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
/** The shortest time in seconds over which the pace of blocks is measured: many share a timestamp. */
const MIN_PACE_SECONDS = 10
/** How often steps that read events also read the head, and the blocks that have settled. */
const HEAD_INTERVAL_MS = 15_000
const SETTLED_INTERVAL_MS = 60_000
/** The blocks that the first audit after a restart reads: those of this time, and at least this many. */
const AUDITED_SECONDS = 600
const MIN_AUDITED_BLOCKS = 1_000
/** How many logs of own receipts wait for an audit. */
const MAX_OWN_LOGS = 2_000
/** After this many responses in a row without the newest known log, the node does not lag: the chain has changed. */
const MAX_DOUBTS = 3
/** After this many refusals in a row, the head is read: from a node that refuses every other request, almost never. */
const MAX_REFUSALS = 16
/** How long after a reorg a node below the head that showed it, or at the lost one, counts as not having noticed it. */
const UNNOTICED_MS = 3_000
/** How long nodes get, within a step, to learn of a block that another one has. */
const LAGGING_NODE_MS = 500
/**
 * How long ranges are not trusted after a node lacked a settled block, and from how far below the head they are all the
 * same.
 */
const DISTRUST_MS = 600_000
const MAX_DISTRUSTED_BLOCKS = 5_000
/** A step reads several ranges if the node accepts only ranges as small as this. */
const SMALL_RANGE_BLOCKS = 100
const MAX_SMALL_RANGES = 24

/**
 * Follows the chain into the index, one piece per step. No event may be lost because a node behind a load balancer
 * lags: it returns an empty list for a range that it does not have. Near the head, a step reads block by block, with
 * proof that a node knew each one (`readProvedLogs`). Older blocks are read in ranges, which needs fewer requests;
 * `audit-index.ts` reads them again.
 */
export function createChainFollower({
  chain,
  store,
  listener,
  memory,
}: {
  chain: Chain
  store: IndexStore
  listener: IndexListener
  memory?: FollowerMemory | undefined
}) {
  const { rpc } = chain
  let rangeSize = createLogRangeSize()
  let cursor: IndexCursor | undefined
  let isCursorLoaded = false
  let named: NamedContracts | undefined
  let namedAt = 0
  let headNumber = 0
  let final = -1
  let finalityReadAt = 0
  let headReadAt = 0
  let settledAt = 0
  /** The blocks per second, and the block since which they are counted. */
  let pace = 0
  let paceFrom: { number: number; timestamp: number } | undefined
  /** The newest block that is known to have a log. */
  let anchor: { number: number; hash: Hex } | undefined
  let doubts = 0
  let refusals = 0
  /** The first block of the last range whose request failed without a response. */
  let failedFrom = -1
  /**
   * The blocks up to this one are read with proof, although they are settled: the index lacked some of their events.
   */
  let repairTo = -1
  let distrustedUntil = 0
  /** The last reorg: when the index was rolled back, at which head, and from which one. */
  let reorged: { at: number; head: number; lostHash: Hex | undefined } = { at: 0, head: 0, lostHash: undefined }
  /** The logs of the service's own receipts, newest last, that the index was not compared with. */
  let ownLogs: NodeLog[] = []
  /** How many topics a filter has at most: fewer once a node has limited them. */
  let maxTopics = FOLLOWED_TOPICS.length

  /** Indexes the next blocks. Throws CHAIN_UNREACHABLE or CursorMoved; then nothing was written. */
  async function step(upTo: StepTarget): Promise<FollowerStep> {
    if (!isCursorLoaded) {
      cursor = await store.readCursor()
      if (cursor === undefined) {
        // An index of other contracts is deleted here, which a wrong address must not cause.
        if ((await contractsWithoutCode(chain)).length > 0) throw unreachable('configured contracts have no code')
        if (await store.deleteObsolete()) return done(true)
      }
    }
    isCursorLoaded = true
    try {
      return await advance(await openNamed(), upTo)
    } catch (error) {
      isCursorLoaded = false // the stored cursor decides where the next step starts
      throw error
    }
  }

  const done = (hasMore: boolean, isHeadKnown = true): FollowerStep => ({
    cursor,
    head: headNumber,
    hasMore,
    isHeadKnown,
  })

  async function advance(named: NamedContracts, upTo: StepTarget): Promise<FollowerStep> {
    if (upTo === 'events' && followsEvents()) {
      if (Date.now() - settledAt >= SETTLED_INTERVAL_MS) return advance(named, 'settled')
      if (Date.now() - headReadAt >= HEAD_INTERVAL_MS) await readHead()
      // A head below the index may be that of a shorter branch, which lists no logs.
      const isBelow = cursor !== undefined && headNumber < cursor.block
      const step = isBelow ? undefined : await readNewEvents(named, { needsEvents: true })
      if (step !== undefined) return step
    }
    const head = await readHead()
    if (upTo === 'settled') settledAt = Date.now()
    else if (followsEvents() && cursor && head.number - cursor.block > MANY_BLOCKS) {
      await readNewEvents(named, { needsEvents: false })
      if (cursor.block >= head.number) return done(false)
    }
    const from = cursor === undefined ? Number(chain.startBlock) : cursor.block + 1
    if (head.number < from) {
      const isOnBranch = cursor === undefined || (head.number === cursor.block && head.hash === cursor.hash)
      return done(!isOnBranch && cursor !== undefined && (await rollBack(cursor, head.number)))
    }
    const isUnnoticed = head.number < reorged.head || head.hash === reorged.lostHash
    if (isUnnoticed && Date.now() - reorged.at < UNNOTICED_MS) return done(false)
    const settled = head.number - settledDepthAt(head)
    if (from <= settled && trustsRanges(from, head.number)) {
      const step = await readSettled(from, { settled, head, upTo }, named)
      if (step !== undefined) return step
    }
    const isNear = cursor !== undefined && head.timestamp - cursor.timestamp < MAX_WAIT_SECONDS
    const canWait = upTo === 'settled' && isNear && trustsRanges(from, head.number)
    if (canWait && head.number - from >= FEW_BLOCKS) return done(false)
    return readToHead(from, head, named)
  }

  /**
   * Returns whether blocks may be read in ranges: no node was far behind lately, and the index lacked none of their
   * events.
   */
  const trustsRanges = (from: number, head: number): boolean =>
    from > repairTo && (Date.now() >= distrustedUntil || head - from > MAX_DISTRUSTED_BLOCKS)

  async function readHead(): Promise<Head> {
    const isFinalityDue = Date.now() - finalityReadAt >= FINALITY_INTERVAL_MS
    const requests = [headerRequest('latest'), isFinalityDue ? blockRequest('finalized') : undefined] as const
    const [latest, finalized] = await rpc.batch(requests)
    const head = toHeader(latest.result)
    if (head === undefined) throw unreachable('the node has no newest block')
    headNumber = head.number
    headReadAt = Date.now()
    measurePace(head)
    if (finalized !== undefined) {
      const old = pace === 0 ? final : head.number - Math.ceil(pace * FINAL_SECONDS)
      final = Math.min(toHeader(finalized.result)?.number ?? old, head.number - MIN_FINAL_DEPTH)
      finalityReadAt = Date.now()
    }
    final = Math.max(final, head.number - Math.max(MAX_REORG_BLOCKS, Math.ceil(pace * MAX_REORG_SECONDS)))
    return { ...head, header: latest.result as NodeHeader }
  }

  function measurePace(head: { number: number; timestamp: number }) {
    paceFrom ??= cursor && { number: cursor.block, timestamp: cursor.timestamp }
    const seconds = head.timestamp - (paceFrom?.timestamp ?? head.timestamp)
    if (paceFrom !== undefined && seconds >= MIN_PACE_SECONDS) {
      pace = Math.max(0, head.number - paceFrom.number) / seconds
      paceFrom = undefined
    }
    paceFrom ??= head
  }

  /**
   * Returns whether the newest events may be read by their logs: blocks come fast, the node takes their range, and
   * every replica has had the time to notice the last reorg.
   */
  const followsEvents = (): boolean =>
    cursor !== undefined &&
    Date.now() - reorged.at >= UNNOTICED_MS &&
    pace > MAX_HEADERS_PER_SECOND &&
    trustsRanges(cursor.block + 1, headNumber) &&
    headNumber + pace * MIN_PACE_SECONDS - (knownLog(cursor)?.number ?? cursor.block) < rangeSize.blocks()

  /** Returns how many blocks the audit reads at first. */
  const auditedBlocks = (): number => Math.max(MIN_AUDITED_BLOCKS, Math.ceil(pace * AUDITED_SECONDS))

  /** Returns the newest block of the index that is known to have a log, if it is not too old for a range. */
  const knownLog = ({ block }: IndexCursor): typeof anchor =>
    anchor && anchor.number <= block && block - anchor.number < pace * MAX_WAIT_SECONDS ? anchor : undefined

  /**
   * Reads the logs from the newest known one on, with one request whose response proves itself: a node that lists a log
   * has its block and those before it, and one that lists the known log is on the index's branch. So the index moves to
   * the last block with a log and never beyond: without logs, nothing is proved. Tokens' transfers are listed too, and
   * prove as much. A node that lags lists nothing new, and delays events. Before the index moves, the earlier blocks
   * are listed a second time, by another node if there are several, and the last one, which may be listed in part, is
   * read with proof. `needsEvents` leaves the index where it is if nothing but transfers has come. Returns undefined if
   * the head must be read: the response is unusable, or the chain may have changed.
   */
  async function readNewEvents(
    named: NamedContracts,
    { needsEvents }: { needsEvents: boolean },
  ): Promise<FollowerStep | undefined> {
    if (cursor === undefined) return undefined
    const { block, hash } = cursor
    const known = knownLog(cursor)
    const filters = filtersOf(named)
    // In a batch, because the refusal of a single request would count as a failure of its node.
    const [{ result, error }] = await rpc.batch([newLogsRequest(union(filters), known?.number ?? block)])
    refusals = isRefusedForNow(error) ? refusals + 1 : 0
    if (refusals > 0 && refusals < MAX_REFUSALS) return done(false, false)
    if (result === undefined || mayBeTruncated(result.length)) return undefined
    const isSelected = (log: NodeLog) => filters.some(filter => isSelectedBy(filter)(log))
    const numberOf = ({ blockNumber }: NodeLog) => hexToNumber(blockNumber)
    const old = result.filter(log => numberOf(log) <= block)
    const hashes = new Map([known, { number: block, hash }].map(each => [each?.number, each?.hash]))
    if (old.some(log => (hashes.get(numberOf(log)) ?? log.blockHash) !== log.blockHash)) return undefined
    if (known && old.some(log => numberOf(log) > known.number && isSelected(log))) return undefined
    const doubt = () => (++doubts < MAX_DOUBTS ? done(false, false) : undefined)
    if (known && !old.some(log => numberOf(log) === known.number)) return doubt()

    const fresh = inOrder(result.filter(log => numberOf(log) > block))
    const isLast = ({ blockNumber }: NodeLog) => blockNumber === fresh.at(-1)?.blockNumber
    const events = fresh.filter(isSelected)
    const hasEventsLast = events.some(isLast)
    const target = hasEventsLast ? fresh.at(-1) : fresh.findLast(log => !isLast(log))
    if (target === undefined || (needsEvents && events.length === 0)) {
      doubts = 0
      return done(false, false)
    }
    const to = numberOf(target)
    const earlier = { fromBlock: block + 1, toBlock: to - 1 }
    const again = earlier.toBlock > block ? logsRequest(union(filters), earlier) : undefined
    const second =
      again && ((await otherLogs(again)) ?? ((await readAgainIfRefused([again]))[0] as RpcResponse<NodeLog[]>))
    const [header, own] = await rpc.batch([headerRequest(to), known ? undefined : blockRequest(block)])
    if (own && own.result?.hash !== hash) return undefined
    const before = events.filter(log => numberOf(log) < to)
    const isSame = !second || placesOf(second.result?.filter(isSelected)) === placesOf(before)
    if (!isSame || !header.result || header.result.hash !== target.blockHash) return doubt()
    const range = { after: { number: to - 1, hash: header.result.parentHash }, to, newest: header.result }
    const { last, logs } = await readProvedLogs(rpc, filters, range, LAGGING_NODE_MS)
    if (last === undefined) return doubt()
    doubts = 0
    headNumber = Math.max(headNumber, to)
    return done(!(await append(last, [...before, ...logs], named, target)), false)
  }

  /** Requests logs from the second choice of several nodes; undefined without one, or if it does not respond. */
  async function otherLogs(request: RpcRequest<NodeLog[]>): Promise<RpcResponse<NodeLog[]> | undefined> {
    if (rpc.nodes === 1) return undefined
    const response = await rpc
      .abortAfter(LAGGING_NODE_MS, async ({ signal }) => rpc.preferred(1)?.send(request, signal))
      .catch(() => undefined)
    return response?.result && response
  }

  /** Reads blocks one by one, as far as nodes prove that they know them. */
  async function readToHead(from: number, head: Head, named: NamedContracts): Promise<FollowerStep> {
    const after = { number: from - 1, hash: cursor?.hash }
    const to = Math.min(head.number, after.number + MAX_BLOCKS_ONE_BY_ONE)
    const range = { after, to, newest: head.header }
    const { last, logs, isForked } = await readProvedLogs(rpc, filtersOf(named), range, LAGGING_NODE_MS)
    if (last === undefined) return done(isForked && cursor !== undefined && (await rollBack(cursor, head.number)))
    if (!(await append(last, logs, named))) return done(true)
    return done(last.number === to && to < head.number)
  }

  /** Returns how far below the head a block is probably settled, from the pace of the blocks above the cursor. */
  function settledDepthAt(head: { number: number; timestamp: number }): number {
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
    named: NamedContracts,
  ): Promise<FollowerStep | undefined> {
    const size = rangeSize.blocks()
    const to = Math.min(settled, from + size * (size > SMALL_RANGE_BLOCKS ? 1 : MAX_SMALL_RANGES) - 1)
    const ranges = Array.from({ length: Math.ceil((to - from + 1) / size) }, (_, index) => ({
      fromBlock: from + index * size,
      toBlock: Math.min(to, from + (index + 1) * size - 1),
    }))
    const { target, responses, ownBlock } = await readRanges(to, ranges, filtersOf(named))
    if (ownBlock && cursor && ownBlock.hash !== cursor.hash) return done(await rollBack(cursor, head.number))
    for (const [index, { result, error }] of responses.entries()) {
      const { fromBlock = from, toBlock = to } = ranges[index % ranges.length] ?? {}
      const isTruncated = result !== undefined && toBlock > fromBlock && mayBeTruncated(result.length)
      if (error === undefined && !isTruncated) continue
      const message = error?.message ?? ''
      if (isTopicLimit(message) && maxTopics > 1) {
        maxTopics = Math.ceil(maxTopics / 2)
        return done(true)
      }
      if (isOverload(message) || !rangeSize.reject(toBlock - fromBlock + 1, message))
        throw unreachable('the node returns no logs')
      await remember(named)
      return done(true)
    }
    const logs = inOrder(responses.slice(0, ranges.length).flatMap(({ result }) => result ?? []))
    const isSame = responses
      .slice(ranges.length)
      .every(({ result }, index) => result?.length === responses[index]?.result?.length)
    if (target === undefined || ownBlock === null || !isSame) {
      distrustedUntil = Date.now() + DISTRUST_MS // a node is far behind
      return undefined
    }
    if (head.timestamp - target.timestamp < SETTLED_SECONDS) return undefined
    // The chain changed during the step: the logs are not from the target's branch.
    if (logs.some(log => hexToNumber(log.blockNumber) === to && log.blockHash !== target.hash)) return done(false)
    if (!(await append(target, logs, named))) return done(true)
    for (const [index, { fromBlock, toBlock }] of ranges.entries())
      rangeSize.accept(toBlock - fromBlock + 1, responses[index]?.result?.length ?? 0)
    return done(to < settled || upTo !== 'settled')
  }

  /**
   * Reads ranges of logs, and one that the audit does not cover twice, because another node may return it the second
   * time. After them it reads the cursor's block: if a reorg happens in between, it no longer matches.
   */
  async function readRanges(
    to: number,
    ranges: readonly { fromBlock: number; toBlock: number }[],
    filters: readonly LogFilter[],
  ) {
    const isAudited = ranges.every(({ fromBlock }) => to - fromBlock < auditedBlocks())
    const twice = ranges.length === 1 && !isAudited ? [...ranges, ...ranges] : ranges
    const requests = [blockRequest(to), ...twice.flatMap(range => filters.map(filter => logsRequest(filter, range)))]
    const [target, ...rest] = await readAgainIfRefused(
      cursor ? [...requests, blockRequest(cursor.block)] : requests,
    ).catch(error => {
      const [{ fromBlock, toBlock } = { fromBlock: to, toBlock: to }] = ranges
      const isThrottled = (rpc.preferred()?.throttledUntil ?? 0) > Date.now()
      // The response may have been too large; a connection that breaks once says nothing.
      if (!isThrottled && failedFrom === fromBlock) rangeSize.reject(toBlock - fromBlock + 1, '')
      failedFrom = fromBlock
      throw error
    })
    return {
      target: toHeader(target?.result as NodeBlock | null | undefined),
      responses: twice.map((_, index) =>
        combined(rest.slice(index * filters.length, (index + 1) * filters.length) as RpcResponse<NodeLog[]>[]),
      ),
      ownBlock: rest[twice.length * filters.length]?.result as NodeBlock | null | undefined,
    }
  }

  /**
   * Sends a batch, and again what the node refuses for no reason, with the last request: it shows whether the chain has
   * changed since the others.
   */
  async function readAgainIfRefused(requests: readonly RpcRequest[]): Promise<RpcResponse[]> {
    const responses: RpcResponse[] = [...(await rpc.batch<RpcRequest[]>([...requests]))]
    for (let sends = 1; sends < REFUSED_SENDS; sends++) {
      if (!responses.some(({ error }) => isRefusedForNow(error))) break
      const again = [...responses.keys()].filter(
        index => index === responses.length - 1 || isRefusedForNow(responses[index]?.error),
      )
      const repeated = await rpc.batch<RpcRequest[]>(again.map(index => requests[index] as RpcRequest))
      for (const [at, index] of again.entries()) responses[index] = repeated[at] as RpcResponse
    }
    return responses
  }

  /**
   * Writes the rows of logs up to a block. Returns false if a log names a contract whose logs must be read too.
   * `newest` is a log that the chain has besides.
   */
  async function append(
    to: { number: number; hash: Hex; timestamp: number },
    logs: readonly NodeLog[],
    named: NamedContracts,
    newest = logs.at(-1),
  ): Promise<boolean> {
    const newlyNamed = logs.filter(log => addNamedContract(chain, named, log))
    if (newlyNamed.length > 0) {
      await remember(named)
      return false
    }
    const rows = await toIndexRows(chain, named, logs, await readBlockTimes(rpc, logs), store)
    const next = { block: to.number, hash: to.hash, timestamp: to.timestamp, head: headNumber, final }
    await store.append(cursor, next, rows)
    cursor = next
    if (newest) anchor = { number: hexToNumber(newest.blockNumber), hash: newest.blockHash }
    listener.onAppend(rows)
    return true
  }

  /** Tokens have a filter of their own: vaults' transfers are followed, and those of tokens never are. */
  const filtersOf = (named: NamedContracts): LogFilter[] => [
    ...inParts(FOLLOWED_TOPICS, maxTopics).map(topics => ({
      address: followedAddresses(chain, named),
      topics: [topics],
    })),
    ...(named.tokens.size > 0 ? [{ address: [...named.tokens], topics: [MULTIPLIER_TOPICS] }] : []),
  ]

  const indexAudit = createIndexAudit({
    chain,
    store,
    readRows: async logs => toIndexRows(chain, await openNamed(), logs, await readBlockTimes(rpc, logs), store),
  })

  /**
   * Compares the index with what nodes return now, and returns what it lacks up to a block. Throws CHAIN_UNREACHABLE.
   */
  async function audit(): Promise<(MissingRows & { upTo: IndexCursor }) | undefined> {
    if (cursor === undefined || !isCursorLoaded) return undefined
    const upTo = cursor
    const missing =
      (await missingOwnTrades(upTo)) ??
      (await indexAudit.run(upTo, {
        filters: filtersOf(await openNamed()),
        rangeBlocks: rangeSize.blocks(),
        auditedBlocks: auditedBlocks(),
      }))
    return missing && { ...missing, upTo }
  }

  /** Compares the trades of own receipts with the index once it has passed them: a node may hide any of its logs. */
  async function missingOwnTrades({ block }: IndexCursor): Promise<MissingRows | undefined> {
    const passed = ownLogs.filter(({ blockNumber }) => hexToNumber(blockNumber) <= block)
    const places = tradePlacesIn(chain, await openNamed(), passed)
    const missing = places.length === 0 ? undefined : await indexAudit.missingAt(passed, places)
    ownLogs = ownLogs.filter(log => !passed.includes(log))
    return missing
  }

  /** Remembers logs of the service's own receipts for the next audit. */
  function expectOwn(logs: readonly NodeLog[]): void {
    ownLogs = [...ownLogs, ...logs].slice(-MAX_OWN_LOGS)
  }

  /**
   * Rolls the index back to the block before its first missing row. The next steps read the blocks again, which streams
   * see as a reorg. Returns false if there was a reorg meanwhile; the next audit finds what is still missing. Throws
   * CHAIN_UNREACHABLE or CursorMoved.
   */
  async function repair({ firstBlock, upTo }: MissingRows & { upTo: IndexCursor }): Promise<boolean> {
    const [own, ancestor] = await rpc.batch([blockRequest(upTo.block), blockRequest(firstBlock - 1)])
    const block = toHeader(ancestor.result)
    if (block === undefined || own.result?.hash !== upTo.hash) return false
    if (cursor === undefined || cursor.block < upTo.block) return false
    repairTo = cursor.block
    await undoAbove(cursor, block)
    return true
  }

  async function openNamed(): Promise<NamedContracts> {
    if (named !== undefined) return named
    const remembered = await memory?.read()
    if (remembered?.key === indexKeyOf(chain) && Date.now() - remembered.at < MAX_MEMORY_AGE_MS) {
      namedAt = remembered.at
      rangeSize = createLogRangeSize(remembered.rangeBlocks)
      named = remembered.named
      for (const vault of Object.values(chain.vaults)) named.vaults.add(vault)
      if (chain.trading) named.routers.add(chain.trading.TradeRouter)
      named.oracles.add(chain.contracts.PriceOracle)
      named.tokens = new Set([...(named.tokens ?? []), ...Object.values(chain.tokens)])
      return named
    }
    const read = await readNamedContracts(chain, store)
    namedAt = Date.now()
    await remember(read)
    named = read
    return read
  }

  /** Written before the cursor passes a log that names a contract, whose logs would be lost otherwise. */
  const remember = async (named: NamedContracts) =>
    memory?.write({ key: indexKeyOf(chain), at: namedAt, named, rangeBlocks: rangeSize.blocks() })

  /**
   * Rolls the index back to the newest block that the chain still has. Returns whether anything was undone. A node of
   * another chain, to which a provider may fail over, undoes nothing. Throws CHAIN_UNREACHABLE.
   */
  async function rollBack(from: IndexCursor, head: number): Promise<boolean> {
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
        await undoAbove(from, block)
        return true
      }
    }
    if (candidates.length === 0) return false
    // No common block: the chain has begun again, or the reorg is longer than the index can undo.
    await store.discard()
    cursor = undefined
    anchor = undefined
    isCursorLoaded = false // the next steps delete its rows
    listener.onReorg({ ancestor: -1, ancestorHash: '0x', lost: from.block, lostHash: from.hash, at: nowSeconds() })
    return true
  }

  async function undoAbove(from: IndexCursor, ancestor: { number: number; hash: Hex; timestamp: number }) {
    const { number: block, hash, timestamp } = ancestor
    const reorg = { ancestor: block, ancestorHash: hash, lost: from.block, lostHash: from.hash, at: nowSeconds() }
    await store.rollback(from, { block, hash, timestamp }, reorg)
    cursor = { ...from, block, hash, timestamp, final: Math.min(from.final, block) }
    anchor = undefined
    reorged = { at: Date.now(), head: headNumber, lostHash: from.hash }
    listener.onReorg(reorg)
  }

  /** Drops the cursor: the next step deletes the rows from events and reads the chain from the start block. */
  async function restart(): Promise<void> {
    await store.dropCursor()
    anchor = undefined
    isCursorLoaded = false
    named = undefined
  }

  /** Returns what the logs of a receipt change. Throws CHAIN_UNREACHABLE. */
  const changesIn = async (logs: readonly NodeLog[]) => changesOfLogs(chain, await openNamed(), logs)

  /** Returns the newest block of logs that are followed; undefined if none is. Throws CHAIN_UNREACHABLE. */
  async function newestFollowed(logs: readonly NodeLog[]): Promise<number | undefined> {
    const filters = filtersOf(await openNamed())
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
    vaults: (): Address[] => [...(named?.vaults ?? [])],
  }
}

/** Returns the logs of one range by all filters; failed if one of them failed. */
function combined(responses: readonly RpcResponse<NodeLog[]>[]): RpcResponse<NodeLog[]> {
  const failed = responses.find(({ result }) => result === undefined)
  return failed ?? { result: responses.flatMap(({ result }) => result ?? []) }
}

/** Returns items in parts of at most this many. */
const inParts = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))

/** Returns a filter that selects what any of them does, and more. */
const union = (filters: readonly LogFilter[]): LogFilter => ({
  address: filters.flatMap(({ address }) => address),
  topics: [filters.flatMap(({ topics: [first] }) => first ?? [])],
})

/** Returns where logs are, to compare lists of them; undefined for no list. */
const placesOf = (logs: readonly NodeLog[] | undefined): string | undefined =>
  logs &&
  inOrder(logs)
    .map(({ blockHash, logIndex }) => `${blockHash} ${hexToNumber(logIndex)}`)
    .join()

const nowSeconds = () => Math.floor(Date.now() / 1000)
