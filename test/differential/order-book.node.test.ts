import { type Order, OrderCondition, OrderEnd } from '@agent-trading-service/protocol/order-typed-data'
import {
  type Address,
  decodeErrorResult,
  encodeFunctionResult,
  getAbiItem,
  type Hex,
  numberToHex,
  toFunctionSelector,
} from 'viem'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { type Random, randomOf } from '../support/seeded-random.ts'
import { type Call, type CallResult, callOf, type OrderChain, startOrderChain } from './order-chain.ts'
import { type OrderEvent, type OrderMachine, Refusal, type State, terms } from './order-machine.ts'
import { createSteps, encodeRefusal, errors, type Step } from './order-steps.ts'

// Random steps on the contracts and on the reference machine: orders, trades, prices, pauses, statuses, mandates,
// stops, reorgs and two keepers. Every step compares what the call returned or why it was refused, the events and the
// orders that it is about; every block all orders, positions and counts. `npm run test:long --
// test/differential/order-book.node.test.ts` makes 50,000 steps.

const STEPS = inject('isLong') ? 50_000 : 400
const EPISODE_STEPS = 1_000

/** Steps of a block in which one agent places as many orders as it may, and more. */
const CROWD = 30

/** What OpenZeppelin's contracts declare, and what no account outside provokes. */
const UNREACHABLE = [
  'EIP712DomainChanged',
  'InvalidShortString',
  'OnlySelf',
  'ReentrancyGuardReentrantCall',
  'SafeCastOverflowedUintDowncast',
  'StringTooLong',
  'ZeroAddress',
]

/** What all steps together did. `journals` holds the events of each history that was not reorganized away. */
const differences: string[] = []
const journals: OrderEvent[][] = []
const outcomes = new Map<string, number>()
const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

let chain: OrderChain
beforeAll(async () => {
  chain = await startOrderChain()
  const startedAt = performance.now()
  let start = await chain.snapshot()
  for (let done = 0; done < STEPS; done += EPISODE_STEPS) {
    await chain.revert(start)
    start = await chain.snapshot()
    await playEpisode(`${done / EPISODE_STEPS}`, Math.min(EPISODE_STEPS, STEPS - done))
  }
  if (inject('isLong'))
    console.log(
      `${STEPS} steps in ${Math.round((performance.now() - startedAt) / 1000)} s`,
      Object.fromEntries([...outcomes].sort()),
    )
}, 3_600_000)
afterAll(() => chain?.stop())

it('the contracts agree with the reference machine on every call, order, position and count', () => {
  expect(differences).toEqual([])
  expect(outcomes.get('OrderExecuted')).toBeGreaterThan(STEPS / 50)
})

if (inject('isLong'))
  it('the steps provoke every event, end and refusal of the order book', () => {
    const all = orderBookAbi.flatMap(item => (item.type === 'error' || item.type === 'event' ? [item.name] : []))
    const ends = Object.values(OrderEnd).map(reason => `OrderEnded ${reason}`)
    const met = [...outcomes.keys()]
    expect([...all, ...ends].filter(name => !met.includes(name))).toEqual(UNREACHABLE)
  })

it('each part of an order executes at most once', () => {
  for (const journal of journals) {
    const parts = journal
      .filter(({ name }) => name === 'OrderExecuted')
      .map(({ args }) => `${args.orderId} ${args.part}`)
    expect(parts.length).toBe(new Set(parts).size)
  }
})

it('an order that has ended, by a cancel above all, executes in no later block', () => {
  for (const journal of journals) {
    const ended = new Set<unknown>()
    for (const { name, args } of journal) {
      if (name === 'OrderExecuted') expect(ended).not.toContain(args.orderId)
      if (name === 'OrderEnded') ended.add(args.orderId)
    }
  }
})

it('nothing executes on a price that is stale, and no condition is met by one from before the order', () => {
  for (const { name, time, observedAt, condition, placedAt } of journals.flat()) {
    if (name !== 'OrderExecuted') continue
    expect(time - observedAt).toBeLessThanOrEqual(terms.maxPriceAge)
    if (condition !== OrderCondition.None) expect(observedAt).toBeGreaterThan(placedAt)
  }
})

