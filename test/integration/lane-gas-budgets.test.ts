import { evictDurableObject } from 'cloudflare:test'
import { numberToHex } from 'viem'
import { describe, expect, test } from 'vitest'
import type { Executor } from '../../src/executor/client.ts'
import type { RelayOutcome, RelayRequest, Requester } from '../../src/executor/relay-types.ts'
import {
  type NodeFault,
  newRequest,
  node,
  nonceOf,
  relayUntilKnown,
  relayUntilMined,
  setReverting,
  useLanes,
} from '../support/lanes.ts'
import { addressAt, agentOf, signerOfAgent } from '../support/requesters.ts'

// The budgets of these lanes hold eight calls of an agent a minute.

const { newLane } = useLanes('lane-gas-budgets')

let lastNonce = 0
const requestOf = (by: Requester, changes: Partial<RelayRequest> = {}) =>
  newRequest({ by, groupNonce: `${++lastNonce}`, ...changes })

/** An owner of several agents. */
const owner = addressAt(0xa)

/** What a call uses at least. */
const CALL_GAS = 44_000

/**
 * Relays requests, one after the other, until one is not mined (or rejected). Returns it with the number of mined ones,
 * and with how many budgets of a minute their gas was: a budget refills while they are relayed.
 */
async function spend(executor: Executor, request: () => RelayRequest, expected: 'mined' | 'rejected' = 'mined') {
  const startedAt = Date.now()
  for (let mined = 0; ; mined++) {
    const outcome = await relayUntilKnown(executor, request())
    if (outcome.state === expected) continue
    const minutes = 1 + (Date.now() - startedAt) / 60_000
    return { mined, outcome, gasPerBudget: (mined * CALL_GAS) / minutes }
  }
}

const exhausted = (budget: string, window = 'minute') =>
  expect.objectContaining({
    state: 'exhausted',
    shortage: expect.objectContaining({ budget, window, retryAfterSeconds: expect.any(Number) }),
  }) as RelayOutcome

describe('the gas budget', () => {
  test('of an agent stops it alone, says when to come back, and survives an eviction of the lane', async () => {
    const { executor, stub, account } = newLane()
    const { mined, outcome, gasPerBudget } = await spend(executor, () => requestOf(signerOfAgent(1)))
    expect(mined).toBeGreaterThanOrEqual(2)
    expect(gasPerBudget).toBeLessThanOrEqual(400_000)
    expect(outcome).toEqual(exhausted('agent'))
    if (outcome.state !== 'exhausted') throw new Error(outcome.state)
    expect(outcome.shortage.retryAfterSeconds).toBeGreaterThan(0)
    expect(outcome.shortage.retryAfterSeconds).toBeLessThanOrEqual(60)

    await evictDurableObject(stub)
    const nonce = await nonceOf(account.address)
    const again = await spend(executor, () => requestOf(signerOfAgent(1), { call: newRequest().call }))
    expect(again.outcome).toEqual(exhausted('agent'))
    // None, unless the budget has refilled for six seconds. A new budget would hold as many as before.
    expect(again.mined).toBeLessThan(mined)
    expect(await nonceOf(account.address)).toBe(nonce + again.mined)
    await relayUntilMined(executor, requestOf(signerOfAgent(2)))
  })

  test('of an agent is its own: agents that others gave to its owner use nothing of it', async () => {
    const { executor } = newLane()
    for (let given = 2; given <= 11; given++)
      for (let sent = 0; sent < 3; sent++) await relayUntilKnown(executor, requestOf(signerOfAgent(given, { owner })))
    for (let sent = 0; sent < 4; sent++) await relayUntilMined(executor, requestOf(signerOfAgent(1, { owner })))
  })

  test('is charged for a simulation that fails', async () => {
    const { executor } = newLane()
    const use = { kind: 'open', by: signerOfAgent(1) } as const
    const leftGas = async () => (await executor.gasBudgets(use)).quotas[0]?.hour?.leftGas ?? 0
    const before = await leftGas()
    await setReverting(true)
    expect(await executor.relay(requestOf(signerOfAgent(1)))).toMatchObject({ state: 'rejected' })
    expect(before - (await leftGas())).toBeGreaterThan(40_000)
  })
})

