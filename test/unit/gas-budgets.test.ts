import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { numberToHex } from 'viem'
import { afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import { createGasBudgets } from '../../src/executor/gas-budgets.ts'
import { priceWithL1, refusalOfPrice, weightOfGas } from '../../src/executor/gas-price.ts'
import { type Crowd, gasOfDay, gasOfFirstHour, type Honest, successOfDay, useOf } from '../support/lane-day.ts'
import { successOfRush } from '../support/lane-rush.ts'
import { addressAt, signerOfAgent } from '../support/requesters.ts'

const { gasBudgets: limits } = parseConfig({})

// Exhausted budgets are logged.
beforeAll(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))

/** What honest senders ask for in a day. */
const honest: Honest[] = [
  { name: 'an agent', senders: 2, isYoung: false, requests: [...Array(12).fill('open'), ...Array(12).fill('reduce')] },
  {
    name: 'an agent that rebalances',
    senders: 2,
    isYoung: false,
    requests: [
      ...Array(5).fill('open'),
      ...Array(2)
        .fill([...Array(4).fill('close'), 'open', ...Array(3).fill('open')])
        .flat(),
    ],
    together: 8,
  },
  { name: 'a new agent', senders: 8, isYoung: true, requests: ['open', 'open', 'reduce', 'close'] },
  { name: 'a registration', senders: 20, isYoung: true, requests: ['register'] },
  { name: 'an owner', senders: 20, isYoung: false, requests: ['stop'] },
]

const everything: Crowd['kinds'] = ['open', 'reduce', 'close', 'stop', 'mandate', 'revert', 'failure', 'register']
const crowds: Crowd[] = inject('isLong')
  ? [1, 10, 100, 1_000].flatMap(agents =>
      [true, false].flatMap(isYoung =>
        [everything, ...everything.map(kind => [kind])].map(kinds => ({ agents, isYoung, kinds })),
      ),
    )
  : [
      { agents: 2, isYoung: true, kinds: everything },
      { agents: 10, isYoung: false, kinds: everything },
      { agents: 200, isYoung: false, kinds: ['open'] },
    ]

describe('at least 95 % of honest requests fit into the gas budgets during an attack of', () => {
  test.for(
    crowds.map(crowd => [`${crowd.agents} ${crowd.isYoung ? 'new' : 'old'} agents`, `${crowd.kinds}`, crowd] as const),
  )('%s that send %s', ([, , crowd]) => {
    for (const [name, part] of Object.entries(successOfDay(limits, 1, crowd, honest)))
      expect.soft(part, name).toBeGreaterThanOrEqual(0.95)
  })
})

test("closing a position waits for no budget of an hour, and its gas delays the agent's next purchases", () => {
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits)
  const purchase = useOf({ id: 1, isYoung: false }, 'open')
  const closing = useOf({ id: 1, isYoung: false }, 'close')
  const waitOf = () => {
    const found = budgets.reserve('0x1', purchase, 500_000)
    return Array.isArray(found) ? 0 : found.retryAfterSeconds
  }
  budgets.charge([
    { spenders: ['agent:1'], gas: limits.agent.perHour, isReverted: false },
    { spenders: ['exitReserve:agent:1'], gas: limits.exitReserve.perHour, isReverted: false },
  ])
  expect(budgets.reserve('0x2', { ...closing, closesPosition: false }, 500_000)).toMatchObject({
    budget: 'exitReserve',
  })
  const before = waitOf()
  const spenders = budgets.reserve('0x2', closing, 500_000)
  if (!Array.isArray(spenders)) throw new Error(spenders.budget)
  budgets.release('0x2')
  budgets.charge([{ spenders, gas: 350_000, isReverted: false }])
  expect(waitOf()).toBeGreaterThan(before + 60)
})

