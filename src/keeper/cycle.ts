import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { isOwnerClosing, type WatchedPosition } from '@agent-trading-service/protocol/position'
import type { Block } from '../chain/block-type.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import { readChangedPositions } from '../chain/read-changed-position-ids.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { type Market, readWatchedPositions, type WatchedPositions } from '../chain/watched-positions.ts'
import { logUnexpected } from '../executor/background-errors.ts'
import type { Executor } from '../executor/client.ts'
import { attributeExits } from './exit-attribution.ts'
import { decideExit, marketDeferralOf } from './exit-decision.ts'
import { createExitSender } from './exit-sender.ts'
import { closedEntry, dueEntry, isExitUndone, undoneEntry, waitingEntry } from './exit-state-transitions.ts'
import { type KeeperEntry, newEntry, refreshedEntry } from './keeper-entry.ts'
import { type KeeperStore, type LastCycle, marketKey } from './store.ts'
import { changesByKey, differenceOf, NO_CHANGES } from './unhandled-changes.ts'

/** Exits per transaction. A full batch stays below the lane's gas ceiling. */
const MAX_BATCH = 24
/** A head this many blocks below the previous one belongs to another chain. */
const MAX_REORG = 100n
/** How long after an executed exit its events are read again. */
const REORG_WATCH_SECONDS = 60n
const RECENT_CHECK_INTERVAL_MS = 3_000

/** Up to this many open positions, every cycle reads all of them. */
const MAX_READ_WHOLE = 170
/** Above that, each cycle compares enough positions with the chain to reach all of them within this time. */
const SWEEP_MS = 480_000
const MAX_COMPARED = 600
const MAX_CLOSED_COMPARED = 100
/** The most positions per cycle that are read because a price reaches their trigger. */
const MAX_REACHED = 1_200
/** The most positions per cycle that are read because an event names them or their row differs from the chain. */
const MAX_CHANGED = 1_200
/** Events of older blocks are not read: the sweep finds what they changed. */
const MAX_EVENT_BLOCKS = 2_000n
/** Events of this many blocks are read again: the node may have been behind, or a reorg may have changed them. */
const EVENT_OVERLAP_BLOCKS = 32n
/** Closed positions to compare with the chain per second: a reorg may have opened them again. */
const CLOSED_PER_SECOND = 50

export type KeeperCycle = ReturnType<typeof createCycle>

