import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import { decodeEvent } from '@agent-trading-service/protocol/decode-event'
import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { preventsPurchase, preventsSale, toTokenRestriction } from '@agent-trading-service/protocol/token-restriction'
import { type Address, type Hex, isAddressEqual, toHex, zeroAddress } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import type { AgentRecord } from '../chain/agent-record.ts'
import { NO_PRICES, priceNeedOf } from '../chain/carried-prices.ts'
import type { Block } from '../chain/configured-chain.ts'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import { agentRegistry, positionManager } from '../chain/contracts.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { withHeldOrNewestPrices } from '../chain/newest-prices.ts'
import { attempt, call, optional, readTree } from '../chain/read-tree.ts'
import { restrictionCalls } from '../chain/token-restrictions.ts'
import type { WatchedPositions } from '../chain/watched-positions.ts'
import { nowAt } from '../clock.ts'
import { batchesOf } from '../concurrency.ts'
import { Refusal } from '../errors/refusal.ts'
import { refuse, toRefusal } from '../errors/refuse.ts'
import { refusalOfUnsent } from '../executor/present-intent.ts'
import type { PricesOfCall, ReceiptLog, RelayOutcome, RelayRequest } from '../executor/relay-types.ts'
import { logUnexpected } from '../rpc/node-errors.ts'
import { createBatchSender } from './batch-sender.ts'
import { isSessionClosed, observationOf } from './exit-decision.ts'
import { type CycleParts, refusalOf } from './exit-sender.ts'
import { chargedAfterwards, gasSpendOf, paperPositionsIn, paperReads } from './gas-of-agents.ts'
import { inShares } from './in-shares.ts'
import {
  changedOrder,
  failedOrder,
  ISSUER,
  mayBeRestricted,
  type OpenOrder,
  type OrderEntry,
  type OrderMarket,
  type OrderStep,
  type SimulatedOrder,
  stepAfter,
} from './order-entry.ts'
import type { OrderBatch } from './order-table.ts'

/** Executions per simulation and transaction: a full batch stays below the lane's gas ceiling. */
const MAX_BATCH = 16
/** Orders whose peak is raised, or that are recorded or ended, per transaction. Each takes a tenth of the gas. */
const MAX_CHEAP_BATCH = 48
/**
 * The most orders per cycle that are simulated because a price reaches them, and because they are new or may have
 * changed.
 */
const MAX_TRIED = 480
/** How many orders each cycle compares with the chain, in turn. An event of the index may be lost. */
const COMPARED_PER_CYCLE = 16
/** How often ended orders are taken off the chain while there are few of them. */
const END_INTERVAL_SECONDS = 60
const DEADLINE_SECONDS = 60

/** The prices of all tokens of open orders. */
type PriceRead = Pick<WatchedPositions, 'block' | 'orderBook' | 'marketOf'>

/** An order as it was simulated, with what to do about it. */
type Decided = {
  step: OrderStep
  entry: OrderEntry
  agent: AgentRecord
  block: Block
  paperPositions: number
  /** The prices of the simulation. */
  carried: CarriedPrices | undefined
}

/**
 * Returns the part of the keeper's cycle that executes orders. The book selects the orders that a price reaches, that
 * are due, or that may have changed; a simulation of `executeOrders` decides, and says what the others wait for. A
 * wrong entry can only delay an order.
 */