it('no order keeps an agent from reducing or exiting, or its owner from stopping it', () => {
  const names = orderBookAbi.flatMap(item => (item.type === 'error' ? [item.name] : []))
  for (const call of ['reducePosition', 'executeExit'])
    for (const name of names) expect(outcomes).not.toHaveProperty(`${call} ${name}`)
  for (const call of ['stopBuying', 'closeAll', 'setMandate', 'setSigner']) {
    expect([...outcomes.keys()].filter(outcome => outcome.startsWith(`${call} `))).toEqual([])
  }
})

type Branch = { snapshot: Hex; state: State; events: number }

/** Plays steps from the start of the chain, until all are done or the two disagree. */
async function playEpisode(seed: string, steps: number): Promise<void> {
  const random = randomOf('orders', seed)
  const machine = chain.machine()
  const drawn = createSteps(chain, random)
  const journal: OrderEvent[] = []
  const branches: Branch[] = []
  journals.push(journal)
  for (let done = 0; done < steps; ) {
    const reorg = branches.length > 0 && random.chance(0.05) ? random.integer(0, branches.length - 1) : branches.length
    const [branch] = branches.splice(reorg)
    if (branch) {
      await chain.revert(branch.snapshot)
      machine.state = branch.state
      journal.length = branch.events
      count('reorg')
    } else if (branches.length < 3 && random.chance(0.1)) {
      branches.push({ snapshot: await chain.snapshot(), state: structuredClone(machine.state), events: journal.length })
    }
    machine.state.time += passedTime(random)
    const block = await playBlock(machine, drawn, random, random.chance(0.005) ? CROWD : random.pick([1, 1, 2, 3, 6]))
    done += block.steps
    journal.push(...block.events)
    if (block.difference === undefined) continue
    differences.push(`episode ${seed}, step ${done}: ${block.difference}`)
    return
  }
}

/** Mostly seconds; sometimes so long that prices become stale, as while a market is closed. */
const passedTime = (random: Random): bigint =>
  BigInt(
    random.chance(0.6)
      ? random.integer(1, 30)
      : random.chance(0.85)
        ? random.integer(31, 600)
        : random.integer(601, 6_000),
  )

type Expected = { what: string; call: Call; result: CallResult }

/** Applies steps to the machine, mines a block with them, and compares. */
async function playBlock(machine: OrderMachine, drawn: ReturnType<typeof createSteps>, random: Random, size: number) {
  const calls: Expected[] = []
  const events: OrderEvent[] = []
  let steps = 0
  while (steps < size) {
    const crowded = size > 6 ? machine.state.agents.get(1n) : undefined
    const next = crowded ? [await drawn.place(machine, crowded)] : [await drawn.draw(machine)]
    for (const step of random.chance(0.03) ? drawn.race(machine) : next) {
      steps++
      calls.push({ what: step.name, call: step.act, result: applied(machine, step) })
      events.push(...machine.events.splice(0))
      for (const order of step.orders)
        calls.push(stateOf(machine, machine.idOf(order), order.agentId), waitOf(machine, order))
    }
  }
  for (const { name, args } of events) {
    count(name)
    if (name === 'OrderEnded') count(`${name} ${args.reason}`)
  }
  const after = everythingOf(machine)
  const { results, reads, logs } = await chain.play(machine.state.time, callsOf(calls), callsOf(after))
  const actual = [...results, ...reads]
  const wrong = [...calls, ...after].flatMap(({ what, call, result }, index) => {
    const got = actual[index] as CallResult
    const isSame = got.success === result.success && comparable(what, got.returnData) === result.returnData
    return isSame ? [] : [`${what} ${call.data}\n  the machine: ${told(result)}\n  the contracts: ${told(got)}`]
  })
  const emitted = logs.map(({ eventName, args }) => textOf({ name: eventName, args: { ...args, order: undefined } }))
  const foretold = events.map(({ name, args }) => textOf({ name, args: { ...args, order: undefined } }))
  if (emitted.join('\n') !== foretold.join('\n'))
    wrong.push(`events\n  the machine: ${foretold}\n  the contracts: ${emitted}`)
  return { steps, events, difference: wrong[0] }
}

