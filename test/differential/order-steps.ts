import { AgentStatus, CapitalMode, MandateMode, TriggerType } from '@agent-trading-service/protocol/enums'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { type Order, OrderCondition, OrderSide, orderIdOf } from '@agent-trading-service/protocol/order-typed-data'
import { digestOf, hashExits } from '@agent-trading-service/protocol/typed-data'
import { type Abi, type Address, encodeErrorResult, encodeFunctionResult, type Hex } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { fixedPriceVenueAbi } from '../../contracts-abi/fixed-price-venue.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { Random } from '../support/seeded-random.ts'
import { type Act, callOf, type OrderChain, type Signer } from './order-chain.ts'
import type { Agent, Mandate, OrderMachine, Position, Refusal } from './order-machine.ts'

// One step is one call: as the chain gets it, and as the machine applies it.

export type Step = {
  name: string
  act: Act
  /** The orders that the step is about. */
  orders: readonly Order[]
  /** Applies the step to the machine and returns what the contract returns; throws a `Refusal`. */
  apply(machine: OrderMachine): Hex
}

type Target = { address: Address; abi: Abi }

export const errors = [
  orderBookAbi,
  tradeRouterAbi,
  tradePolicyAbi,
  mandateVaultAbi,
  priceOracleAbi,
  ownerControlsAbi,
  positionManagerAbi,
  agentRegistryAbi,
]
  .flat()
  .filter(({ type }) => type === 'error')

export const encodeRefusal = ({ message, args }: Refusal): Hex =>
  encodeErrorResult({ abi: errors, errorName: message, args } as never)

/**
 * Returns a function that draws steps: what agents sign, what keepers do, and what the owner, the operator and the
 * market do.
 */