export function createOrderCycle({ chain, executor, budgets, book, respectSessions }: CycleParts) {
  const { orders: table } = book
  /** The last observation of each token. */
  const observations = new Map<Address, string>()
  /** The order book of the last cycle. Another one knows none of the orders, so all are simulated and forgotten. */
  let lastBook: Address | undefined
  /** When ended orders were last taken off the chain, in Unix seconds. */
  let endedAt = 0
  const { send, resume } = createBatchSender({ executor, store: table, toRelayRequest, recordOutcome })

  /** Records the outcomes of batches that an earlier cycle did not wait for. */
  const resumeBatches = () => Promise.all(table.batches().map(batch => resume(batch).catch(logUnexpected)))

  /**
   * Simulates the orders that prices reach. Returns promises that resolve once the transactions are recorded, which may
   * take several blocks. Throws CHAIN_UNREACHABLE.
   */
  async function run({ block, orderBook = zeroAddress, marketOf: exitMarketOf }: PriceRead) {
    if (orderBook === zeroAddress || table.count() === 0) return []
    if (orderBook !== (lastBook ?? orderBook)) table.markAll()
    lastBook = orderBook
    const now = nowAt(block)
    const at = Number(now)
    const markets = new Map<Address, OrderMarket>()
    for (const token of table.tokens()) {
      const market = exitMarketOf({ token, vault: zeroAddress })
      const { price, stale, unsettled } = market.quote
      const observation = observationOf(market.quote)
      const isOpen = !stale && !unsettled && !isSessionClosed(market, { respectSessions })
      markets.set(token, { price, observation, isOpen })
    }
    const newlyPriced = [...markets].filter(([token, { observation }]) => observations.get(token) !== observation)
    for (const [token, { observation }] of newlyPriced) observations.set(token, observation)
    table.wake(
      at,
      newlyPriced.map(([token]) => token),
    )

    for (const held of table.held())
      if (`${exitMarketOf(held).restriction?.value}` !== held.restriction) table.wakeHeld(held)

    const marketOf = ({ order: { token } }: OpenOrder) =>
      markets.get(token) ?? { price: 0n, observation: '', isOpen: false }
    const decided = await Promise.all(
      batchesOf(selected(markets), MAX_BATCH).map(batch => decide(orderBook, batch, { marketOf, at })),
    )
    const unpaid = await charge(decided.flat(), at)
    const of = (step: OrderStep, chunk = decided.flat()) =>
      chunk.flatMap(each => (each.step === step && !unpaid.has(each.entry.orderId) ? [each.entry] : []))
    const needOf = (orders: readonly OrderEntry[]) =>
      priceNeedOf(
        chain,
        orders.map(({ order }) => order.token),
      )
    const batchOf = (action: OrderBatch['action']) => (orders: readonly OrderEntry[], prices?: PricesOfCall) =>
      send({
        digest: toHex(crypto.getRandomValues(new Uint8Array(32))),
        action,
        book: orderBook,
        orders: orders.map(({ orderId, order }) => ({ orderId, order })),
        prices: prices ?? needOf(orders),
        at,
      })
    // What a simulation executed together stays together.
    const executing = decided.map(chunk => ({ orders: of('execute', chunk), prices: chunk[0]?.carried }))
    const cheap = (['raise', 'record'] as const).flatMap(step =>
      batchesOf(of(step), MAX_CHEAP_BATCH).map(orders => batchOf(step)(orders)),
    )
    return [
      ...executing.flatMap(({ orders, prices }) => (orders.length > 0 ? [batchOf('execute')(orders, prices)] : [])),
      ...cheap,
      ...batchesOf(dueToEnd(at), MAX_CHEAP_BATCH).map(orders => batchOf('end')(orders, NO_PRICES)),
    ]
  }

  /**
   * Charges the gas of orders to the budgets of their agents. Returns why it was not charged, by order; these are tried
   * again. Orders to sell do not wait for a lane that is out of reach.
   */
  async function charge(decided: readonly Decided[], at: number): Promise<ReadonlyMap<Hex, Refusal>> {
    const paying = decided.flatMap(({ step, entry: { orderId, order }, ...facts }) =>
      step === 'execute' || step === 'raise' || step === 'record'
        ? [{ orderId, spend: gasSpendOf(order, { step, ...facts }) }]
        : [],
    )
    if (paying.length === 0) return new Map()
    const shortages = await budgets.spendGas(paying.map(({ spend }) => spend)).catch(toRefusal)
    const refusals = new Map(
      paying.flatMap(({ orderId, spend }, index) => {
        if (shortages instanceof Refusal) return spend.use.protects ? [] : [[orderId, shortages] as const]
        const shortage = shortages[index]
        return shortage ? [[orderId, refusalOfUnsent({ state: 'exhausted', shortage }, orderId)] as const] : []
      }),
    )
    for (const [orderId, { body }] of refusals) {
      const stored = table.entry(orderId)
      if (stored) table.put({ ...failedOrder(stored, body, at), recordedAt: undefined })
    }
    return refusals
  }

  const inFlight = () => new Set(table.batches().flatMap(({ orders }) => orders.map(({ orderId }) => orderId)))

  /**
   * Returns the orders to simulate: those that prices reach, those that may have changed, and the next ones in turn.
   */
  function selected(markets: ReadonlyMap<Address, OrderMarket>): OrderEntry[] {
    const busy = inFlight()
    const open = [...markets].filter(([, { isOpen }]) => isOpen)
    const max = MAX_TRIED + busy.size
    const reached = inShares(
      open.map(([token, { price, observation }]) => [
        ...table.reached(token, price, max),
        ...table.raised(token, price, max).filter(({ raisedRoundId }) => raisedRoundId !== observation),
      ]),
      max,
    )
    // An order that was refused waits for its own turn.
    const compared = table
      .nextInTurn(COMPARED_PER_CYCLE)
      .filter(({ failures, wakesAt }) => failures === 0 && wakesAt !== ISSUER)
    const entries = [...reached.flat(), ...table.unchecked(max), ...compared]
    const byId = new Map(entries.map(entry => [entry.orderId, entry]))
    return [...byId.values()].filter(({ orderId }) => !busy.has(orderId))
  }

  /**
   * Simulates orders and stores what follows. Halves a batch that the node cannot run, to isolate the order at fault.
   */
  async function decide(
    orderBook: Address,
    entries: readonly OrderEntry[],
    context: { marketOf: (order: OpenOrder) => OrderMarket; at: number },
  ): Promise<Decided[]> {
    const { marketOf, at } = context
    const results = await simulate(orderBook, entries).catch((error: unknown) => {
      if (entries.length > 1) return undefined
      const { body } = error instanceof Refusal ? error : refuse('INTERNAL')
      for (const entry of entries) table.put(failedOrder(entry, body, at))
      return []
    })
    if (results === undefined) {
      const half = Math.ceil(entries.length / 2)
      const halves = [entries.slice(0, half), entries.slice(half)]
      return (await Promise.all(halves.map(part => decide(orderBook, part, context)))).flat()
    }
    return results.flatMap(({ entry, agent, block, paperPositions, carried, ...result }) => {
      const stored = table.entry(entry.orderId)
      if (stored === undefined) return []
      const decided = stepAfter(stored, { ...result, block }, marketOf(stored), at)
      // A mark that was set during the simulation is newer than it.
      const isMarked = stored.isUnchecked && !entry.isUnchecked
      if (decided.step === 'remove') table.remove(stored.orderId)
      else table.put(isMarked ? { ...decided.entry, isUnchecked: true } : decided.entry)
      return [{ ...decided, agent, block, paperPositions, carried }]
    })
  }

  /** Executes orders in one `eth_call`. */
  async function simulate(
    orderBook: Address,
    entries: readonly OrderEntry[],
  ): Promise<(SimulatedOrder & Omit<Decided, 'step'>)[]> {
    const contract = { address: orderBook, abi: orderBookAbi }
    const orders = entries.map(({ order }) => order)
    const priced = await withHeldOrNewestPrices(
      chain,
      orders.map(({ token }) => token),
    )
    const { block, values, carried } = await readTree(priced, {
      agents: orders.map(({ agentId }) => call(agentRegistry(chain), 'getAgent', [agentId])),
      papers: orders.map(({ agentId }) => paperReads(chain, agentId)),
      // Before the orders change it.
      positions: entries.map(({ positionId }) =>
        positionId === 0n ? undefined : optional(call(positionManager(chain), 'getPosition', [positionId])),
      ),
      peaks: entries.map(({ orderId, order: { agentId, condition } }) =>
        condition === OrderCondition.Trailing ? call(contract, 'orderStateOf', [agentId, orderId]) : undefined,
      ),
      batch: attempt(call(contract, 'executeOrders', [orders])),
    })
    const { value, revertData } = values.batch
    if (value === undefined) throw refusalOfRevert(revertData)
    const [executed, reasons] = value
    const paperPositions = values.papers.map(paperPositionsIn)
    const simulated = entries.map((entry, index) => ({
      entry,
      block,
      carried,
      agent: values.agents[index] as AgentRecord,
      paperPositions: paperPositions[index] ?? 0,
      reason: executed[index] ? undefined : (reasons[index] ?? '0x'),
      isPositionClosed: values.positions[index]?.status === PositionStatus.Closed,
      peak: peakOf(values.peaks[index]),
    }))
    const restrictions = await readRestrictions(simulated.filter(({ reason }) => mayBeRestricted(reason)))
    return simulated.map(result => ({ ...result, restriction: restrictions.get(result.entry.orderId) }))
  }

  /** Reads what keeps the vaults of orders from their trades, by order. */
  async function readRestrictions(failed: readonly { entry: OrderEntry; agent: AgentRecord }[]) {
    if (failed.length === 0) return new Map()
    const { values } = await readTree(
      chain,
      failed.map(({ entry: { orderId, order }, agent: { vault } }) => ({
        orderId,
        isSale: order.side === OrderSide.Reduce,
        vault,
        ...restrictionCalls(chain, { token: order.token, vault }),
      })),
    )
    return new Map(
      values.flatMap(({ orderId, isSale, vault, restriction: answer, ledger }) => {
        const restriction = toTokenRestriction(answer, ledger)
        const isPrevented = isSale
          ? preventsSale(restriction, 1n)
          : preventsPurchase(restriction, chain.contracts.SwapAdapter)
        return restriction && isPrevented ? [[orderId, { ...restriction, vault }] as const] : []
      }),
    )
  }

  /**
   * Returns the expired and dead orders to take off the chain; none if that was done a moment ago, unless they are
   * many.
   */
  function dueToEnd(at: number): OrderEntry[] {
    const busy = inFlight()
    const ended = table.ended(at, 2 * MAX_CHEAP_BATCH).filter(({ orderId }) => !busy.has(orderId))
    if (ended.length < MAX_CHEAP_BATCH && at < endedAt + END_INTERVAL_SECONDS) return []
    if (ended.length > 0) endedAt = at
    return ended
  }

  function toRelayRequest({ digest, action, book, orders, prices, at }: OrderBatch): RelayRequest {
    const args = [orders.map(({ order }) => order)] as const
    const data = {
      execute: () => encodeCall(orderBookAbi, 'executeOrders', args),
      raise: () => encodeCall(orderBookAbi, 'raisePeaks', args),
      record: () => encodeCall(orderBookAbi, 'recordDueOrders', args),
      end: () => encodeCall(orderBookAbi, 'endDeadOrders', args),
    }[action]()
    // Batches do not wait for each other, so each is a task of its own.
    const by = { as: 'service', task: `order:${orders[0]?.orderId}` } as const
    const deadline = BigInt(at + DEADLINE_SECONDS)
    return { digest, kind: 'exit', by, groupNonce: digest, deadline, call: { to: book, data }, prices }
  }

  function recordOutcome(batch: OrderBatch, outcome: Exclude<RelayOutcome, { state: 'unknown' }>) {
    const results = outcome.state === 'mined' ? resultsOf(batch, outcome.logs) : new Map<Hex, OrderResult>()
    const at = Number(nowAt({ timestamp: BigInt(batch.at) }))
    const wasSent = outcome.state === 'mined' || outcome.state === 'reverted'
    const { body } =
      outcome.state === 'reverted' || (outcome.state === 'rejected' && outcome.data !== undefined)
        ? refusalOfRevert(outcome.data)
        : refusalOf(outcome, batch.digest)
    const isRaised = outcome.state === 'mined' && batch.action === 'raise'
    const isRecord = batch.action === 'record'
    const isEnded = outcome.state === 'mined' && batch.action === 'end'
    const ended = isEnded ? batch.orders.map(({ order }) => chargedAfterwards(order.agentId, 'end')) : []
    budgets.spendGas(ended).catch(logUnexpected)
    for (const { orderId } of batch.orders) {
      const entry = table.entry(orderId)
      if (entry === undefined) continue
      const result = results.get(orderId)
      // A recorded order keeps what it waits for.
      if (isRecord) table.put(outcome.state === 'mined' ? entry : { ...entry, recordedAt: undefined })
      else if (result?.isOver) table.remove(orderId)
      else if (result || isRaised) table.put(changedOrder(entry, result?.positionId))
      else table.put(failedOrder(entry, body, at, wasSent))
    }
  }

  return { run, resume: resumeBatches }
}

/** Returns the peak of an open order, whose slot is not free. */
const peakOf = (state: { placedAt: number; peak: bigint } | undefined) => (state?.placedAt ? state.peak : undefined)

/** What a mined transaction did with an order, and whether the order has ended. */
type OrderResult = { isOver: boolean; positionId?: bigint }

function resultsOf({ book, orders }: OrderBatch, logs: readonly ReceiptLog[]): Map<Hex, OrderResult> {
  const results = new Map<Hex, OrderResult>()
  for (const log of logs) {
    if (!isAddressEqual(log.address, book)) continue
    const { eventName, args } = decodeEvent(orderBookAbi, log)
    if (eventName === 'OrderExecuted') {
      const { orderId, positionId, part } = args
      const parts = orders.find(each => each.orderId === orderId)?.order.parts
      results.set(orderId, { isOver: Number(part) === parts, positionId })
    }
    if (eventName === 'OrderEnded') results.set(args.orderId, { isOver: true })
  }
  return results
}