/** Returns the keeper's cycle: one pass over the positions that may be due, which fires their exits. */
export function createCycle({
  chain,
  executor,
  store,
  respectSessions,
}: {
  chain: TradingChain
  executor: Executor
  store: KeeperStore
  respectSessions: boolean
}) {
  /** When the events of recent exits were last read again, in milliseconds. */
  let recentCheckedAt = 0
  let sweptAt = 0
  /** The last position of each market that the price reached and a cycle read. */
  const lastReached = new Map<string, bigint>()
  /** The changes by events of the last blocks whose positions were read since. */
  let handled = NO_CHANGES
  const sender = createExitSender({ chain, executor, store })

  /**
   * Runs one cycle. Returns a promise that resolves once its exits are recorded, which may take several blocks, and the
   * `failure` of its second pass, which does not stop the exits of the first. Throws CHAIN_UNREACHABLE.
   */
  async function run(): Promise<{ outcomes: Promise<unknown>; failure?: unknown }> {
    const now = Date.now()
    await Promise.all(store.batches().map(batch => sender.resume(batch).catch(logUnexpected)))
    const previous = store.lastCycle()
    const read = await readWatched(now, previous)
    const { watched } = read
    const first = await evaluate(watched, now)
    // A cursor moves once the rows are stored: what a cycle that fails has read is read again.
    store.advanceCursor(watched.cursor)
    const second = await readAndEvaluateRest(read, now).catch((failure: unknown) => ({ failure }))
    const isComplete = !('failure' in second)
    if (isComplete) store.prune(now)

    const since = BigInt(previous?.blockNumber ?? watched.block.number)
    const isCheckDue = now >= recentCheckedAt + RECENT_CHECK_INTERVAL_MS
    if (isCheckDue) recentCheckedAt = now
    const exits = [first, ...(isComplete ? second.passes : [])].flatMap(({ watched, due, unattributed, recent }) => [
      attributeExits({ chain, executor, store }, { unattributed, recent: isCheckDue ? recent : [], watched, since }),
      ...batchesOf(due).map(batch => sender.fire(batch, watched)),
    ])
    return { outcomes: Promise.all(exits), ...(!isComplete && second) }
  }

  /** Makes the second pass, over the positions that the first one shows to have changed, and moves the cursors. */
  async function readAndEvaluateRest({ watched, differing, swept }: FirstRead, now: number) {
    await recordMarkets(watched)
    const { positionIds, lastOfMarkets, changes } = await reachedBy(watched, differing)
    const passes =
      positionIds.length === 0 ? [] : [await evaluate(await readEntries(entriesOf(positionIds), { positionIds }), now)]
    if (swept !== undefined) store.advanceSweep(swept)
    sweptAt = now
    store.advanceTurns()
    for (const [market, last] of lastOfMarkets) lastReached.set(market, last)
    if (changes) {
      const oldest = passes.reduce(
        (oldest, { watched: { oldestBlock } }) => (oldestBlock < oldest ? oldestBlock : oldest),
        watched.oldestBlock,
      )
      handled = new Map([...changes].filter(([, { blockNumber }]) => blockNumber <= oldest))
      store.advanceEventCursor(watched.block.number)
    }
    return { passes }
  }

  /**
   * Reads what every cycle reads: new positions, positions that do not wait for a price, the prices of all markets, and
   * the next positions of the sweeps or their fingerprints. Also returns the positions whose row differs from the chain.
   * Clears the store first if the chain was replaced.
   */
  async function readWatched(now: number, previous: LastCycle | undefined): Promise<FirstRead> {
    const elapsed = sweptAt === 0 ? 0 : now - sweptAt
    const closedLimit = Math.min(CLOSED_PER_SECOND * Math.max(1, Math.ceil(elapsed / 1_000)), MAX_CLOSED_COMPARED)
    const read = async () => {
      const isSmall = store.openCount() <= MAX_READ_WHOLE
      const at = Number(previous?.at ?? 0)
      const sweep = store.nextOfSweep(isSmall ? MAX_READ_WHOLE : sweepLimit(elapsed))
      const closed = store.nextClosed(now, at, closedLimit)
      const unknown = closed.filter(({ fingerprint }) => fingerprint === undefined)
      const compared = isSmall ? closed : [...sweep, ...closed]
      const watched = await readEntries(
        uniqueById([...store.watched(now, at), ...unknown, ...(isSmall ? sweep : [])]),
        {
          cursor: store.cursor(),
          markets: store.markets(),
          compared: compared.map(({ positionId }) => positionId),
        },
      )
      const differing = compared.filter(entry => !isAsOnChain(entry, watched))
      return { watched, differing: differing.map(({ positionId }) => positionId), swept: sweep.at(-1)?.positionId }
    }
    const result = await read()
    if (!previous || result.watched.block.number + MAX_REORG >= BigInt(previous.blockNumber)) return result
    store.clear()
    return read()
  }

  /** Returns how many positions the sweep must compare, `elapsed` milliseconds after it last did. */
  function sweepLimit(elapsed: number): number {
    const due = Math.ceil((store.openCount() * elapsed) / SWEEP_MS)
    return Math.min(Math.max(due, MAX_READ_WHOLE), MAX_COMPARED)
  }

  /**
   * Reads the positions of entries, or those with the given ids, some of which may have no entry yet. Results recorded during
   * the read are newer than the read.
   */
  async function readEntries(
    entries: readonly KeeperEntry[],
    {
      positionIds = entries.map(({ positionId }) => positionId),
      cursor,
      markets = [],
      compared = [],
    }: { positionIds?: bigint[]; cursor?: bigint; markets?: Market[]; compared?: bigint[] } = {},
  ): Promise<ReadEntries> {
    const watched = await readWatchedPositions(chain, {
      positionIds,
      ...(cursor !== undefined && { cursor }),
      compared,
      isHashed: cursor === undefined || store.openCount() > MAX_READ_WHOLE,
      markets: [...markets, ...entries.filter(({ vault }) => vault)],
      agentIds: entries.map(({ agentId }) => agentId).filter(agentId => agentId > 0n),
    })
    return { ...watched, readBefore: new Map(entries.map(entry => [entry.positionId, entry])) }
  }

  const entriesOf = (positionIds: readonly bigint[]) => positionIds.flatMap(id => store.entry(id) ?? [])

  /**
   * Returns the positions that were not read although a price reaches their trigger, an event since the previous cycle
   * names them, or their row differs from the chain. While each cycle reads all open positions, only closed ones can differ.
   * `changes` are those of the events; undefined if the node did not return them. `lastOfMarkets` are the last ones that a
   * price reaches.
   */
  async function reachedBy(watched: ReadEntries, differing: readonly bigint[]) {
    const read = new Set([...watched.readBefore.keys(), ...watched.positions.map(({ positionId }) => positionId)])
    const isUnread = (positionId: bigint) => !read.has(positionId)
    if (store.openCount() <= MAX_READ_WHOLE)
      return { positionIds: differing.filter(isUnread), lastOfMarkets: [], changes: NO_CHANGES }

    const maxReached = MAX_REACHED + store.batches().flatMap(({ positionIds }) => positionIds).length
    const ofMarkets = reachedByPrice(watched, maxReached)
    const reached = new Set(ofMarkets.flatMap(({ positionIds }) => positionIds))
    const lastOfMarkets = ofMarkets.map(({ key, positionIds }) => [key, positionIds.at(-1) ?? 0n] as const)
    const { block, ownerControls } = watched
    const from = [store.eventCursor() - EVENT_OVERLAP_BLOCKS, block.number - MAX_EVENT_BLOCKS, 0n]
    const fromBlock = from.reduce((highest, number) => (number > highest ? number : highest))
    const range = { fromBlock, toBlock: block.number }
    const events = await readChangedPositions(chain, { ownerControls, ...range }).catch(() => undefined)
    const changes = events && changesByKey(events)
    for (const { kind, id } of changes ? differenceOf(changes, handled, fromBlock) : [])
      for (const positionId of kind === 'position' ? [id] : store.openOfAgent(id)) reached.add(positionId)
    for (const positionId of differing) reached.add(positionId)
    // After a pause the events may name more positions than a cycle can read: the sweep finds the others.
    return { positionIds: [...reached].filter(isUnread).slice(0, maxReached + MAX_CHANGED), lastOfMarkets, changes }
  }

  /** Returns up to `max` positions whose triggers the prices reach: of each market the next ones, in equal shares. */
  function reachedByPrice({ marketOf }: WatchedPositions, max: number) {
    const queues = store.markets().flatMap(market => {
      const { quote } = marketOf(market)
      const key = marketKey(market)
      const last = lastReached.get(key) ?? 0n
      return quote.stale ? [] : [{ key, positionIds: store.reached(market, { price: quote.price, last, limit: max }) }]
    })
    // What a market with few leaves of its share goes to those with more.
    queues.sort((one, other) => one.positionIds.length - other.positionIds.length)
    let left = max
    return queues.map(({ key, positionIds }, index) => {
      const share = positionIds.slice(0, Math.ceil(left / (queues.length - index)))
      left -= share.length
      return { key, positionIds: share }
    })
  }

  /**
   * Records for each read position what it waits for. Returns the positions with a due exit, those that someone may
   * have sold, and those whose exit was fired so recently that a reorg may change it.
   */
  async function evaluate(watched: ReadEntries, now: number) {
    const { block, positions, readBefore, marketOf, fingerprints } = watched
    const sessionOf = await readSessions(positions, block)
    const inFlight = new Set(store.batches().flatMap(({ positionIds }) => positionIds))
    const at = `${block.timestamp}`
    const due: WatchedPosition[] = []
    const unattributed: WatchedPosition[] = []
    const recent: WatchedPosition[] = []
    const vanished = new Set(readBefore.keys())
    function recordClosed(entry: KeeperEntry) {
      const fingerprint = fingerprints.get(entry.positionId)
      if (entry.closedAt === null || (fingerprint !== undefined && fingerprint !== entry.fingerprint))
        store.put(closedEntry(entry, entry.closedAt ?? now, fingerprint))
    }
    for (const position of positions) {
      const { positionId } = position
      vanished.delete(positionId)
      const entry = store.entry(positionId)
      const isInFlight = inFlight.has(positionId)
      const earlier = readBefore.get(positionId)
      const isOlderThanRead =
        earlier !== undefined &&
        earlier.firedRules === entry?.firedRules &&
        earlier.outcome?.kind === entry.outcome?.kind
      const isUndone = entry !== undefined && isOlderThanRead && isExitUndone(entry, position)
      if (entry && position.nextRuleIndex > entry.firedRules && !isInFlight) unattributed.push(position)
      else if (entry && !isUndone && isRecentExit(entry, block)) recent.push(position)
      if (position.status !== PositionStatus.Open) {
        if (entry) recordClosed(entry)
        if (entry?.closedAt === null && isOwnerClosing(position) && !isInFlight) unattributed.push(position)
        continue
      }
      const market = marketOf(position)
      const { decimals, quote } = market
      const known = isUndone
        ? undoneEntry(position, decimals, now)
        : entry?.closedAt === null
          ? refreshedEntry(entry, position, decimals, fingerprints.get(positionId))
          : newEntry(position, decimals, fingerprints.get(positionId))
      const decision = decideExit(position, market, sessionOf(position))
      const isTriedInRound = !isOwnerClosing(position) && known.triedRoundId === `${quote.roundId}`
      if (decision === 'due' && !isInFlight && known.nextTryAt <= now && !isTriedInRound) due.push(position)
      const next =
        decision === 'due' ? dueEntry(known, now) : waitingEntry(known, quote.stale ? 'notReached' : decision, at)
      if (entry === undefined || next !== entry) store.put(next)
    }
    for (const positionId of vanished) {
      const entry = store.entry(positionId)
      if (entry) recordClosed(entry)
    }
    return { watched, due, unattributed, recent }
  }

  /** Returns a function from a market to the facts that decide whether its session is open. Reads unknown symbols. */
  async function readSessions(markets: readonly Market[], { timestamp }: Block) {
    const symbolOf = await symbolsOf(chain, respectSessions ? markets.map(({ token }) => token) : [])
    return ({ token }: Market) => ({ symbol: symbolOf(token), at: timestamp, respectSessions })
  }

  /** Records the prices of all markets, and why their positions wait. */
  async function recordMarkets({ block, marketOf }: WatchedPositions): Promise<void> {
    const markets = store.markets()
    const sessionOf = await readSessions(markets, block)
    const previous = store.lastCycle()
    const at = `${block.timestamp}`
    const prices: LastCycle['prices'] = {}
    const deferrals: LastCycle['deferrals'] = {}
    for (const market of markets) {
      const { quote } = marketOf(market)
      prices[market.token] = `${quote.price}`
      const reason = marketDeferralOf({ quote }, sessionOf(market))
      if (reason === undefined) continue
      const earlier = previous?.deferrals?.[marketKey(market)]
      deferrals[marketKey(market)] = earlier?.reason === reason ? earlier : { kind: 'deferred', at, reason }
    }
    store.setLastCycle({ blockNumber: `${block.number}`, at, prices, deferrals })
  }

  return { run, lanes: executor.status }
}