export function createSteps(chain: OrderChain, random: Random) {
  const { contracts, tokens, vaults, actors, signers, domains } = chain
  const book = { address: contracts.OrderBook, abi: orderBookAbi as Abi }
  const router = { address: contracts.TradeRouter, abi: tradeRouterAbi as Abi }
  const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi as Abi }
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi as Abi }
  const controls = { address: contracts.OwnerControls, abi: ownerControlsAbi as Abi }
  const venue = { address: contracts.venue, abi: fixedPriceVenueAbi as Abi }
  /** Every order that was ever signed here, also those of blocks that a reorg removed. */
  const signed: { order: Order; signature: Hex; signer: Address }[] = []

  const step = (
    by: Address,
    { address, abi }: Target,
    name: string,
    args: unknown[],
    apply: (machine: OrderMachine) => unknown,
    orders: readonly Order[] = [],
  ): Step => ({
    name,
    orders,
    act: { by, ...callOf(address, abi, name, args) },
    apply: machine => {
      const result = apply(machine)
      return encodeFunctionResult({ abi, functionName: name, result } as never)
    },
  })
  const amount = (from: number, to: number) => BigInt(random.integer(from, to))
  /** Often the same one, so that one has as many orders as it may. */
  const agentOf = ({ state: { agents } }: OrderMachine): Agent =>
    random.pick([...agents.values()].slice(0, random.chance(0.4) ? 1 : 4))
  const keeper = () => random.pick(actors.keepers)
  const signerOf = ({ signer }: Agent): Signer =>
    (random.chance(0.98) ? signers.find(({ address }) => address === signer) : undefined) ?? random.pick(signers)
  const openPositions = (machine: OrderMachine, agentId?: bigint): Position[] =>
    [...machine.state.positions.values()].filter(
      of => of.tokens > 0n && (agentId === undefined || of.agentId === agentId),
    )
  const head = (machine: OrderMachine, { nonce }: Agent) => ({
    deadline: machine.state.time + (random.chance(0.04) ? random.pick([-1n, 3_601n, 0n, 600n]) : 300n),
    nonce: random.chance(0.98) ? nonce : nonce + random.pick([nonce === 0n ? 2n : -1n, 1n, 2n ** 256n - 1n - nonce]),
  })
  const exits = (): ExitRule[] => {
    const stop = { triggerType: TriggerType.StopLoss, triggerBps: -amount(200, 2_500), exitBps: 10_000 }
    const half = {
      triggerType: TriggerType.TakeProfit,
      triggerBps: amount(200, 1_500),
      exitBps: random.integer(1, 10_000),
    }
    if (random.chance(0.02)) return [{ ...stop, exitBps: 5_000 }]
    return random.chance(0.5) ? [stop] : [half, stop]
  }

  function order(machine: OrderMachine, agent: Agent): Order {
    const { time } = machine.state
    const positions = openPositions(machine, random.chance(0.97) ? agent.agentId : undefined)
    const [position] = positions.length === 0 ? [] : [random.pick(positions)]
    const side =
      position === undefined
        ? OrderSide.Open
        : random.pick([OrderSide.Open, OrderSide.Add, OrderSide.Reduce, OrderSide.Reduce])
    const buys = side !== OrderSide.Reduce
    const free = tokens.filter(token => !positions.some(of => of.token === token))
    const entered = free.length > 0 && random.chance(0.8) ? free : tokens
    const token = side === OrderSide.Open || position === undefined ? random.pick(entered) : position.token
    const condition = random.pick(buys ? [0, 1, 2] : [0, 1, 2, 3, 3])
    const { price } = machine.state.prices.get(token) ?? { price: 0n }
    const near = (price * amount(9_600, 10_400)) / 10_000n
    const parts = random.chance(0.6) ? 1 : random.pick([2, 2, 3, 3, 5, 7, 100])
    const trails = condition === OrderCondition.Trailing
    const valid: Order = {
      agentId: agent.agentId,
      side,
      token,
      positionId: side === OrderSide.Open ? 0n : (position?.positionId ?? 0n),
      usdcAmount: buys ? (random.chance(0.9) ? amount(5_000_000, 4_000_000_000) : amount(1, 3_000_000) + 100n) : 0n,
      exitBps: buys ? 0 : random.pick([10_000, 5_000, random.integer(100, 10_000)]),
      exits: side === OrderSide.Open ? exits() : [],
      maxSlippageBps: buys ? random.pick([100, 100, 50, 0, 101]) : 0,
      condition,
      price: condition === OrderCondition.None || (trails && random.chance(0.6)) ? 0n : near,
      trailBps: trails ? random.integer(10, 800) : 0,
      validAfter: random.chance(0.7) ? 0n : time + amount(-100, 1_200),
      validUntil: random.chance(0.1) ? 2n ** 40n - 1n : time + amount(1_200, 20_000),
      parts,
      interval: parts === 1 ? 0n : amount(60, 900),
      key: random.chance(0.6) ? 0n : amount(1, 3),
      ...head(machine, agent),
    }
    return random.chance(0.94) ? valid : { ...valid, ...invalid(valid, machine) }
  }

  /** A field that the book refuses, or at its bound. */
  const invalid = ({ parts, validUntil }: Order, { state: { time, positions } }: OrderMachine): Partial<Order> =>
    random.pick<Partial<Order>>([
      { side: 3 },
      { positionId: amount(0, positions.size + 1) },
      { usdcAmount: amount(0, 3) },
      { exitBps: random.pick([0, parts - 1, parts, 10_001]) },
      {
        exits: random.pick([
          [],
          Array.from({ length: 6 }, () => ({ triggerType: 0, triggerBps: -100n, exitBps: 10_000 })),
        ]),
      },
      { maxSlippageBps: 10_001 },
      { condition: random.pick([3, 4]) },
      { price: random.pick([0n, 2n ** 96n - 1n, 2n ** 96n]) },
      { trailBps: random.pick([0, 9_999, 10_000]) },
      { validAfter: validUntil + random.pick([0n, 1n]) },
      { validUntil: random.pick([time - 1n, time, 2n ** 40n]) },
      { parts: random.pick([0, 1, 2, 101]) },
      { interval: random.pick([0n, 59n, 60n, validUntil - time, validUntil - time + 1n]) },
      ...tokens.map(token => ({ token })),
    ])

  const known = (machine: OrderMachine): Order | undefined => {
    const held = [...machine.state.orders.values()]
    if (held.length > 0 && random.chance(0.9)) return random.pick(held).order
    return signed.length === 0 ? undefined : random.pick(signed.slice(-40)).order
  }
  /** Half of the time one that is due, if there is one. */
  const executable = (machine: OrderMachine): Order | undefined => {
    const due = [...machine.state.orders.values()].filter(({ order }) => machine.waitsFor(order) === undefined)
    return due.length > 0 && random.chance(0.75) ? random.pick(due).order : known(machine)
  }
  const several = (machine: OrderMachine): Order[] =>
    Array.from({ length: random.integer(1, 4) }, () => executable(machine)).filter(order => order !== undefined)

  // What agents sign

  async function place(machine: OrderMachine, agent = agentOf(machine)): Promise<Step> {
    const drawn = order(machine, agent)
    const signer = signerOf(machine.state.agents.get(drawn.agentId) as Agent)
    const signature = await signer.sign({ hash: orderIdOf(domains.book, drawn) })
    signed.push({ order: drawn, signature, signer: signer.address })
    return placing(drawn, signature, signer.address)
  }
  const placing = (drawn: Order, signature: Hex, signer: Address) =>
    step(keeper(), book, 'placeOrder', [drawn, signature], machine => machine.placeOrder(drawn, signer), [drawn])

  /** Sends a signed order again, which takes effect only after a reorg. */
  async function replay(machine: OrderMachine): Promise<Step> {
    if (signed.length === 0) return place(machine)
    const { order: drawn, signature, signer } = random.pick(signed.slice(-10))
    return placing(drawn, signature, signer)
  }

  async function cancel(machine: OrderMachine): Promise<Step> {
    const drawn = known(machine)
    if (drawn === undefined) return place(machine)
    const agent = random.chance(0.97) ? (machine.state.agents.get(drawn.agentId) as Agent) : agentOf(machine)
    const intent = { agentId: agent.agentId, orderId: orderIdOf(domains.book, drawn), ...head(machine, agent) }
    const signer = signerOf(agent)
    const signature = await signer.sign({ hash: digestOf(domains.book, 'CancelOrder', intent) })
    return step(keeper(), book, 'cancelOrder', [intent, signature], of => of.cancelOrder(intent, signer.address), [
      drawn,
    ])
  }

  async function open(machine: OrderMachine): Promise<Step> {
    const agent = agentOf(machine)
    const rules = exits()
    const intent = {
      agentId: agent.agentId,
      vault: agent.vault,
      token: random.pick(tokens),
      usdcAmount: amount(1_000_000, 4_000_000_000),
      minTokenOut: 0n,
      maxSlippageBps: random.pick([100, 0]),
      exits: rules,
      ...head(machine, agent),
    }
    const signer = signerOf(agent)
    const { exits: _, ...message } = intent
    const signature = await signer.sign({
      hash: digestOf(domains.router, 'OpenPosition', { ...message, exitsHash: hashExits(rules) }),
    })
    return step(actors.executor, router, 'openPosition', [intent, signature], of =>
      of.openPosition(intent, signer.address),
    )
  }

  async function reduce(machine: OrderMachine): Promise<Step> {
    const positions = openPositions(machine)
    if (positions.length === 0) return open(machine)
    const { positionId, agentId } = random.pick(positions)
    const agent = machine.state.agents.get(agentId) as Agent
    const intent = {
      agentId,
      positionId,
      exitBps: random.pick([10_000, random.integer(1, 10_000)]),
      ...head(machine, agent),
    }
    const signer = signerOf(agent)
    const signature = await signer.sign({ hash: digestOf(domains.router, 'ReducePosition', intent) })
    return step(actors.executor, router, 'reducePosition', [intent, signature], of =>
      of.reducePosition(intent, signer.address),
    )
  }

  // What keepers do

  function execute(machine: OrderMachine, by = keeper()): Step | undefined {
    const drawn = executable(machine)
    return drawn && executing(drawn, by)
  }
  const executing = (drawn: Order, by: Address) => {
    const content = random.chance(0.97) ? drawn : { ...drawn, usdcAmount: drawn.usdcAmount + 1n }
    return step(by, book, 'executeOrder', [content], machine => machine.executeOrder(content, by), [drawn])
  }

  function executeSeveral(machine: OrderMachine): Step {
    const by = keeper()
    const drawn = several(machine)
    const apply = (of: OrderMachine) => {
      const refusals = of.executeOrders(drawn, by)
      return [
        refusals.map(refusal => refusal === undefined),
        refusals.map(refusal => (refusal ? encodeRefusal(refusal) : '0x')),
      ]
    }
    return step(by, book, 'executeOrders', [drawn], apply, drawn)
  }

  const raise = (machine: OrderMachine): Step => {
    const trailing = [...machine.state.orders.values()].filter(({ order: { trailBps } }) => trailBps > 0)
    const drawn = [...several(machine), ...trailing.map(held => held.order).slice(-3)]
    return step(keeper(), book, 'raisePeaks', [drawn], of => of.raisePeaks(drawn), drawn)
  }
  const recordDue = (machine: OrderMachine): Step => {
    const drawn = several(machine)
    return step(keeper(), book, 'recordDueOrders', [drawn], of => of.recordDueOrders(drawn), drawn)
  }
  const endDead = (machine: OrderMachine): Step => {
    const drawn = several(machine)
    return step(keeper(), book, 'endDeadOrders', [drawn], of => of.endDeadOrders(drawn), drawn)
  }

  function exit(machine: OrderMachine): Step | undefined {
    const { prices, venue: spots } = machine.state
    const positions = openPositions(machine).filter(
      ({ token }) => (spots.get(token) ?? 0n) >= (prices.get(token)?.price ?? 0n),
    )
    if (positions.length === 0) return undefined
    const { positionId } = random.pick(positions)
    return step(keeper(), router, 'executeExit', [positionId], of => of.executeExit(positionId))
  }

  // What the owner, the operator and the market do

  function mandate(machine: OrderMachine): Step {
    const { agentId, owner } = agentOf(machine)
    const terms: Mandate = {
      mode: random.pick([
        MandateMode.Trade,
        MandateMode.Trade,
        MandateMode.Trade,
        MandateMode.ReduceOnly,
        MandateMode.Stopped,
      ]),
      maxTradeUsdc: random.chance(0.7) ? 0n : amount(100_000_000, 3_000_000_000),
      maxExposureUsdc: random.chance(0.8) ? 0n : amount(1_000_000_000, 8_000_000_000),
      allowedTokens: random.chance(0.9) ? [] : [random.pick(tokens)],
      validUntil: random.chance(0.9) ? 0n : machine.state.time + amount(0, 5_000),
    }
    return mandating(owner, agentId, terms)
  }
  const mandating = (owner: Address, agentId: bigint, terms: Mandate) => {
    const args = [agentId, { ...terms, maxDailyTurnoverUsdc: 0n }, 0n, NEVER, '0x']
    return step(owner, controls, 'setMandate', args, of => of.setMandate(agentId, terms))
  }
  const allowTrading = ({ agentId, owner }: Agent) =>
    mandating(owner, agentId, {
      mode: MandateMode.Trade,
      maxTradeUsdc: 0n,
      maxExposureUsdc: 0n,
      allowedTokens: [],
      validUntil: 0n,
    })
  const stop = (machine: OrderMachine): Step => {
    const { agentId, owner } = agentOf(machine)
    return step(owner, controls, 'stopBuying', [[agentId], 0n, NEVER, '0x'], of => of.stopBuying(agentId))
  }
  const close = (machine: OrderMachine): Step => {
    const { agentId, owner } = agentOf(machine)
    return step(owner, controls, 'closeAll', [[agentId], 0n, NEVER, '0x'], of => of.closeAll(agentId))
  }
  const newSigner = (machine: OrderMachine): Step => {
    const { agentId, owner } = agentOf(machine)
    const { address } = random.pick(signers)
    return step(owner, controls, 'setSigner', [agentId, address, 0n, NEVER, '0x'], of => of.setSigner(agentId, address))
  }
  const newOwner = (machine: OrderMachine): Step => {
    const { agentId, owner } = agentOf(machine)
    const next = random.pick(actors.owners)
    return step(owner, registry, 'transferAgentOwnership', [agentId, next], of => of.transferOwnership(agentId, next))
  }
  const status = (machine: OrderMachine): Step => changeStatus(agentOf(machine))
  const changeStatus = ({ agentId, status: held }: Agent): Step => {
    const next = held === AgentStatus.Active ? AgentStatus.Suspended : AgentStatus.Active
    return step(actors.operator, registry, 'setAgentStatus', [agentId, next], of => of.setStatus(agentId, next))
  }
  const promote = (machine: OrderMachine): Step | undefined => {
    const { agentId, track } = agentOf(machine)
    if (track === 2) return undefined
    return step(actors.operator, registry, 'promoteAgent', [agentId, track + 1], of =>
      of.promote(agentId, CapitalMode.Real),
    )
  }
  const pause = (machine: OrderMachine): Step =>
    random.chance(0.5) ? pauseRegistry(machine) : pauseTrading(machine, random.pick(vaults))
  const pauseRegistry = ({ state }: OrderMachine): Step => {
    const isPaused = !state.isRegistryPaused
    return step(actors.operator, registry, isPaused ? 'pause' : 'unpause', [], of => of.pauseRegistry(isPaused))
  }
  const pauseTrading = ({ state }: OrderMachine, vault: Address): Step => {
    const isPaused = !state.pausedVaults.has(vault)
    const of = { address: vault, abi: mandateVaultAbi as Abi }
    return step(actors.operator, of, 'setTradingPaused', [isPaused], machine => machine.pauseTrading(vault, isPaused))
  }
  const price = (machine: OrderMachine): Step => {
    const token = random.pick(tokens)
    const last = machine.state.prices.get(token)?.price ?? 0n
    const next = last < 10n ** 8n || random.chance(0.01) ? 200n * 10n ** 8n : (last * amount(9_500, 10_550)) / 10_000n
    if (random.chance(0.8)) {
      return step(actors.priceSetter, oracle, 'setPrices', [[token], [next]], of => of.setPrice(token, next))
    }
    const observedAt = machine.state.time - amount(0, 400)
    const args = [[token], [next], [observedAt]]
    return step(actors.priceSetter, oracle, 'post', args, of => of.postPrice(token, next, observedAt))
  }
  const spot = (machine: OrderMachine): Step => {
    const token = random.pick(tokens)
    const last = machine.state.prices.get(token)?.price ?? 0n
    const next = random.chance(0.75)
      ? last
      : (last * (random.chance(0.6) ? amount(9_960, 10_040) : amount(9_500, 10_500))) / 10_000n
    return step(keeper(), venue, 'setPrice', [token, next], of => of.setSpot(token, next))
  }

  /** Lifts one restriction, so that not all are in force before long. */
  const lift = (machine: OrderMachine): Step | undefined => {
    const { state } = machine
    const stoppedAgent = [...state.agents.values()].find(
      ({ mandate: { mode }, closingSince }) => mode !== 0 || closingSince !== 0n,
    )
    const suspended = [...state.agents.values()].find(({ status: held }) => held !== AgentStatus.Active)
    if (state.isRegistryPaused && random.chance(0.5)) return pauseRegistry(machine)
    const [vault] = state.pausedVaults
    if (vault && random.chance(0.7)) return pauseTrading(machine, vault)
    if (suspended && random.chance(0.5)) return changeStatus(suspended)
    return stoppedAgent && allowTrading(stoppedAgent)
  }

  const draws: [number, (machine: OrderMachine) => Step | undefined | Promise<Step>][] = [
    [220, place],
    [20, replay],
    [40, cancel],
    [50, open],
    [30, reduce],
    [220, execute],
    [60, executeSeveral],
    [50, raise],
    [50, recordDue],
    [40, endDead],
    [40, exit],
    [140, price],
    [80, spot],
    [15, mandate],
    [5, stop],
    [4, close],
    [3, newSigner],
    [2, newOwner],
    [6, status],
    [2, promote],
    [10, pause],
    [60, lift],
  ]
  const choices = draws.flatMap(([weight, choice]) => Array.from({ length: weight }, () => choice))

  return {
    /** Draws a step from the machine's state. */
    draw: async (machine: OrderMachine): Promise<Step> => (await random.pick(choices)(machine)) ?? place(machine),
    place,
    /** Both keepers execute one order. */
    race: (machine: OrderMachine): Step[] => {
      const drawn = executable(machine)
      return drawn === undefined ? [] : actors.keepers.map(by => executing(drawn, by))
    },
  }
}

const NEVER = 2n ** 64n
