import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { isOwnerClosing, type WatchedPosition } from '@agent-trading-service/protocol/position'
import type { Address } from 'viem'
import { carriedPrices } from '../chain/carried-prices.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import { withHeldOrNewestPrices } from '../chain/newest-prices.ts'
import { type Market, readWatchedPositions, type WatchedPositions } from '../chain/watched-positions.ts'
import { nowAt } from '../clock.ts'
import { batchesOf } from '../concurrency.ts'
import { logUnexpected } from '../rpc/node-errors.ts'
import { type LastCycle, marketKey } from './book.ts'
import { attributeExits } from './exit-attribution.ts'
import { decideExit, marketDeferralOf, observationOf } from './exit-decision.ts'
import { type CycleParts, createExitSender } from './exit-sender.ts'
import { inShares } from './in-shares.ts'
import { createOrderCycle } from './order-cycle.ts'
import {
  closedEntry,
  dueEntry,
  isExitUndone,
  isHeldByIssuer,
  newEntry,
  type PositionEntry,
  refreshedEntry,
  undoneEntry,
  waitingEntry,
} from './position-entry.ts'

/** Exits per transaction, and with reports, each of which may be verified. A full batch stays below the gas ceiling. */
const MAX_BATCH = 24
const MAX_BATCH_WITH_REPORTS = 12
/** How often the events of recently executed exits are read again. */
const RECENT_CHECK_INTERVAL_MS = 3_000
/**
 * How many open positions are compared with the chain per second, in turn, and the most that one cycle compares: all of
 * them while there are few.
 */
const COMPARED_PER_SECOND = 120
const MAX_COMPARED = 600
/**
 * Comparing in each of the cycles that read prices, one a second, would send several times the bytes for the same rate.
 */
const COMPARISON_INTERVAL_SECONDS = 5
/** The most positions per cycle that are read because a price reaches their trigger. */
const MAX_REACHED = 1_200

export type KeeperCycle = ReturnType<typeof createCycle>

/** Read positions, with their entries from before the read. */
type ReadPositions = WatchedPositions & { entriesBefore: ReadonlyMap<bigint, PositionEntry>; batchSize: number }

/** What a cycle does about the positions of one read. */
type Pass = {
  watched: ReadPositions
  due: WatchedPosition[]
  unattributed: WatchedPosition[]
  recent: WatchedPosition[]
}

/**
 * Returns the keeper's cycle. It reads the prices of all markets and the positions that may be due, decides which exits
 * are due, and sends them; the same prices decide about orders. The book selects those positions: new ones, marked
 * ones, ones that wait for another try, ones whose trigger the price reaches, and the next ones of a slow comparison of
 * the whole book with the chain. Nothing is sent for a position that was not read, so a wrong entry can only delay an
 * exit.
 */
