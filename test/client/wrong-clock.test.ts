import { hashTypedData } from 'viem'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { type Client, createClient } from '../../packages/client/src/index.ts'
import type { Body } from '../support/body.ts'
import { type ServiceProxy, startProxy } from './proxy.ts'
import { clientOf, countingAccount, LADDER, newAccount, newAgent, pins, serviceUrl } from './support.ts'

// The clock of this machine is wrong: it slept, or takes local time for UTC. Services and chain have the right time.

const HOUR = 3_600
const DAY = 86_400
const DIRECTIONS = [
  ['ahead', HOUR],
  ['behind', -HOUR],
] as const
const account = countingAccount(newAccount())
let agentId: string
let positionId: string
let proxy: ServiceProxy
const warnings: string[] = []
/** Returns a client that has to believe a clock, because it reads no node. */
const clientWithoutNode = (baseUrl = serviceUrl): Client =>
  createClient({ baseUrl, account, pins, onWarning: warning => void warnings.push(warning) })

beforeAll(async () => {
  proxy = await startProxy(serviceUrl)
  agentId = await newAgent(account)
  const opened = await clientOf(account)
    .agent(agentId)
    .open({ ...opening, symbol: 'AAPL', usdcAmount: '50' })
  positionId = opened.positionId
})
afterAll(() => proxy.stop())
afterEach(() => {
  vi.restoreAllMocks()
  proxy.set({})
  warnings.length = 0
})

/** Makes this machine's clock wrong by so many seconds, ahead if positive. */
function shiftClock(seconds: number) {
  const rightTime = Date.now
  vi.spyOn(Date, 'now').mockImplementation(() => rightTime() + seconds * 1000)
}
const opening = { symbol: 'NVDA', usdcAmount: '10', exits: LADDER }

it.each(DIRECTIONS)(
  'with a clock that is an hour %s, positions are reduced with a warning',
  async (direction, seconds) => {
    shiftClock(seconds)
    const agent = clientWithoutNode().agent(agentId)
    const prepared = await agent.prepareReduce({ positionId, exitBps: 1_000 })
    const says = new RegExp(
      `^This machine's clock says 20.+Z, the service's 20.+Z: this machine is (1 h|59 min .*) ${direction}`,
    )
    expect(prepared.warnings).toContainEqual(expect.stringMatching(says))
    expect(prepared.warnings.join()).toContain('--rpc')
    warnings.length = 0
    expect(await agent.reduce({ positionId, exitBps: 1_000 })).toMatchObject({ positionId })
    expect(warnings).toEqual([expect.stringMatching(says)])
  },
)

it.each(DIRECTIONS)(
  'with a clock that is an hour %s, owners stop agents with a warning',
  async (direction, seconds) => {
    shiftClock(seconds)
    const owner = clientWithoutNode().owner(agentId)
    for (const action of ['flatten', 'reduceOnly'] as const) {
      const { warnings } = await owner.prepareStop({ action })
      expect(warnings).toContainEqual(expect.stringContaining(` ${direction}.`))
    }
  },
)

it.each(DIRECTIONS)(
  'with a clock that is an hour %s, what may raise risk is refused with both clocks, and done with a node',
  async (direction, seconds) => {
    account.signatures = 0
    shiftClock(seconds)
    const { orders, ...agent } = clientWithoutNode().agent(agentId)
    const owner = clientWithoutNode().owner(agentId)
    for (const refused of [
      () => agent.open(opening),
      () => agent.add({ positionId, usdcAmount: '10' }),
      () => agent.setLadder({ positionId, exits: LADDER }),
      () => orders.place({ type: 'stop', positionId, price: '1' }),
      () => owner.setMandate({ mode: 'stopped' }),
      () => owner.cancel({ untilNonce: '9' }),
    ]) {
      await expect(refused()).rejects.toMatchObject({
        code: 'QUOTE_DEADLINE_MISMATCH',
        kind: 'untrusted-quote',
        remedy: expect.stringMatching(
          `clock says 20.+Z, the service's 20.+Z: this machine is .+ ${direction}\\..+ or pass a node .+--rpc`,
        ),
      })
    }
    expect(account.signatures).toBe(0)
    const confirmed = clientOf(account).agent(agentId)
    expect(await confirmed.add({ positionId, usdcAmount: '10' })).toMatchObject({ positionId })
  },
)

/** Makes the service's clock wrong, and its deadlines with it. */
function lieAboutTime(serverSeconds: number, lifetime = 600) {
  proxy.set({
    onResponse({ path }, response) {
      const quote: Body = response.body
      if (!path.includes('/quote') || !quote.typedData) return undefined
      const serverTime = Number(quote.serverTime) + serverSeconds
      const deadline = `${serverTime + lifetime}`
      quote.typedData.message.deadline = quote.body.deadline = deadline
      const { EIP712Domain: _, ...types } = quote.typedData.types
      Object.assign(quote, { serverTime: `${serverTime}`, digest: hashTypedData({ ...quote.typedData, types }) })
      return response
    },
  })
}

it('a service gets a signature for no longer than a day and the longest deadline, and only for what reduces risk', async () => {
  account.signatures = 0
  const agent = clientWithoutNode(proxy.url).agent(agentId)
  lieAboutTime(DAY - HOUR)
  await expect(agent.open(opening)).rejects.toMatchObject({ code: 'QUOTE_DEADLINE_MISMATCH' })
  const prepared = await agent.prepareClose({ positionId })
  expect(Number(prepared.typedData.message.deadline)).toBeLessThan(Date.now() / 1000 + DAY + 900)
  const refused = { code: 'QUOTE_DEADLINE_MISMATCH', kind: 'untrusted-quote' }
  // A clock that is off by days, a deadline that is far by the service's own clock, and no clock at all.
  lieAboutTime(DAY + HOUR)
  await expect(agent.close({ positionId })).rejects.toMatchObject(refused)
  for (const serverSeconds of [0, HOUR]) {
    lieAboutTime(serverSeconds, DAY)
    await expect(agent.close({ positionId })).rejects.toMatchObject({
      ...refused,
      remedy: expect.stringMatching(/^Do not sign this/),
    })
  }
  // A node says what time it is, so no other clock counts.
  lieAboutTime(HOUR)
  await expect(clientOf(account, { baseUrl: proxy.url }).agent(agentId).close({ positionId })).rejects.toMatchObject({
    ...refused,
    remedy: expect.stringMatching(/newest block.+the service is .+ ahead/),
  })
  expect(account.signatures).toBe(0)
})

it('with a clock that is ahead, a service that denies a reduction gets no signature for a second one', async () => {
  shiftClock(HOUR)
  account.signatures = 0
  const agent = clientWithoutNode(proxy.url).agent(agentId)
  proxy.set({
    onResponse: ({ method }, response) =>
      method === 'POST' ? { ...response, status: 400, body: { error: 'No.', code: 'MARKET_CLOSED' } } : undefined,
  })
  await expect(agent.reduce({ positionId, exitBps: 1_000 })).rejects.toMatchObject({ code: 'MARKET_CLOSED' })
  proxy.set({})
  await expect(agent.reduce({ positionId, exitBps: 1_000 })).rejects.toMatchObject({ code: 'QUOTE_NONCE_MISMATCH' })
  expect(account.signatures).toBe(1)
  // By the time of the next message, the first one may still be executed.
  vi.restoreAllMocks()
  await expect(agent.close({ positionId })).rejects.toMatchObject({ code: 'QUOTE_NONCE_MISMATCH' })
  shiftClock(-HOUR)
  expect(await clientWithoutNode().agent(agentId).close({ positionId })).toMatchObject({ positionId })
})
