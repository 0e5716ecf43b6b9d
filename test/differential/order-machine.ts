import { AgentStatus, CapitalMode, MandateMode, TriggerType } from '@agent-trading-service/protocol/enums'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import {
  findOrderProblem,
  isBuy,
  ORDER_FIELDS,
  partExitBps,
  partUsdcAmount,
  triggerPrice,
} from '@agent-trading-service/protocol/order-rules'
import { type Order, OrderCondition, OrderEnd } from '@agent-trading-service/protocol/order-typed-data'
import type { Address, Hex } from 'viem'

// What docs/decisions/orders.md says of orders, and as much of trading as decides whether a part executes and what it
// brings. It trades with a venue that fills any amount at one price, and no limit of a track binds. Prices have 8
// decimals, USDC 6, times are Unix seconds.

export type Price = { price: bigint; observedAt: bigint; round: bigint }
export type Mandate = {
  mode: number
  maxTradeUsdc: bigint
  maxExposureUsdc: bigint
  allowedTokens: Address[]
  validUntil: bigint
}
export type Agent = {
  agentId: bigint
  vault: Address
  owner: Address
  signer: Address
  nonce: bigint
  status: number
  track: number
  capitalMode: number
  mandate: Mandate
  closingSince: bigint
  usedUsdc: bigint
  bounty: { day: bigint; units: bigint }
}
export type Position = {
  positionId: bigint
  agentId: bigint
  token: Address
  tokens: bigint
  costUsdc: bigint
  maxSlippageBps: bigint
  capitalMode: number
  pending: ExitRule[]
  armedAt: bigint
  armedRound: bigint
}
/** An order that the book holds: open, expired, void, or of a closed position. */
export type HeldOrder = {
  order: Order
  orderId: Hex
  placedAt: bigint
  nextAt: bigint
  peak: bigint
  partsDone: number
  positionId: bigint
  isVoid: boolean
  /** When a part was first recorded as due, and when last. */
  due: { since: bigint; seenAt: bigint } | undefined
}
/** What the order book emits, and the order and the price at that moment. */
export type OrderEvent = {
  name: 'OrderPlaced' | 'OrderExecuted' | 'OrderDue' | 'OrderPeakRaised' | 'OrderEnded'
  args: Record<string, unknown> & { orderId: Hex }
  condition: number
  placedAt: bigint
  time: bigint
  observedAt: bigint
}

export type State = {
  time: bigint
  isRegistryPaused: boolean
  pausedVaults: Set<Address>
  prices: Map<Address, Price>
  venue: Map<Address, bigint>
  agents: Map<bigint, Agent>
  positions: Map<bigint, Position>
  orders: Map<Hex, HeldOrder>
  latestOfKey: Map<string, Hex>
}

/** A refusal by the name of the contracts' error. */
export class Refusal extends Error {
  readonly args: readonly unknown[]
  constructor(name: string, args: readonly unknown[]) {
    super(name)
    this.args = args
  }
}
const refuse = (name: string, ...args: unknown[]): never => {
  throw new Refusal(name, args)
}

const BPS = 10_000n
const DAY = 86_400n
const MAX_OPEN_ORDERS = 20
/** Placing asks for the bound of deadlines only beyond this. */
const NEAR_DEADLINE = 600n
const DUE_EXPIRY = 900n
const DUE_REFRESH = 60n

/** The policy that the chain of this test has for every track. */
export const terms = {
  maxPriceAge: 3_600n,
  maxEntrySlippageBps: 100n,
  maxExitSlippageBps: 300n,
  exitSlippageStartBps: 50n,
  exitWideningSeconds: 600n,
  minTradeUsdc: 1_000_000n,
  maxSpotDeviationBps: 300n,
  maxDeadlineSeconds: 3_600n,
  bountyBps: 10n,
  maxBountyUsdc: 2_000_000n,
}

const min = (a: bigint, b: bigint) => (a < b ? a : b)
const max = (a: bigint, b: bigint) => (a > b ? a : b)
const ceilDiv = (a: bigint, b: bigint) => (a + b - 1n) / b
const lessBps = (amount: bigint, bps: bigint) => (amount * (BPS - bps)) / BPS