export function createCycle(parts: CycleParts) {
  const { chain, executor, book, respectSessions } = parts
  /** When the events of recent exits were last read again, in milliseconds. */
  let recentCheckedAt = 0
  /** When the last comparison with the chain began, in milliseconds. */
  let comparedAt = 0
  /** The last position of each market that the price reached and a cycle read. */
  const lastReached = new Map<string, bigint>()
  const sender = createExitSender(parts)
  const orders = createOrderCycle(parts)

  /**
   * Runs one cycle. Returns a promise that resolves once its transactions are recorded, which may take several blocks,
   * whether an exit was due, and the `failure` of a read after the first, which does not stop what others found.
   * Without `alwaysCompares`, it compares entries with the chain every COMPARISON_INTERVAL_SECONDS. Throws
   * CHAIN_UNREACHABLE.
   */
  async function run(options: {
    alwaysCompares: boolean
  }): Promise<{ outcomes: Promise<unknown>; hasDueExits: boolean; failure?: unknown }> {
    const now = Date.now()
    await Promise.all([...book.batches().map(batch => sender.resume(batch).catch(logUnexpected)), orders.resume()])
    const previous = book.lastCycle()
    const seconds = Math.max(1, Math.ceil((now - comparedAt) / 1_000))
    const isComparing = options.alwaysCompares || seconds >= COMPARISON_INTERVAL_SECONDS
    if (isComparing) comparedAt = now
    const compared = isComparing
      ? book.nextOpen(book.compared(), Math.min(COMPARED_PER_SECOND * seconds, MAX_COMPARED))
      : []
    const first = await read([...book.watched(now), ...compared], {
      cursor: book.cursor(),
      tokens: book.orders.tokens(),
    })
    const ordered = orders.run(first).then(
      outcomes => ({ outcomes }),
      (failure: unknown) => ({ outcomes: [], failure }),
    )
    const passes = [evaluate(first, now)]
    const failed = await evaluateReached(first, now).then(
      reached => void passes.push(...reached),
      (failure: unknown) => ({ failure }),
    )
    book.prune(now)
    if (isComparing) book.setCompared(Number(compared.at(-1)?.positionId ?? 0))
    // The cursor moves once the entries are stored: positions that a failed cycle has read are read again.
    book.setLastCycle({ startedAt: now, ...whatMarketsSay(first) }, first.cursor)

    const isCheckDue = now >= recentCheckedAt + RECENT_CHECK_INTERVAL_MS
    if (isCheckDue) recentCheckedAt = now
    const since = BigInt(previous?.blockNumber ?? first.block.number)
    const fired = passes.flatMap(({ watched, due, unattributed, recent }) => [
      attributeExits(parts, { unattributed, recent: isCheckDue ? recent : [], watched, since }),
      ...batchesOf(due, watched.batchSize).map(batch => sender.fire(batch, watched)),
    ])
    const exits = Promise.all(fired)
    exits.catch(() => undefined) // reported with the outcomes, once the orders were read
    const { outcomes, ...unordered } = await ordered
    const hasDueExits = passes.some(({ due }) => due.length > 0)
    return { outcomes: Promise.all([exits, ...outcomes]), hasDueExits, ...unordered, ...failed }
  }

  /**
   * Reads positions with the prices of all markets and of other tokens and, if a cursor is given, those with higher
   * ids.
   */
  async function read(
    entries: readonly PositionEntry[],
    { cursor, tokens: others = [] }: { cursor?: bigint; tokens?: readonly Address[] } = {},
  ): Promise<ReadPositions> {
    const markets = [...book.markets(), ...entries, ...book.orders.held()]
    // A price that comes with the exit decides about it, so nothing is posted while nobody trades.
    const tokens = [...markets.map(({ token }) => token), ...others]
    const priced = await withHeldOrNewestPrices(chain, tokens)
    const reached = cursor === undefined ? [] : reachedByReports(priced, new Set(tokens))
    const entriesBefore = new Map([...entries, ...reached].map(entry => [entry.positionId, entry]))
    const watched = await readWatchedPositions(priced, {
      positionIds: [...entriesBefore.keys()],
      ...(cursor !== undefined && { cursor }),
      markets,
      tokens: others,
      agentIds: [...entriesBefore.values()].map(({ agentId }) => agentId),
    })
    return { ...watched, entriesBefore, batchSize: priced.carried ? MAX_BATCH_WITH_REPORTS : MAX_BATCH }
  }

  /** Returns the positions whose triggers carried prices reach, so that the read of the prices reads them too. */
  function reachedByReports(priced: TradingChain, tokens: ReadonlySet<Address>): PositionEntry[] {
    const prices = carriedPrices(priced, tokens)
    const deferrals = book.lastCycle()?.deferrals ?? {}
    const reached = reachedBy(market => (deferrals[marketKey(market)] ? undefined : prices.get(market.token)))
    return reached.flatMap(({ positionIds }) => positionIds).flatMap(id => book.entry(id) ?? [])
  }

  /** Reads and evaluates the positions that a price reaches and that the first read did not contain. */
  async function evaluateReached(first: ReadPositions, now: number): Promise<Pass[]> {
    const reached = reachedBy(market => {
      const exitMarket = first.marketOf(market)
      return marketDeferralOf(exitMarket, { respectSessions }) === undefined ? exitMarket.quote.price : undefined
    })
    const known = new Set([...first.entriesBefore.keys(), ...first.positions.map(({ positionId }) => positionId)])
    const unread = reached.flatMap(({ positionIds }) => positionIds).filter(positionId => !known.has(positionId))
    const passes = unread.length === 0 ? [] : [evaluate(await read(unread.flatMap(id => book.entry(id) ?? [])), now)]
    for (const { key, positionIds } of reached) lastReached.set(key, positionIds.at(-1) ?? 0n)
    return passes
  }

  /** Returns the positions whose triggers known prices reach: of each market the next ones, in equal shares. */
  function reachedBy(priceIn: (market: Market) => bigint | undefined) {
    // Positions whose exit is in flight are still reached.
    const max = MAX_REACHED + sender.inFlight().size
    const markets = book.markets().flatMap(market => {
      const price = priceIn(market)
      return price === undefined ? [] : [{ key: marketKey(market), market, price }]
    })
    const queues = markets.map(({ key, market, price }) =>
      book.reached(market, { price, last: lastReached.get(key) ?? 0n, limit: max }),
    )
    const shares = inShares(queues, max)
    return markets.map(({ key }, index) => ({ key, positionIds: shares[index] ?? [] }))
  }

  /**
   * Updates the entry of each read position. Returns the positions with a due exit, positions that may have been sold,
   * and those whose exit was executed so recently that a reorg may change it.
   */
  function evaluate(watched: ReadPositions, now: number): Pass {
    const { block, entriesBefore, marketOf } = watched
    const positions = new Map(watched.positions.map(position => [position.positionId, position]))
    const inFlight = sender.inFlight()
    const pass: Pass = { watched, due: [], unattributed: [], recent: [] }
    const time = { at: block.timestamp, now: nowAt(block) }

    function openEntry(position: WatchedPosition, entry: PositionEntry | undefined, isUndone: boolean): PositionEntry {
      const market = marketOf(position)
      const { decimals, quote } = market
      const known = isUndone
        ? undoneEntry(position, decimals, block)
        : entry?.closedAt === null
          ? refreshedEntry(entry, position, decimals, block)
          : newEntry(position, decimals, block)
      const decision = decideExit(position, market, { respectSessions })
      const isHidden = quote.stale || decision === 'priceUnsettled'
      if (decision !== 'due') return waitingEntry(known, isHidden ? 'notReached' : decision, time)
      if (isHeldByIssuer(known, market)) return waitingEntry(known, 'tokenRestricted', time)
      const isTriedInRound = !isOwnerClosing(position) && known.triedRoundId === observationOf(quote)
      if (!inFlight.has(position.positionId) && known.nextTryAt <= Number(time.now) * 1_000 && !isTriedInRound)
        pass.due.push(position)
      return dueEntry(known, time.now)
    }

    for (const positionId of new Set([...entriesBefore.keys(), ...positions.keys()])) {
      const position = positions.get(positionId)
      const entry = book.entry(positionId)
      const earlier = entriesBefore.get(positionId)
      // An outcome that was recorded during the read is newer than the read.
      const isRecordedBefore =
        earlier?.firedRules === entry?.firedRules && earlier?.outcome?.kind === entry?.outcome?.kind
      const isOpen = position?.status === PositionStatus.Open
      let isUndone = false
      if (position && entry) {
        isUndone = isRecordedBefore && isExitUndone(entry, position)
        const isSold =
          position.nextRuleIndex > entry.firedRules || (!isOpen && entry.closedAt === null && isOwnerClosing(position))
        if (isSold && !inFlight.has(positionId)) pass.unattributed.push(position)
        else if (entry.outcome?.kind === 'executed' && !isUndone && entry.watchedUntil > now) pass.recent.push(position)
      }
      const next = isOpen ? openEntry(position, entry, isUndone) : entry && closedEntry(entry, block)
      if (next !== undefined && next !== entry) book.put(next)
    }
    return pass
  }

  /** Returns the prices of all markets, and why their positions wait. */
  function whatMarketsSay({ block, marketOf }: ReadPositions): Omit<LastCycle, 'startedAt'> {
    const previous = book.lastCycle()
    const at = `${block.timestamp}`
    const prices: LastCycle['prices'] = {}
    const deferrals: LastCycle['deferrals'] = {}
    for (const market of book.markets()) {
      const exitMarket = marketOf(market)
      prices[market.token] = `${exitMarket.quote.price}`
      const reason = marketDeferralOf(exitMarket, { respectSessions })
      if (reason === undefined) continue
      const earlier = previous?.deferrals[marketKey(market)]
      deferrals[marketKey(market)] = earlier?.reason === reason ? earlier : { kind: 'deferred', at, reason }
    }
    return { blockNumber: `${block.number}`, at, prices, deferrals }
  }

  return { run, lanes: executor.status }
}