/** Read positions, with their entries from before the read. */
type ReadEntries = WatchedPositions & { readBefore: ReadonlyMap<bigint, KeeperEntry> }

/** What the first pass read: also the positions whose row differs from the chain, and the last one of the sweep. */
type FirstRead = { watched: ReadEntries; differing: bigint[]; swept: bigint | undefined }

/** Whether a position is still as it was when its row was stored. */
const isAsOnChain = ({ positionId, fingerprint }: KeeperEntry, { fingerprints }: WatchedPositions): boolean =>
  fingerprint !== undefined && fingerprint === fingerprints.get(positionId)

const uniqueById = (entries: readonly KeeperEntry[]): KeeperEntry[] => [
  ...new Map(entries.map(entry => [entry.positionId, entry])).values(),
]

/** Whether an exit was executed so recently that a reorg may have moved or changed it, or let someone else fire it. */
const isRecentExit = ({ outcome }: KeeperEntry, { timestamp }: Block): boolean =>
  outcome?.kind === 'executed' && timestamp <= BigInt(outcome.at) + REORG_WATCH_SECONDS

const batchesOf = (positions: readonly WatchedPosition[]): WatchedPosition[][] =>
  Array.from({ length: Math.ceil(positions.length / MAX_BATCH) }, (_, index) =>
    positions.slice(MAX_BATCH * index, MAX_BATCH * (index + 1)),
  )
