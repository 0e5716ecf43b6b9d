import type { Address } from 'viem'
import type { Block } from '../chain/block-number-and-time.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { readWatchedPositions, type WatchedPositions } from '../chain/watched-positions.ts'
import { logUnexpected } from '../executor/background-errors.ts'
import type { Executor } from '../executor/client.ts'
import { PositionStatus } from '../protocol/enums.ts'
import { isOwnerClosing, type WatchedPosition } from '../protocol/position.ts'
import { withDeadline } from '../timeout.ts'
import { attributeExits } from './exit-attribution.ts'
import { decideExit } from './exit-decision.ts'
import { createExitSender } from './exit-sender.ts'
import { closedEntry, dueEntry, isExitUndone, undoneEntry, waitingEntry } from './exit-state-transitions.ts'
import { type KeeperEntry, newEntry } from './keeper-entry.ts'
import type { KeeperStore } from './store.ts'

/** Exits per transaction. A full batch stays below the lane's gas ceiling. */
const MAX_BATCH = 24
/** How long a cycle waits for its transactions. Later outcomes are recorded when they come. */
const OUTCOME_TIMEOUT_MS = 3_000
/** A head that is this many blocks lower than before belongs to another chain. */
const MAX_REORG = 100n
/** How long the events of an executed exit are read again. */
const REORG_WATCH_SECONDS = 60n
const RECENT_CHECK_INTERVAL_MS = 3_000

export type KeeperCycle = ReturnType<typeof createCycle>

/** Returns the keeper's cycle: one pass over the open positions that fires the exits that are due. */
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
  const sender = createExitSender({ chain, executor, store })

  /** Runs one cycle. Throws CHAIN_UNREACHABLE. */
  async function run(): Promise<void> {
    const now = Date.now()
    await Promise.all(store.batches().map(batch => sender.resume(batch).catch(logUnexpected)))
    const previous = store.lastCycle()
    const readBefore = new Map(store.watched(now).map(entry => [entry.positionId, entry]))
    const watched = await readPositions(now, previous?.blockNumber)
    const symbolOf = await symbolsOf(chain, respectSessions ? watched.positions.map(({ token }) => token) : [])
    const { due, unattributed, recent } = evaluate(watched, { symbolOf, now, readBefore })
    const since = BigInt(previous?.blockNumber ?? watched.block.number)
    const isCheckDue = now >= recentCheckedAt + RECENT_CHECK_INTERVAL_MS
    if (isCheckDue) recentCheckedAt = now
    const exits = Promise.all([
      attributeExits({ chain, executor, store }, { unattributed, recent: isCheckDue ? recent : [], watched, since }),
      ...batchesOf(due).map(batch => sender.fire(batch, watched)),
    ])
    await withDeadline(exits, Date.now() + OUTCOME_TIMEOUT_MS, () => undefined)
  }

  /** Reads all watched and new positions. Clears the store first if the chain has been replaced by another one. */
  async function readPositions(now: number, previousBlock: string | undefined): Promise<WatchedPositions> {
    const read = () => {
      const positionIds = store.watched(now).map(({ positionId }) => positionId)
      return readWatchedPositions(chain, positionIds, store.cursor())
    }
    const watched = await read()
    const isNewChain = previousBlock !== undefined && watched.block.number + MAX_REORG < BigInt(previousBlock)
    if (!isNewChain) return watched
    store.clear()
    return read()
  }

  /**
   * Records what each position waits for. Returns the positions with a due exit, those that someone may have sold, and those
   * whose exit was fired so recently that a reorg may change it. `readBefore` has the entries from before the positions were
   * read: what was recorded since then is newer than the positions.
   */
  function evaluate(
    watched: WatchedPositions,
    {
      symbolOf,
      now,
      readBefore,
    }: { symbolOf: (token: Address) => string; now: number; readBefore: ReadonlyMap<bigint, KeeperEntry> },
  ) {
    const entries = new Map(store.watched(now).map(entry => [entry.positionId, entry]))
    const inFlight = new Set(store.batches().flatMap(({ positionIds }) => positionIds))
    const at = `${watched.block.timestamp}`
    const due: WatchedPosition[] = []
    const unattributed: WatchedPosition[] = []
    const recent: WatchedPosition[] = []
    const prices: Record<string, string> = {}
    const vanished = new Set(entries.keys())
    for (const position of watched.positions) {
      const { positionId, token } = position
      vanished.delete(positionId)
      const entry = entries.get(positionId)
      const isInFlight = inFlight.has(positionId)
      const earlier = readBefore.get(positionId)
      const isOlderThanRead =
        earlier !== undefined &&
        earlier.firedRules === entry?.firedRules &&
        earlier.outcome?.kind === entry.outcome?.kind
      const isUndone = entry !== undefined && isOlderThanRead && isExitUndone(entry, position)
      if (entry && position.nextRuleIndex > entry.firedRules && !isInFlight) unattributed.push(position)
      else if (entry && !isUndone && isRecentExit(entry, watched.block)) recent.push(position)
      if (position.status !== PositionStatus.Open) {
        if (entry?.closedAt === null) {
          store.put(closedEntry(entry, now))
          if (isOwnerClosing(position) && !isInFlight) unattributed.push(position)
        }
        continue
      }
      const known = isUndone ? undoneEntry(position, now) : entry?.closedAt === null ? entry : newEntry(position)
      const market = watched.marketOf(position)
      prices[token] = `${market.quote.price}`
      const decision = decideExit(position, market, {
        symbol: symbolOf(token),
        at: watched.block.timestamp,
        respectSessions,
      })
      const isTriedInRound = !isOwnerClosing(position) && known.triedRoundId === `${market.quote.roundId}`
      if (decision === 'due' && !isInFlight && known.nextTryAt <= now && !isTriedInRound) due.push(position)
      const next = decision === 'due' ? dueEntry(known, now) : waitingEntry(known, decision, at)
      if (entry === undefined || next !== entry) store.put(next)
    }
    for (const positionId of vanished) {
      const entry = entries.get(positionId)
      if (entry?.closedAt === null) store.put(closedEntry(entry, now))
    }
    store.advanceCursor(watched.positionCount)
    store.setLastCycle({ blockNumber: `${watched.block.number}`, at, prices })
    store.prune(now)
    return { due, unattributed, recent }
  }

  return { run, lanes: executor.status }
}

/** Whether an exit was executed so recently that a reorg may have moved it, changed it or left it to someone else. */
const isRecentExit = ({ outcome }: KeeperEntry, { timestamp }: Block): boolean =>
  outcome?.kind === 'executed' && timestamp <= BigInt(outcome.at) + REORG_WATCH_SECONDS

const batchesOf = (positions: readonly WatchedPosition[]): WatchedPosition[][] =>
  Array.from({ length: Math.ceil(positions.length / MAX_BATCH) }, (_, index) =>
    positions.slice(MAX_BATCH * index, MAX_BATCH * (index + 1)),
  )