/** Shows the lanes another base fee than the chain has. */
const withBaseFee =
  (wei: bigint): NodeFault =>
  async ({ method }, forward) => {
    const response = await forward()
    if (!method.startsWith('batch') || !method.includes('eth_getBlockByNumber')) return response
    const replies = (await response.json()) as { result?: { baseFeePerGas?: string } }[]
    for (const { result } of replies) if (result?.baseFeePerGas) result.baseFeePerGas = numberToHex(wei)
    return Response.json(replies)
  }

describe('above the highest gas price of the operator', () => {
  test('openings, orders and mandates wait, and reductions and stops are sent', async () => {
    const { executor } = newLane()
    const by = signerOfAgent(1)
    const asOwner = { as: 'owner', agent: agentOf(1), account: owner } as const
    node.fault = withBaseFee(5_000_000_000_000n)
    const costly = { state: 'costly', gasPriceWei: 5_000_000_000_000n, maxGasPriceWei: 1_000_000_000_000n }
    for (const kind of ['open', 'add', 'order'] as const)
      expect(await executor.relay(requestOf(by, { kind }))).toEqual(costly)
    expect(await executor.relay(requestOf(asOwner, { kind: 'owner' }))).toEqual(costly)
    await relayUntilMined(executor, requestOf(by, { kind: 'reduce', protects: true }))
    await relayUntilMined(executor, requestOf(asOwner, { kind: 'owner', protects: true }))
  })
})

describe('a risk-reducing request', () => {
  const reduce = (changes: Partial<RelayRequest> = {}) =>
    requestOf(signerOfAgent(1, { isNew: true }), { kind: 'reduce', protects: true, ...changes })

  test("has a reserve that nobody's spending uses", async () => {
    const { executor } = newLane()
    expect((await spend(executor, () => requestOf(signerOfAgent(1)))).outcome).toEqual(exhausted('agent'))
    await relayUntilMined(executor, reduce())
  })

  test("has a reserve for an owner's messages, which its agents cannot use", async () => {
    const { executor } = newLane()
    expect((await spend(executor, () => requestOf(signerOfAgent(1, { owner })))).outcome).toEqual(exhausted('agent'))
    const message = () =>
      requestOf({ as: 'owner', agent: agentOf(1, { owner }), account: owner }, { kind: 'owner', protects: true })
    const { mined, outcome } = await spend(executor, message)
    expect(mined).toBeGreaterThanOrEqual(1)
    expect(outcome).toEqual(exhausted('exitReserve', expect.any(String) as never))
  })

  test('that fails in a loop is slowed down, and uses neither the budget nor the reserve of its agent', async () => {
    const { executor } = newLane()
    const use = { kind: 'reduce', protects: true, by: signerOfAgent(1) } as const
    const left = async () =>
      (await executor.gasBudgets(use)).quotas.map(({ hour, day }) => hour?.leftGas ?? day?.leftGas)
    const before = await left()
    await setReverting(true)
    const { mined, outcome } = await spend(executor, reduce, 'rejected')
    expect(mined).toBeGreaterThanOrEqual(3)
    expect(outcome).toEqual(exhausted('agent'))
    expect(await left()).toEqual(before)
  })

  test('in a loop is bounded too, but a whole position can still be closed', async () => {
    const { executor } = newLane()
    const { outcome, gasPerBudget } = await spend(executor, reduce)
    expect(outcome).toEqual(exhausted('exitReserve', expect.any(String) as never))
    // The budget of the agent and its reserve of a minute.
    expect(gasPerBudget).toBeLessThanOrEqual(600_000)
    const use = { kind: 'reduce', by: signerOfAgent(1, { isNew: true }) } as const
    const { quotas } = await executor.gasBudgets(use)
    expect(quotas.map(({ budget }) => budget)).toEqual(['agent', 'newAgents', 'lane', 'exitReserve', 'reserves'])
    await relayUntilMined(executor, reduce({ closesPosition: true }))
  })
})