export class OrderMachine {
  state: State
  /** What the order book has emitted since the events were last taken. */
  events: OrderEvent[] = []
  readonly #decimals: ReadonlyMap<Address, number>
  readonly idOf: (order: Order) => Hex

  constructor(state: State, decimals: ReadonlyMap<Address, number>, idOf: (order: Order) => Hex) {
    this.state = state
    this.#decimals = decimals
    this.idOf = idOf
  }

  // What the signer signs

  placeOrder(order: Order, signer: Address): Hex {
    const agent = this.#authorize(order, signer, isBuy(order))
    if (order.deadline > this.state.time + NEAR_DEADLINE) this.#checkDeadline(order.deadline)
    const problem = findOrderProblem(order, this.state.time)
    if (problem) refuse('InvalidOrder', BigInt(ORDER_FIELDS.indexOf(problem.field)), problem.value)
    if (order.positionId !== 0n) {
      const position = this.#openPosition(order.positionId, order.agentId)
      if (position.token !== order.token) refuse('PositionTokenMismatch', order.positionId, position.token, order.token)
    }
    const orderId = this.idOf(order)
    const key = `${order.agentId} ${order.key}`
    const replaced = order.key === 0n ? undefined : this.state.orders.get(this.state.latestOfKey.get(key) ?? '0x')
    const places = this.openOrderCount(order.agentId) - (replaced && !replaced.isVoid ? 1 : 0)
    if (places >= MAX_OPEN_ORDERS) refuse('TooManyOpenOrders', order.agentId, BigInt(MAX_OPEN_ORDERS))

    agent.nonce++
    if (order.key !== 0n) this.state.latestOfKey.set(key, orderId)
    if (replaced) this.#end(replaced, OrderEnd.Replaced)
    const { price } = this.#price(order.token)
    const peak = order.condition === OrderCondition.Trailing && price >= order.price ? price : 0n
    const held: HeldOrder = {
      order,
      orderId,
      placedAt: this.state.time,
      nextAt: order.validAfter,
      peak,
      partsDone: 0,
      positionId: order.positionId,
      isVoid: false,
      due: undefined,
    }
    this.state.orders.set(orderId, held)
    this.#emit('OrderPlaced', held, { positionId: order.positionId, peak })
    return orderId
  }

  cancelOrder(intent: { agentId: bigint; orderId: Hex; deadline: bigint; nonce: bigint }, signer: Address): void {
    const agent = this.#authorize(intent, signer, false)
    const held = this.state.orders.get(intent.orderId)
    if (held?.order.agentId !== intent.agentId) refuse('OrderNotOpen', intent.orderId)
    agent.nonce++
    this.#end(held as HeldOrder, OrderEnd.Cancelled)
  }

  openPosition(
    intent: {
      agentId: bigint
      token: Address
      usdcAmount: bigint
      maxSlippageBps: number
      exits: readonly ExitRule[]
      deadline: bigint
      nonce: bigint
    },
    signer: Address,
  ): bigint {
    const agent = this.#authorize(intent, signer, true)
    const { positionId } = this.#buy(agent, { ...intent, positionId: 0n })
    agent.nonce++
    return positionId
  }

  reducePosition(
    intent: { agentId: bigint; positionId: bigint; exitBps: number; deadline: bigint; nonce: bigint },
    signer: Address,
  ): bigint {
    const agent = this.#authorize(intent, signer, false)
    const usdcOut = this.#reduce(agent, intent)
    agent.nonce++
    return usdcOut
  }

  // What keepers do

