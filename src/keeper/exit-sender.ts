import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import {
  type DecodedExitStatus,
  decodeExitRevert,
  decodeExitStatus,
  type ExitResult,
  exitResults,
} from '@agent-trading-service/protocol/exit-results'
import type { ExitMarket, WatchedPosition } from '@agent-trading-service/protocol/position'
import { preventsSale } from '@agent-trading-service/protocol/token-restriction'
import { type Hex, toHex } from 'viem'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import { tradeRouter } from '../chain/contracts.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { withHeldOrNewestPrices } from '../chain/newest-prices.ts'
import { attempt, call, readTree } from '../chain/read-tree.ts'
import type { WatchedPositions } from '../chain/watched-positions.ts'
import { nowAt } from '../clock.ts'
import { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/relay-types.ts'
import { logUnexpected } from '../rpc/node-errors.ts'
import { createBatchSender } from './batch-sender.ts'
import type { Book, ExitBatch } from './book.ts'
import { observationOf } from './exit-decision.ts'
import { chargedAfterwards, paperPositionsIn, paperReads } from './gas-of-agents.ts'
import {
  deferredEntry,
  type Evaluation,
  evaluationOf,
  executedEntry,
  failedEntry,
  heldEntry,
  type PositionEntry,
  partlyExecutedEntry,
  poolPriceEntry,
  type ReadTime,
  withoutOpenOutcome,
} from './position-entry.ts'

const DEADLINE_SECONDS = 60n
/**
 * How often the router's record of a due exit is confirmed while the pool fills nothing. The record expires after 15
 * minutes (ITradeRouter.executeExit), and then the floor of the exit starts over.
 */
const CONFIRMATION_SECONDS = 600n

/** What the parts of a cycle work with. `budgets` are the lanes that keep the gas budgets of agents. */
export type CycleParts = {
  chain: TradingChain
  executor: Executor
  budgets: Pick<Executor, 'spendGas'>
  book: Book
  respectSessions: boolean
}

export function createExitSender({ chain, executor, budgets, book }: CycleParts) {
  const { send, resume } = createBatchSender({ executor, store: book, toRelayRequest, recordOutcome })
  /** Stores an entry. If the position closed while its exit was in flight, only an executed exit counts. */
  const put = (entry: PositionEntry) => book.put(entry.closedAt === null ? entry : withoutOpenOutcome(entry))
  /** The positions whose exits are being simulated or sent: a cycle does not wait for the exits of earlier ones. */
  const firing = new Set<bigint>()

  /** Fires the exits of a batch. Resolves with their outcomes recorded. */
  async function fire(positions: WatchedPosition[], watched: WatchedPositions): Promise<void> {
    for (const { positionId } of positions) firing.add(positionId)
    await simulateAndSend(positions, watched).finally(() => {
      for (const { positionId } of positions) firing.delete(positionId)
    })
  }

  /** Returns the positions whose exits are on their way, also from before a restart. */
  const inFlight = (): ReadonlySet<bigint> =>
    new Set([...firing, ...book.batches().flatMap(batch => batch.positionIds)])

  /**
   * Simulates exits and sends the ones that the router would execute, in full or in part, or record as due, with the
   * reports of the simulation: they prove that the exits are due. Resolves with their outcomes recorded.
   */
  async function simulateAndSend(positions: WatchedPosition[], watched: WatchedPositions): Promise<void> {
    const { takesBatches, block } = watched
    const priced = await withHeldOrNewestPrices(
      chain,
      positions.map(({ token }) => token),
    )
    const simulated = await passingOf(positions, watched, priced)
    if (simulated === undefined) {
      // The node cannot run this batch. Halving it isolates the exit at fault from the others.
      const half = Math.ceil(positions.length / 2)
      await Promise.all([
        simulateAndSend(positions.slice(0, half), watched),
        simulateAndSend(positions.slice(half), watched),
      ])
      return
    }
    const { passing, carried } = simulated
    const batches = takesBatches && passing.length > 0 ? [passing] : passing.map(position => [position])
    await Promise.all(
      batches.map(batch =>
        send({
          digest: toHex(crypto.getRandomValues(new Uint8Array(32))),
          positionIds: batch.map(({ positionId }) => positionId),
          deadline: nowAt(block) + DEADLINE_SECONDS,
          takesBatches,
          prices: carried,
          evaluations: batch.map(position => evaluationOf(watched, position)),
        }),
      ),
    )
  }

  /**
   * Returns the positions whose simulated exit passes, with the prices that the oracle takes, and records why others
   * fail; undefined to try smaller batches.
   */
  async function passingOf(
    positions: WatchedPosition[],
    { takesBatches, block, marketOf }: WatchedPositions,
    priced: TradingChain,
  ): Promise<{ passing: WatchedPosition[]; carried: CarriedPrices | undefined } | undefined> {
    const positionIds = positions.map(({ positionId }) => positionId)
    const time = { at: block.timestamp, now: nowAt(block) }
    const simulated = await simulateExits(priced, positionIds, takesBatches).catch((error: unknown) => {
      if (positions.length > 1) return undefined
      const refusal = error instanceof Refusal ? error : refuse('INTERNAL')
      for (const entry of positionIds.flatMap(id => book.entry(id) ?? [])) put(failedEntry(entry, refusal.body, time))
      return { statuses: [], carried: undefined }
    })
    if (simulated === undefined) return undefined
    const passing = positions.filter((position, index) => {
      const status = simulated.statuses[index]
      if (status && isWorthSending(status, position, time.now)) return true
      if (status) recordUnexecuted(position.positionId, status, time, marketOf(position))
      return false
    })
    return { passing, carried: simulated.carried }
  }

  function recordOutcome(batch: ExitBatch, outcome: Exclude<RelayOutcome, { state: 'unknown' }>) {
    const results = outcome.state === 'mined' ? exitResults(chain.trading.TradeRouter, outcome.logs) : undefined
    const spent: bigint[] = []
    for (const [index, positionId] of batch.positionIds.entries()) {
      const entry = book.entry(positionId)
      if (entry === undefined) continue
      if (results?.has(positionId)) spent.push(entry.agentId)
      const evaluation = batch.evaluations[index]
      const time = { at: BigInt(evaluation?.at ?? 0), now: batch.deadline - DEADLINE_SECONDS }
      const result = results?.get(positionId)
      if (outcome.state === 'mined' && result) put(entryAfter(entry, result, { evaluation, time, hash: outcome.hash }))
      else if (outcome.state === 'reverted' || (outcome.state === 'rejected' && outcome.data !== undefined))
        recordUnexecuted(positionId, decodeExitRevert(outcome.data), time)
      else put(failedEntry(entry, refusalOf(outcome, batch.digest).body, time))
    }
    if (spent.length > 0) charge(spent).catch(logUnexpected)
  }

  async function charge(agentIds: readonly bigint[]) {
    const { values } = await readTree(
      chain,
      agentIds.map(agentId => paperReads(chain, agentId)),
    )
    const charges = values.map((read, index) =>
      chargedAfterwards(agentIds[index] as bigint, 'exit', paperPositionsIn(read)),
    )
    await budgets.spendGas(charges)
  }

  /** Records why the router would not execute an exit. */
  function recordUnexecuted(
    positionId: bigint,
    { status, revertData }: DecodedExitStatus,
    time: ReadTime,
    market?: ExitMarket,
  ) {
    const entry = book.entry(positionId)
    if (entry === undefined) return
    if (status === 'notDue') put({ ...entry, ...(market && { triedRoundId: observationOf(market.quote) }) })
    if (status === 'stalePrice') put(deferredEntry(entry, 'priceStale', time))
    if (status === 'paused') put(deferredEntry(entry, 'tradingPaused', time))
    if (status === 'deferred' || status === 'poolPrice') put(poolPriceEntry(entry, time))
    if (status !== 'failed') return
    // What was burned in part may still be sold in part: only a token that cannot be sold at all waits for its issuer.
    if (preventsSale(market?.restriction, 1n)) put(heldEntry(entry, time))
    else put(failedEntry(entry, refusalOfRevert(revertData).body, time))
  }

  function toRelayRequest({ digest, positionIds, deadline, takesBatches, prices }: ExitBatch): RelayRequest {
    // Batches do not wait for each other, so each is a task of its own.
    const by = { as: 'service', task: `exit:${positionIds[0]}` } as const
    const call = exitCall(chain, positionIds, takesBatches)
    return { digest, kind: 'exit', by, groupNonce: digest, deadline, call, prices }
  }

  return { fire, resume, inFlight }
}

/**
 * Returns what the router would do with each position now, and the carried prices that the oracle takes, from one
 * `eth_call`. Throws CHAIN_UNREACHABLE.
 */
export async function simulateExits(
  chain: TradingChain,
  positionIds: readonly bigint[],
  takesBatches: boolean,
): Promise<{ statuses: DecodedExitStatus[]; carried: CarriedPrices | undefined }> {
  if (!takesBatches) {
    const { values, carried } = await readTree(
      chain,
      positionIds.map(id => attempt(call(tradeRouter(chain), 'executeExit', [id]))),
    )
    const statuses = values.map(({ revertData }) =>
      revertData === undefined ? ({ status: 'executed', revertData } as const) : decodeExitRevert(revertData),
    )
    return { statuses, carried }
  }
  const { values, carried } = await readTree(chain, attempt(call(tradeRouter(chain), 'executeExits', [positionIds])))
  const { value: batch, revertData } = values
  const statuses = positionIds.map(
    (_, index): DecodedExitStatus =>
      batch ? decodeExitStatus(batch[0][index], batch[1][index]) : { status: 'failed', revertData },
  )
  return { statuses, carried }
}

/** Returns the call that executes exits: the batch, or the single exit if the router does not support batches. */
function exitCall({ trading }: TradingChain, positionIds: readonly bigint[], takesBatches: boolean) {
  const [first] = positionIds
  if (first === undefined) throw new Error('An exit call needs a position')
  const data = takesBatches
    ? encodeCall(tradeRouterAbi, 'executeExits', [positionIds])
    : encodeCall(tradeRouterAbi, 'executeExit', [first])
  return { to: trading.TradeRouter, data }
}

/** Whether a transaction would sell something, or record or confirm that the exit is due, so that its floor widens. */
function isWorthSending({ status }: DecodedExitStatus, { dueExit }: WatchedPosition, at: bigint): boolean {
  if (status === 'executed' || status === 'partlyExecuted') return true
  return status === 'deferred' && at >= BigInt(dueExit?.seenAt ?? 0) + CONFIRMATION_SECONDS
}

function entryAfter(
  entry: PositionEntry,
  result: ExitResult,
  { evaluation, time, hash }: { evaluation: Evaluation | undefined; time: ReadTime; hash: Hex },
): PositionEntry {
  if (result.kind === 'deferred') return poolPriceEntry(entry, time)
  const sale = {
    ...(result.ruleIndex !== undefined && { ruleIndex: result.ruleIndex }),
    transactionHash: hash,
    usdcOut: `${result.usdcOut}`,
  }
  if (result.kind === 'executed')
    return executedEntry(entry, evaluation, {
      kind: 'executed',
      firedBy: 'keeper',
      at: `${time.at}`,
      ...sale,
    })
  return partlyExecutedEntry(entry, evaluation, {
    ...time,
    ...sale,
    tokensLeft: `${result.tokensLeft}`,
  })
}

/** Returns the refusal to show for an exit or an order whose batch did not execute it. */
export function refusalOf(outcome: Exclude<RelayOutcome, { state: 'unknown' | 'reverted' }>, digest: Hex): Refusal {
  switch (outcome.state) {
    case 'mined':
      return refuse('INTENT_REFUSED', { problem: 'the transaction was mined without it' })
    case 'rejected':
      return refuse('INTENT_REFUSED', { problem: 'the transaction was not sent' })
    case 'conflict':
    case 'unsent':
      return refuse('SUBMISSION_FAILED', { digest })
    case 'busy':
    case 'exhausted': // never: exits have no budget
    case 'costly': // never: exits are sent at any cost
      return refuse('EXECUTOR_BUSY', { digest })
    case 'unpriced':
      return refuse('PRICE_REPORTS_UNAVAILABLE', { problem: outcome.problem, digest })
    case 'unfunded':
      return refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
    case 'paused':
      return refuse('EXECUTOR_PAUSED', { digest })
  }
}