test('at ten times the expected gas price, an agent may use a tenth of the gas, and its exit reserve has all of it', () => {
  let weight = 10
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits, { weight: () => weight })
  const purchase = useOf({ id: 1, isYoung: false }, 'open')
  const quotaOf = (name: string) => budgets.statusOf(purchase).quotas.find(({ budget }) => budget === name)
  expect(quotaOf('agent')?.minute).toEqual({
    limitGas: limits.agent.perMinute / 10,
    leftGas: limits.agent.perMinute / 10,
  })
  expect(quotaOf('exitReserve')?.minute.limitGas).toBe(limits.exitReserve.perMinute)
  const spenders = budgets.reserve('0x1', purchase, limits.agent.perMinute / 10)
  if (!Array.isArray(spenders)) throw new Error(spenders.budget)
  expect(budgets.reserve('0x2', purchase, 100_000)).toMatchObject({ budget: 'agent', window: 'minute', leftGas: 0 })
  expect(budgets.reserve('0x3', useOf({ id: 1, isYoung: false }, 'reduce'), 350_000)).toContain('exitReserve:agent:1')
  weight = 1
  budgets.release('0x1')
  expect(quotaOf('agent')?.minute).toEqual({ limitGas: limits.agent.perMinute, leftGas: limits.agent.perMinute })
  budgets.charge([{ spenders, gas: 100_000, weight: 10, isReverted: false }])
  expect(quotaOf('agent')?.hour?.leftGas).toBeLessThanOrEqual(limits.agent.perHour - 1_000_000 + 10_000)
})

test('above the highest gas price the keeper buys nothing for an order, and sells', () => {
  const options = { weight: () => 11, maxWeight: 10 }
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits, options)
  const sender = { id: 1, isYoung: false }
  expect(budgets.spend({ use: useOf(sender, 'open'), gas: 1 })).toMatchObject({ budget: 'agent', leftGas: 0 })
  expect(budgets.spend({ use: useOf(sender, 'reduce'), gas: 350_000 })).toBeUndefined()
})

test('an agent whose exit fired at a thousand times the ceiling of the price trades again within an hour', () => {
  let time = 1_700_000_000_000
  const options = { weight: () => 10_000, maxWeight: 10, now: () => time }
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits, options)
  budgets.spend({ use: { kind: 'exit', by: { as: 'keeper', agent: { id: 1n } } }, gas: 250_000 })
  time += 3_600_000
  const purchase = { kind: 'open', by: signerOfAgent(1) } as const
  expect(budgets.reserve('0x1', purchase, 550_000, 1)).toContain('agent:1')
})

test('gas for data on L1 makes each gas of a purchase count as much more as it costs', () => {
  const prices = { expectedWei: 10_000_000n, maxWei: 100_000_000n }
  const price = priceWithL1(10_000_000n, { l2Gas: 500_000, l1Gas: 1_500_000 })
  expect(weightOfGas(price, prices)).toBe(4)
  expect(refusalOfPrice({ kind: 'open' }, price, prices)).toBeUndefined()
  const dear = priceWithL1(10_000_000n, { l2Gas: 500_000, l1Gas: 5_000_000 })
  expect(refusalOfPrice({ kind: 'open' }, dear, prices)).toEqual({
    state: 'costly',
    gasPriceWei: 110_000_000n,
    maxGasPriceWei: 100_000_000n,
  })
  expect(refusalOfPrice({ kind: 'owner', protects: true }, dear, prices)).toBeUndefined()
})

test('ten given agents that send all they can for three hours refuse no purchase of an agent that buys twenty times an hour', () => {
  let time = 1_700_000_000_000
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits, { now: () => time })
  const owner = addressAt(0xa)
  const buys = (id: number) => {
    const spenders = budgets.reserve(numberToHex(id), { kind: 'open', by: signerOfAgent(id, { owner }) }, 550_000)
    budgets.release(numberToHex(id))
    if (!Array.isArray(spenders)) return spenders.budget
    budgets.charge([{ spenders, gas: 550_000, isReverted: false }])
    return 'bought'
  }
  const refused: string[] = []
  for (let minute = 0; minute < 180; minute++, time += 60_000) {
    for (let id = 1; id <= 10; id++) for (let sent = 0; sent < 30 && buys(id) === 'bought'; sent++);
    const bought = minute % 3 === 2 ? buys(11) : 'bought'
    if (bought !== 'bought') refused.push(`${minute}: ${bought}`)
  }
  expect(refused).toEqual([])
})

test('a crowd of new agents exhausts the budget that they share, and no older agent waits for it', () => {
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits)
  const reserve = (id: number, isYoung: boolean) =>
    budgets.reserve(numberToHex(id), useOf({ id, isYoung }, 'open'), 1_000_000)
  const refused = Array.from({ length: 400 }, (_, index) => reserve(index + 1, true)).find(
    found => !Array.isArray(found),
  )
  expect(refused).toMatchObject({ budget: 'newAgents', window: 'minute' })
  expect(reserve(1_000, false)).toContain('agent:1000')
})