  /** Keepers are strangers: none holds the executor's role. */
  executeOrder(order: Order, keeper: Address): bigint {
    const held = this.#checkDue(order)
    const agent = this.#agent(order.agentId)
    const part = held.partsDone + 1
    const { positionId, amount } = isBuy(order)
      ? this.#buyPart(agent, held, part)
      : { positionId: held.positionId, amount: this.#reducePart(agent, held, part) }
    held.partsDone = part
    held.positionId = positionId
    held.nextAt = this.state.time + order.interval
    if (part === order.parts) this.state.orders.delete(held.orderId)
    this.#emit('OrderExecuted', held, { positionId, part: BigInt(part), amount, keeper })
    return amount
  }

  /** Returns for each order whether it was executed, and else its refusal. */
  executeOrders(orders: readonly Order[], keeper: Address): (Refusal | undefined)[] {
    return orders.map(order => refusalOf(() => this.executeOrder(order, keeper)))
  }

  recordDueOrders(orders: readonly Order[]): void {
    for (const order of orders) {
      if (this.waitsFor(order)) continue
      const held = this.state.orders.get(this.idOf(order)) as HeldOrder
      if (held.due && this.state.time < held.due.seenAt + DUE_REFRESH) continue
      const since = this.#dueSince(held)
      held.due = { since, seenAt: this.state.time }
      this.#emit('OrderDue', held, { since })
    }
  }

  raisePeaks(orders: readonly Order[]): void {
    for (const order of orders) {
      const held = this.state.orders.get(this.idOf(order))
      if (held === undefined || order.condition !== OrderCondition.Trailing || !this.#isFresh(order.token)) continue
      const { price, observedAt } = this.#price(order.token)
      if (observedAt <= held.placedAt || price <= held.peak || price < (held.peak === 0n ? order.price : 0n)) continue
      held.peak = price
      this.#emit('OrderPeakRaised', held, { peak: price })
    }
  }

  endDeadOrders(orders: readonly Order[]): void {
    for (const order of orders) {
      const held = this.state.orders.get(this.idOf(order))
      if (held === undefined) continue
      if (held.isVoid) this.#end(held, OrderEnd.Voided)
      else if (this.state.time > order.validUntil) this.#end(held, OrderEnd.Expired)
      else if (this.state.positions.get(held.positionId)?.tokens === 0n) this.#end(held, OrderEnd.PositionClosed)
    }
  }

  /**
   * Sells what a rule of the exit ladder says, or all if the owner has the agent closed. The venue pays the oracle's
   * price or more.
   */
  executeExit(positionId: bigint): bigint {
    const position = this.#openPosition(positionId)
    const agent = this.#agent(position.agentId)
    const { price, observedAt, round } = this.#salePrice(agent, position.token)
    const isArmed = round > position.armedRound && observedAt >= position.armedAt
    const rule = isArmed ? this.#metRule(position, price) : undefined
    if (rule === undefined && agent.closingSince === 0n) refuse('TriggerNotMet', positionId)
    const isClosing = agent.closingSince !== 0n
    const sold =
      isClosing || rule === undefined
        ? position.tokens
        : this.#share(position, BigInt(rule.exitBps), price) || position.tokens
    const usdcOut = this.#saleProceeds(position, sold)
    const kept = this.#bookSale(agent, position, sold, usdcOut, this.#exitSlippageBps(this.state.time), true)
    if (!isClosing) position.pending = position.pending.filter(pending => pending !== rule)
    return kept
  }

  /** Returns the refusal of an order's own conditions, or of a price that is not fresh; undefined if there is none. */
  waitsFor = (order: Order): Refusal | undefined =>
    refusalOf(() => {
      this.#checkDue(order)
      this.#checkFresh(order.token)
    })

  openOrderCount = (agentId: bigint): number =>
    [...this.state.orders.values()].filter(({ order, isVoid }) => order.agentId === agentId && !isVoid).length

  // What the owner, the operator and the market do

  setMandate(agentId: bigint, mandate: Mandate): void {
    const agent = this.#agent(agentId)
    const isClosing = mandate.mode !== MandateMode.Trade && agent.closingSince !== 0n
    this.#restrict(agent, { mandate, closingSince: isClosing ? agent.closingSince : 0n })
  }

  stopBuying(agentId: bigint): void {
    const agent = this.#agent(agentId)
    this.#restrict(agent, { mandate: stopped(agent.mandate), closingSince: agent.closingSince })
  }

  closeAll(agentId: bigint): void {
    const agent = this.#agent(agentId)
    this.#restrict(agent, { mandate: stopped(agent.mandate), closingSince: agent.closingSince || this.state.time })
  }

  setSigner(agentId: bigint, signer: Address): void {
    this.#agent(agentId).signer = signer
    this.#void(agentId, true)
  }

  transferOwnership(agentId: bigint, owner: Address): void {
    this.#agent(agentId).owner = owner
    this.#void(agentId, true)
  }

  promote(agentId: bigint, capitalMode: number): void {
    if (this.state.isRegistryPaused) refuse('EnforcedPause')
    const agent = this.#agent(agentId)
    if (agent.status !== AgentStatus.Active) refuse('AgentNotPromotable', agentId, agent.status)
    agent.track++
    agent.capitalMode = capitalMode
    this.#void(agentId, false)
  }

  setStatus(agentId: bigint, status: number): void {
    this.#agent(agentId).status = status
  }

  pauseRegistry(isPaused: boolean): void {
    this.state.isRegistryPaused = isPaused
  }

  pauseTrading(vault: Address, isPaused: boolean): void {
    if (isPaused) this.state.pausedVaults.add(vault)
    else this.state.pausedVaults.delete(vault)
  }

  /** The price of the venue. */
  setSpot(token: Address, price: bigint): void {
    this.state.venue.set(token, price)
  }

  setPrice(token: Address, price: bigint): void {
    const { round } = this.#price(token)
    this.state.prices.set(token, { price, observedAt: this.state.time, round: round + 1n })
  }

  /** Posts a price that was observed earlier; one that is not newer than the last is skipped. */
  postPrice(token: Address, price: bigint, observedAt: bigint): void {
    const last = this.#price(token)
    if (observedAt > last.observedAt) this.state.prices.set(token, { price, observedAt, round: last.round + 1n })
  }

  // Orders

  #checkDue(order: Order): HeldOrder {
    const orderId = this.idOf(order)
    const held = this.state.orders.get(orderId)
    if (held === undefined) return refuse('OrderNotOpen', orderId)
    if (held.isVoid) refuse('OrderIsVoid', orderId)
    if (this.state.time > order.validUntil) refuse('OrderExpired', orderId, order.validUntil)
    if (this.state.time < held.nextAt) refuse('OrderNotDue', orderId, held.nextAt)
    if (order.condition === OrderCondition.None) return held
    const { price, observedAt } = this.#price(order.token)
    if (observedAt <= held.placedAt) refuse('PriceBeforeOrder', orderId, observedAt, held.placedAt)
    const trigger = triggerPrice(order, held.peak)
    const isMet =
      trigger !== undefined && (order.condition === OrderCondition.AtOrAbove ? price >= trigger : price <= trigger)
    if (!isMet) refuse('ConditionNotMet', orderId, price, trigger ?? 0n)
    return held
  }

  /**
   * Since when the slippage of strangers widens: a record that is not confirmed starts over, and each part waits for
   * itself.
   */
  #dueSince({ due, nextAt }: HeldOrder): bigint {
    const isCurrent = due && due.since >= nextAt && this.state.time <= due.seenAt + DUE_EXPIRY
    return isCurrent ? due.since : this.state.time
  }

