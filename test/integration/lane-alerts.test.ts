import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { numberToHex } from 'viem'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { RelayOutcome } from '../../src/executor/relay-types.ts'
import {
  chain,
  executionsOf,
  newRequest,
  node,
  nonceOf,
  relayUntilMined,
  sendForeignTransaction,
  setReverting,
  useLanes,
} from '../support/lanes.ts'

// The log lines that operators select for their alerts; docs/operations.md lists them.

const { newLane } = useLanes('lane-alerts')

let lines: Record<string, unknown>[] = []
beforeEach(() => {
  lines = []
  vi.spyOn(console, 'error').mockImplementation(line => {
    if (String(line).startsWith('{')) lines.push(JSON.parse(String(line)))
  })
})
afterEach(() => {
  vi.mocked(console.error).mockRestore()
})
/** Returns the lines of an event about an account. */
const linesOf = (event: string, executor: string) =>
  lines.filter(line => line.event === event && line.executor === executor)

describe('a log line tells', () => {
  test('of a low balance, once for many transactions', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    expect(linesOf('executor balance low', account.address)).toEqual([])
    await chain('anvil_setBalance', account.address, numberToHex(10n ** 16n))
    for (let times = 0; times < 3; times++) {
      await abortAllDurableObjects() // so that the lane reads its balance again
      await relayUntilMined(executor, newRequest())
    }
    const [line, ...others] = linesOf('executor balance low', account.address)
    expect(line).toMatchObject({ level: 'error', transactionsLeft: expect.any(Number), balanceWei: expect.any(String) })
    expect(others.length).toBeLessThan(3)
  })

  test('of an empty balance', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    await chain('anvil_setBalance', account.address, '0x0')
    expect(await executor.relay(newRequest())).toEqual({ state: 'unfunded' })
    expect(lines.filter(({ event }) => event === 'executor out of funds')).toHaveLength(1)
  })

  test('of each reverted transaction', async () => {
    const { executor, account } = newLane()
    // The state changes between simulation and block.
    node.isMining = false
    const running = executor.relay(newRequest())
    await vi.waitFor(() => expect(node.requests.some(method => method.startsWith('eth_sendRaw'))).toBe(true))
    await setReverting(true)
    node.isMining = true
    const outcome: RelayOutcome = await running
    expect(outcome).toMatchObject({ state: 'reverted' })
    expect(linesOf('transaction reverted', account.address)).toMatchObject([
      { kind: 'ladder', hash: outcome.state === 'reverted' ? outcome.hash : '' },
    ])
  })

  test('of transactions that are not mined', async () => {
    const { executor, account } = newLane()
    node.isMining = false
    const stuck = newRequest()
    await executor.relay(stuck)
    await vi.waitFor(() => expect(linesOf('executor lag', account.address)).toHaveLength(1), { timeout: 15_000 })
    expect(linesOf('executor lag', account.address)).toMatchObject([{ pendingSeconds: expect.any(Number) }])
    node.isMining = true
    await relayUntilMined(executor, stuck)
  })

  test('of a foreign transaction', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    await sendForeignTransaction(account, 1)
    await relayUntilMined(executor, newRequest())
    expect(linesOf('foreign transaction', account.address)).toMatchObject([{ nonce: 1 }])
  })

  test('of a gas budget that is used up', async () => {
    const { executor } = newLane()
    let outcome: RelayOutcome | undefined
    for (let nonce = 0; nonce < 8 && (outcome === undefined || outcome.state === 'mined'); nonce++)
      outcome = await executor.relay(newRequest({ group: 'agent:1', groupNonce: `${nonce}`, spenders: ['agent:1'] }))
    expect(outcome).toMatchObject({ state: 'exhausted' })
    expect(lines.filter(({ event }) => event === 'gas budget exhausted')).toMatchObject([{ budget: 'agent' }])
  })
})

test('a key that others use while its lane is idle pauses the lane', async () => {
  const { executor, account, stub } = newLane()
  await relayUntilMined(executor, newRequest())
  await abortAllDurableObjects()
  await runInDurableObject(stub, lane => Object.assign(lane, { env: { ...env, CHAIN_MAY_RESTART: 'false' } }))
  await sendForeignTransaction(account, 1)
  await sendForeignTransaction(account, 2)
  // The lane notices it at one block and counts it at a later one.
  await vi.waitFor(async () => expect(await executor.status()).toMatchObject([{ pausedFor: 'shared key' }]), {
    timeout: 10_000,
    interval: 500,
  })
  expect(await executor.relay(newRequest())).toEqual({ state: 'paused', retryAfterSeconds: expect.any(Number) })
  expect(linesOf('foreign transaction', account.address)).toMatchObject([{ nonce: 1, count: 2 }])
})

test('a node that shows an implausible nonce counts as failed, and nothing of it stays', async () => {
  const { executor, account } = newLane()
  await relayUntilMined(executor, newRequest())
  await abortAllDurableObjects()
  node.fault = async ({ method }, forward) => {
    const response = await forward()
    if (!method.includes('eth_getTransactionCount')) return response
    const body: unknown = await response.json()
    // The second response of a batch that reads the head is the account's nonce.
    if (Array.isArray(body) && body.length > 1) body[1].result = '0xffffffffffff'
    return Response.json(body)
  }
  for (let times = 0; times < 2; times++) expect(await executor.relay(newRequest())).toEqual({ state: 'unsent' })
  expect(linesOf('implausible nonce', account.address)).toMatchObject([{ nonce: 0xffffffffffff }])
  node.fault = undefined
  const request = newRequest()
  await relayUntilMined(executor, request)
  expect(await executionsOf(request)).toBe(1n)
  expect(await nonceOf(account.address)).toBe(2)
})