test('docs/security.md has the part of the requests of newcomers that succeed while 200 new agents send all they can', () => {
  const newcomer: Honest = {
    name: 'newcomer',
    senders: 20,
    isYoung: true,
    requests: ['register', 'open', 'open', 'reduce', 'close'],
  }
  const { newcomer: part = 0 } = successOfDay(limits, 1, { agents: 200, isYoung: true, kinds: ['open'] }, [newcomer])
  const page = readFileSync(join(import.meta.dirname, '../../docs/security.md'), 'utf8')
  expect(/(\d+) % of the requests of newcomers/.exec(page)?.[1]).toBe(`${Math.floor(100 * part)}`)
})

test('nothing of an honest day waits when nobody attacks', () => {
  const nobody = { agents: 0, isYoung: true, kinds: [] }
  for (const [name, part] of Object.entries(successOfDay(limits, 1, nobody, honest))) expect.soft(part, name).toBe(1)
})

const rushes: Crowd[] = (inject('isLong') ? [100, 1_000] : [100]).flatMap(agents =>
  (inject('isLong') ? [['open'], ['ladder'], ['reduce'], ['failure'], everything] : [everything]).map(
    kinds => ({ agents, isYoung: false, kinds }) as Crowd,
  ),
)
/**
 * Of the known chains, and of slower ones. A lane has 128 transactions in flight, so with slow blocks a thousand agents
 * that come at once fill it for minutes.
 */
function blockTimesOf({ agents }: Crowd): number[] {
  if (!inject('isLong')) return [2_000]
  return agents > 100 ? [250] : [250, 2_000, 12_000]
}

describe('at least 95 % of honest requests find a place in the lane within a minute during an attack of', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
  afterEach(() => void vi.useRealTimers())
  test.for(
    rushes.flatMap(crowd =>
      blockTimesOf(crowd).map(blockMs => [crowd.agents, `${crowd.kinds}`, blockMs, crowd] as const),
    ),
  )('%i agents that send %s, with a block every %i ms', async ([, , blockMs, crowd]) => {
    const minutes = inject('isLong') ? 10 : 3
    expect(await successOfRush(limits, crowd, { minutes, blockMs, honest: 40 })).toBeGreaterThanOrEqual(0.95)
  })
})

const GAS_PRICE_GWEI = 0.01
const DOLLARS_PER_ETHER = 3_000
const ALL_IT_CAN: Crowd['kinds'] = ['open', 'close', 'reduce', 'stop', 'mandate']

test("an attacker's dollar burns less than a dollar in its first hour, whatever it signs", () => {
  const signed = everything.filter(kind => kind !== 'register')
  for (const kinds of [signed, ...signed.map(kind => [kind])]) {
    const gas = gasOfFirstHour(limits, { agents: 1, isYoung: true, kinds })
    expect.soft((gas * GAS_PRICE_GWEI * DOLLARS_PER_ETHER) / 1e9, `${kinds}`).toBeLessThan(1)
  }
})

test('docs/limits.md has what a number of dollars can burn in a day', () => {
  const format = (gas: number) => (gas >= 1e9 ? `${(gas / 1e9).toFixed(1)} G` : `${Math.round(gas / 1e6)} M`)
  const rows = (inject('isLong') ? [1, 10, 100, 1_000] : [1, 10]).map(agents => {
    const crowd = { agents, isYoung: false, kinds: ALL_IT_CAN }
    const hour = gasOfFirstHour(limits, { ...crowd, isYoung: true })
    const gas = gasOfDay(limits, crowd)
    const ether = (gas * GAS_PRICE_GWEI) / 1e9
    return `| ${agents} | ${format(hour)} | ${format(gas)} | ${ether.toFixed(4)} ETH | ${format(gas / agents)} |`
  })
  const page = readFileSync(join(import.meta.dirname, '../../docs/limits.md'), 'utf8')
  const table = page.split(
    '| dollars | gas of the first hour | gas of a day | at 0.01 gwei | for a dollar |\n|---|---|---|---|---|\n',
  )[1]
  expect(table?.split('\n').slice(0, rows.length)).toEqual(rows)
})