  #buyPart(agent: Agent, held: HeldOrder, part: number) {
    const { order, positionId } = held
    const { token, maxSlippageBps, exits } = order
    const strangerBps = this.#exitSlippageBps(this.#dueSince(held))
    const usdcAmount = partUsdcAmount(order, part)
    this.#checkMayBuy(agent)
    if (positionId !== 0n) this.#openPosition(positionId, agent.agentId)
    const { positionId: bought, tokens } = this.#buy(agent, {
      token,
      usdcAmount,
      maxSlippageBps,
      strangerBps,
      exits,
      positionId,
    })
    return { positionId: bought, amount: tokens }
  }

  #reducePart(agent: Agent, held: HeldOrder, part: number): bigint {
    const { order, positionId } = held
    const strangerBps = this.#exitSlippageBps(this.#dueSince(held))
    return this.#reduce(agent, { positionId, exitBps: partExitBps(order, part), strangerBps })
  }

  #end(held: HeldOrder, reason: number): void {
    this.state.orders.delete(held.orderId)
    this.#emit('OrderEnded', held, { reason })
  }

  #void(agentId: bigint, withSales: boolean): void {
    for (const held of this.state.orders.values())
      if (held.order.agentId === agentId && (withSales || isBuy(held.order))) held.isVoid = true
  }

  /** A mandate that begins to buy nothing ends the orders that buy; closing that begins ends all. */
  #restrict(agent: Agent, { mandate, closingSince }: Pick<Agent, 'mandate' | 'closingSince'>): void {
    const wasStopped = isStopped(agent)
    const wasClosing = agent.closingSince !== 0n
    Object.assign(agent, { mandate, closingSince })
    if (isStopped(agent) && !wasStopped) this.#void(agent.agentId, false)
    if (closingSince !== 0n && !wasClosing) this.#void(agent.agentId, true)
  }

  // Trades

  #authorize(
    { agentId, nonce, deadline }: { agentId: bigint; nonce: bigint; deadline: bigint },
    signer: Address,
    buys: boolean,
  ): Agent {
    if (this.state.time > deadline) refuse('ExpiredDeadline')
    const agent = this.#agent(agentId)
    if (nonce !== agent.nonce) refuse('InvalidNonce', agent.nonce, nonce)
    if (signer !== agent.signer) refuse('InvalidSignature')
    if (buys) this.#checkMayBuy(agent)
    return agent
  }

  #checkMayBuy({ agentId, status, mandate }: Agent): void {
    if (this.state.isRegistryPaused) refuse('RegistryPaused')
    if (status !== AgentStatus.Active) refuse('AgentNotTradable', agentId)
    const isOver = mandate.validUntil !== 0n && this.state.time > mandate.validUntil
    if (mandate.mode !== MandateMode.Trade || isOver)
      refuse('MandateStopsBuying', agentId, mandate.mode, mandate.validUntil)
  }

  #buy(
    agent: Agent,
    buy: {
      token: Address
      usdcAmount: bigint
      maxSlippageBps: number
      strangerBps?: bigint
      exits: readonly ExitRule[]
      positionId: bigint
      deadline?: bigint
    },
  ): { positionId: bigint; tokens: bigint } {
    const { token, usdcAmount, exits } = buy
    const slippageBps = BigInt(buy.maxSlippageBps)
    const held = buy.positionId === 0n ? undefined : this.#openPosition(buy.positionId, agent.agentId)
    if (this.state.pausedVaults.has(agent.vault)) refuse('TradingPaused')
    if (held === undefined) {
      if (this.#openPositionIn(agent.agentId, token)) refuse('PositionAlreadyOpen', agent.agentId, token)
      if (exits.at(-1)?.exitBps !== 10_000) refuse('InvalidExitRules')
    }
    const { mandate } = agent
    const usedUsdc = agent.usedUsdc + usdcAmount
    if (mandate.allowedTokens.length > 0 && !mandate.allowedTokens.includes(token))
      refuse('TokenOutsideMandate', agent.agentId, token)
    if (mandate.maxTradeUsdc !== 0n && usdcAmount > mandate.maxTradeUsdc)
      refuse('ExceedsMandateTrade', agent.agentId, usdcAmount, mandate.maxTradeUsdc)
    if (mandate.maxExposureUsdc !== 0n && usedUsdc > mandate.maxExposureUsdc)
      refuse('ExceedsMandateExposure', agent.agentId, usedUsdc, mandate.maxExposureUsdc)
    if (held && held.capitalMode !== agent.capitalMode) refuse('CapitalModeMismatch', held.positionId, held.capitalMode)
    const { price, round } = this.#checkFresh(token)
    if (held && this.#metRule(held, price)) refuse('PendingRuleAlreadyTriggered', held.positionId)
    if (buy.deadline !== undefined) this.#checkDeadline(buy.deadline)
    if (slippageBps > terms.maxEntrySlippageBps) refuse('SlippageAboveLimit', slippageBps, terms.maxEntrySlippageBps)
    if (usdcAmount < terms.minTradeUsdc) refuse('TradeTooSmall', usdcAmount, terms.minTradeUsdc)
    const spot = this.#spot(token)
    if (isFar(spot, price)) refuse('SpotPriceDeviation', token, spot, price, terms.maxSpotDeviationBps)

    const atOracle = this.#tokensFor(token, usdcAmount, price)
    const minimum = lessBps(atOracle, min(slippageBps, buy.strangerBps ?? slippageBps))
    const filled = this.#tokensFor(token, usdcAmount, spot)
    const tokens = agent.capitalMode === CapitalMode.Simulated ? min(filled, atOracle) : filled
    if (tokens < minimum || tokens === 0n) refuse('SlippageExceeded', minimum, tokens)

    agent.usedUsdc = usedUsdc
    const positionId = held?.positionId ?? BigInt(this.state.positions.size + 1)
    this.state.positions.set(positionId, {
      positionId,
      agentId: agent.agentId,
      token,
      tokens: (held?.tokens ?? 0n) + tokens,
      costUsdc: (held?.costUsdc ?? 0n) + usdcAmount,
      maxSlippageBps: held?.maxSlippageBps ?? slippageBps,
      capitalMode: agent.capitalMode,
      pending: held?.pending ?? [...exits],
      armedAt: this.state.time,
      armedRound: round,
    })
    return { positionId, tokens }
  }

  #reduce(
    agent: Agent,
    {
      positionId,
      exitBps,
      deadline,
      strangerBps,
    }: { positionId: bigint; exitBps: number; deadline?: bigint; strangerBps?: bigint },
  ): bigint {
    const position = this.#openPosition(positionId, agent.agentId)
    if (exitBps < 1 || exitBps > 10_000) refuse('BpsOutOfRange', BigInt(exitBps))
    const { price } = this.#salePrice(agent, position.token)
    const sold = this.#share(position, BigInt(exitBps), price)
    if (sold === 0n) refuse('InvalidReduceAmount', positionId)
    const value = this.#value(position.token, sold, price)
    if (deadline !== undefined) this.#checkDeadline(deadline)
    if (sold < position.tokens && value < terms.minTradeUsdc) refuse('TradeTooSmall', value, terms.minTradeUsdc)
    const spot = this.#spot(position.token)
    if (spot < price && isFar(spot, price))
      refuse('SpotPriceDeviation', position.token, spot, price, terms.maxSpotDeviationBps)
    const signedBps = min(max(position.maxSlippageBps, terms.exitSlippageStartBps), terms.maxExitSlippageBps)
    const slippageBps = min(signedBps, strangerBps ?? signedBps)
    const floor = this.#saleFloor(position.token, sold, price, slippageBps)
    const usdcOut = this.#saleProceeds(position, sold)
    if (usdcOut < floor) refuse('SlippageExceeded', floor, usdcOut)
    return this.#bookSale(agent, position, sold, usdcOut, slippageBps, strangerBps !== undefined)
  }

  /** Returns what the vault keeps. A keeper's bounty comes out of what exceeds the floor. */
  #bookSale(
    agent: Agent,
    position: Position,
    sold: bigint,
    usdcOut: bigint,
    slippageBps: bigint,
    hasKeeper: boolean,
  ): bigint {
    const { price } = this.#price(position.token)
    const floor = this.#saleFloor(position.token, sold, price, slippageBps)
    const isPaid = hasKeeper && position.capitalMode === CapitalMode.Real
    const wanted = isPaid ? min((usdcOut * terms.bountyBps) / BPS, max(usdcOut - floor, 0n)) : 0n
    const today = this.state.time / DAY
    if (agent.bounty.day !== today) agent.bounty = { day: today, units: 0n }
    const bounty = min(wanted, max(terms.maxBountyUsdc - agent.bounty.units * 100n, 0n))
    agent.bounty.units += ceilDiv(bounty, 100n)

    const released = ceilDiv(position.costUsdc * sold, position.tokens)
    agent.usedUsdc -= released
    position.costUsdc -= released
    position.tokens -= sold
    return usdcOut - bounty
  }

  /** A share of what is left; all of it if the rest would be worth nothing. */
  #share({ token, tokens }: Position, exitBps: bigint, price: bigint): bigint {
    const share = (tokens * exitBps) / BPS
    return this.#value(token, tokens - share, price) === 0n ? tokens : share
  }

  #saleProceeds({ token, capitalMode }: Position, sold: bigint): bigint {
    const paid = this.#value(token, sold, this.#spot(token))
    return capitalMode === CapitalMode.Simulated ? min(paid, this.#value(token, sold, this.#price(token).price)) : paid
  }

  /**
   * The least that a sale must bring: as much as one unit of the token less would, unless a unit is worth more than a
   * cent.
   */
  #saleFloor(token: Address, sold: bigint, price: bigint, slippageBps: bigint): bigint {
    const minPrice = (price * 10n ** 10n * (BPS - slippageBps)) / BPS
    const scale = this.#unit(token) * 10n ** 12n
    const counted = sold !== 0n && minPrice <= 10_000n * scale ? sold - 1n : sold
    return (counted * minPrice) / scale
  }

  #exitSlippageBps(dueSince: bigint): bigint {
    const { exitSlippageStartBps: start, maxExitSlippageBps: end, exitWideningSeconds } = terms
    const elapsed = this.state.time - dueSince
    return elapsed >= exitWideningSeconds ? end : start + ((end - start) * elapsed) / exitWideningSeconds
  }

  /** The first pending rule that is met at a price. */
  #metRule({ token, tokens, costUsdc, pending }: Position, price: bigint): ExitRule | undefined {
    const cost = costUsdc * this.#unit(token) * 100n
    const pnlBps = costUsdc === 0n ? 8_388_607n : ((tokens * price - cost) * BPS) / cost
    return pending.find(({ triggerType, triggerBps }) =>
      triggerType === TriggerType.StopLoss ? pnlBps <= triggerBps : pnlBps >= triggerBps,
    )
  }

  #checkDeadline(deadline: bigint): void {
    const latest = this.state.time + terms.maxDeadlineSeconds
    if (deadline > latest) refuse('DeadlineTooFar', deadline, latest)
  }

  #salePrice({ vault }: Agent, token: Address): Price {
    if (this.state.pausedVaults.has(vault)) refuse('TradingPaused')
    return this.#checkFresh(token)
  }

  #checkFresh(token: Address): Price {
    const price = this.#price(token)
    if (!this.#isFresh(token)) refuse('StalePrice', token, price.observedAt, terms.maxPriceAge)
    return price
  }

  #isFresh = (token: Address) => this.state.time - this.#price(token).observedAt <= terms.maxPriceAge

  #openPosition(positionId: bigint, agentId?: bigint): Position {
    const position = this.state.positions.get(positionId)
    if (position === undefined) return refuse('PositionNotFound', positionId)
    if (agentId !== undefined && position.agentId !== agentId) refuse('PositionAgentMismatch', positionId, agentId)
    if (position.tokens === 0n) refuse('PositionNotOpen', positionId)
    return position
  }

  #openPositionIn = (agentId: bigint, token: Address) =>
    [...this.state.positions.values()].some(of => of.agentId === agentId && of.token === token && of.tokens > 0n)

  #agent(agentId: bigint): Agent {
    return this.state.agents.get(agentId) ?? refuse('AgentNotFound', agentId)
  }
  #price = (token: Address): Price => this.state.prices.get(token) ?? refuse('TokenNotQuoted', token)
  #spot = (token: Address): bigint => this.state.venue.get(token) ?? 0n
  #unit = (token: Address): bigint => 10n ** BigInt(this.#decimals.get(token) ?? 18)
  #value = (token: Address, tokens: bigint, price: bigint) => (tokens * price) / (this.#unit(token) * 100n)
  #tokensFor = (token: Address, usdc: bigint, price: bigint) => (usdc * 100n * this.#unit(token)) / price
  #emit(name: OrderEvent['name'], { orderId, order, placedAt }: HeldOrder, args: Record<string, unknown>): void {
    const { agentId, condition, token } = order
    const { observedAt } = this.#price(token)
    this.events.push({
      name,
      args: { orderId, agentId, ...args },
      condition,
      placedAt,
      time: this.state.time,
      observedAt,
    })
  }
}

const isStopped = ({ mandate, closingSince }: Agent) => mandate.mode !== MandateMode.Trade || closingSince !== 0n

/** A stricter mode stays. */
const stopped = (mandate: Mandate): Mandate =>
  mandate.mode === MandateMode.Trade ? { ...mandate, mode: MandateMode.ReduceOnly } : mandate

function isFar(spot: bigint, price: bigint): boolean {
  const distance = spot > price ? spot - price : price - spot
  return distance * BPS > price * terms.maxSpotDeviationBps
}

function refusalOf(run: () => unknown): Refusal | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}
