import type { Address } from 'viem'
import type { TradingChain } from '../chain/configured-chain.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { readWatchedPositions, type WatchedPositions } from '../chain/watched-positions.ts'
import { logUnexpected } from '../executor/background-errors.ts'
import type { Executor } from '../executor/client.ts'
import { PositionStatus } from '../protocol/enums.ts'
import type { WatchedPosition } from '../protocol/position.ts'
import { withDeadline } from '../timeout.ts'
import { attributeExits } from './exit-attribution.ts'
import { decideExit } from './exit-decision.ts'
import { createExitSender } from './exit-sender.ts'
import { closedEntry, dueEntry, isExitUndone, waitingEntry } from './exit-state-transitions.ts'
import { newEntry } from './keeper-entry.ts'
import type { KeeperStore } from './store.ts'

/** Exits per transaction. A full batch stays below the lane's gas ceiling. */
const MAX_BATCH = 24
/** How long a cycle waits for its transactions. Later outcomes are recorded when they come. */
const OUTCOME_TIMEOUT_MS = 3_000
/** A head that is this many blocks lower than before belongs to another chain. */
const MAX_REORG = 100n

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
  const sender = createExitSender({ chain, executor, store })

  /** Runs one cycle. Throws CHAIN_UNREACHABLE. */
  async function run(): Promise<void> {
    const now = Date.now()
    await Promise.all(store.batches().map(batch => sender.resume(batch).catch(logUnexpected)))
    const previous = store.lastCycle()
    const watched = await readPositions(now, previous?.blockNumber)
    const symbolOf = await symbolsOf(chain, respectSessions ? watched.positions.map(({ token }) => token) : [])
    const { due, unattributed } = evaluate(watched, symbolOf, now)
    const since = BigInt(previous?.blockNumber ?? watched.block.number)
    const exits = Promise.all([
      attributeExits({ chain, executor, store }, { positions: unattributed, watched, since }),
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

  /** Records what each position waits for. Returns the positions with a due exit, and those with rules someone fired. */
  function evaluate(watched: WatchedPositions, symbolOf: (token: Address) => string, now: number) {
    const entries = new Map(store.watched(now).map(entry => [entry.positionId, entry]))
    const inFlight = new Set(store.batches().flatMap(({ positionIds }) => positionIds))
    const at = `${watched.block.timestamp}`
    const due: WatchedPosition[] = []
    const unattributed: WatchedPosition[] = []
    const prices: Record<string, string> = {}
    const vanished = new Set(entries.keys())
    for (const position of watched.positions) {
      const { positionId, token } = position
      vanished.delete(positionId)
      const entry = entries.get(positionId)
      const isInFlight = inFlight.has(positionId)
      if (entry && position.nextRuleIndex > entry.firedRules && !isInFlight) unattributed.push(position)
      if (position.status !== PositionStatus.Open) {
        if (entry?.closedAt === null) store.put(closedEntry(entry, now))
        continue
      }
      const known = entry?.closedAt === null && !isExitUndone(entry, position) ? entry : newEntry(position)
      const market = watched.marketOf(position)
      prices[token] = `${market.quote.price}`
      const decision = decideExit(position, market, {
        symbol: symbolOf(token),
        at: watched.block.timestamp,
        respectSessions,
      })
      const isTriedInRound = known.triedRoundId === `${market.quote.roundId}`
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
    return { due, unattributed }
  }

  return { run, lanes: executor.status }
}

const batchesOf = (positions: readonly WatchedPosition[]): WatchedPosition[][] =>
  Array.from({ length: Math.ceil(positions.length / MAX_BATCH) }, (_, index) =>
    positions.slice(MAX_BATCH * index, MAX_BATCH * (index + 1)),
  )