const callsOf = (expected: Expected[]) => expected.map(({ call }) => call)

/** Applies a step. Returns what its call should return. */
function applied(machine: OrderMachine, step: Step): CallResult {
  try {
    return { success: true, returnData: step.apply(machine) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    count(error.message)
    count(`${step.name} ${error.message}`)
    return { success: false, returnData: encodeRefusal(error) }
  }
}

/** The epoch of an order is the registry's business: whether it is void shows in its refusals. */
const EPOCH_WORD = 2

const words = (...values: (bigint | number)[]): Hex =>
  `0x${values.map(value => numberToHex(value, { size: 32 }).slice(2)).join('')}`
const comparable = (what: string, data: Hex): Hex => {
  if (what === 'position') return `0x${data.slice(2, 2 + 4 * 64)}`
  const epoch = 2 + EPOCH_WORD * 64
  return what === 'order' ? `0x${data.slice(2, epoch)}${'0'.repeat(64)}${data.slice(epoch + 64)}` : data
}

// Encoded by hand, because there are some forty of them in every block.
const STATE_SELECTOR = toFunctionSelector(getAbiItem({ abi: orderBookAbi, name: 'orderStateOf' }))
const COUNT_SELECTOR = toFunctionSelector(getAbiItem({ abi: orderBookAbi, name: 'openOrderCount' }))
const POSITION_SELECTOR = toFunctionSelector(getAbiItem({ abi: positionManagerAbi, name: 'positionStateOf' }))
const readOf = (address: Address, selector: Hex, ...args: bigint[]): Call => ({
  address,
  data: `${selector}${words(...args).slice(2)}`,
})

function stateOf({ state }: OrderMachine, orderId: Hex, agentId: bigint): Expected {
  const held = state.orders.get(orderId)
  const call = readOf(chain.contracts.OrderBook, STATE_SELECTOR, agentId, BigInt(orderId))
  const { peak = 0n, positionId = 0n, placedAt = 0n, nextAt = 0n, partsDone = 0 } = held ?? {}
  return {
    what: 'order',
    call,
    result: { success: true, returnData: words(peak, positionId, 0, placedAt, nextAt, partsDone) },
  }
}

function waitOf(machine: OrderMachine, order: Order): Expected {
  const refusal = machine.waitsFor(order)
  const result = refusal === undefined ? '0x' : encodeRefusal(refusal)
  const call = callOf(chain.contracts.OrderBook, orderBookAbi, 'waitsFor', [order])
  const returnData = encodeFunctionResult({ abi: orderBookAbi, functionName: 'waitsFor', result })
  return { what: 'waitsFor', call, result: { success: true, returnData } }
}

/** All orders that the book holds, all positions, and how many orders each agent has open. */
function everythingOf(machine: OrderMachine): Expected[] {
  const { orders, positions, agents } = machine.state
  return [
    ...[...orders.values()].map(({ orderId, order }) => stateOf(machine, orderId, order.agentId)),
    ...[...positions.values()].slice(-20).map(({ positionId, agentId, token, tokens, costUsdc }) => ({
      what: 'position',
      call: readOf(chain.contracts.PositionManager, POSITION_SELECTOR, positionId),
      result: { success: true, returnData: words(agentId, BigInt(token), tokens, costUsdc) },
    })),
    ...[...agents.keys()].map(agentId => ({
      what: 'openOrderCount',
      call: readOf(chain.contracts.OrderBook, COUNT_SELECTOR, agentId),
      result: { success: true, returnData: words(machine.openOrderCount(agentId)) },
    })),
  ]
}

/** The name and the values of a refusal; the data of a result. */
function told({ success, returnData }: CallResult): string {
  if (success) return returnData
  const { errorName, args = [] } = decodeErrorResult({ abi: errors, data: returnData })
  return `${errorName}(${args})`
}

const textOf = (event: { name: string; args: Record<string, unknown> }) =>
  JSON.stringify({
    ...event,
    args: Object.fromEntries(
      Object.entries(event.args)
        .map(([name, value]) => [name, `${value}`])
        .sort(),
    ),
  })
