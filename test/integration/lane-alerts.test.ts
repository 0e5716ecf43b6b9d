import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { groupOf } from '../../src/executor/requester.ts'
import type { Body } from '../support/body.ts'
import {
  chain,
  hashOf,
  newRequest,
  node,
  nonceOf,
  onFirstSendOf,
  relayUntilKnown,
  relayUntilMined,
  setReverting,
  useLanes,
  withNonce,
} from '../support/lanes.ts'
import { signerOfAgent } from '../support/requesters.ts'

// The log lines that an operator's alerts select by name.

const { newLane } = useLanes('lane-alerts')

let lines: Body[]
let spy: { mockRestore(): void }
beforeEach(() => {
  lines = []
  spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(JSON.parse(line)))
})
afterEach(() => spy.mockRestore())

/** Returns the lines of an event, of one lane only if its lines name the account. */
const linesOf = (event: string, executor?: string) =>
  lines.filter(line => line.event === event && (executor === undefined || line.executor === executor))

describe('a lane logs', () => {
  test('an account that pays for few more transactions, once', async () => {
    const { executor, account } = newLane()
    const { address } = account
    await chain('anvil_setBalance', address, '0x0')
    for (let times = 0; times < 2; times++) expect(await executor.relay(newRequest())).toEqual({ state: 'unfunded' })
    const low = {
      level: 'error',
      event: 'executor balance low',
      executor: address,
      balanceWei: '0',
      transactionsLeft: 0,
    }
    expect(linesOf('executor balance low', address)).toEqual([low])
    expect(linesOf('executor out of funds')).toEqual([
      { level: 'error', event: 'executor out of funds', lackingWei: expect.stringMatching(/^[1-9]\d*$/) },
    ])

    const funded = newLane()
    await relayUntilMined(funded.executor, newRequest())
    expect(linesOf('executor balance low', funded.account.address)).toEqual([])
  })

  test('each transaction that reverts, with its kind and hash', async () => {
    const { executor, account } = newLane()
    const request = newRequest()
    node.fault = onFirstSendOf(request, async (_, forward) => {
      await setReverting(true)
      return forward()
    })
    const hash = hashOf(await relayUntilKnown(executor, request))
    const reverted = { event: 'transaction reverted', executor: account.address, hash, kind: 'ladder' }
    const { digest } = request
    const group = groupOf(request)
    expect(linesOf('transaction reverted', account.address)).toEqual([{ level: 'error', ...reverted, digest, group }])
  })

  test('a gas budget that refuses requests, once a minute', async () => {
    const { executor } = newLane()
    let nonce = 0
    const relayNext = () => relayUntilKnown(executor, newRequest({ by: signerOfAgent(1), groupNonce: `${nonce++}` }))
    const states: string[] = []
    const refusals = () => states.filter(state => state === 'exhausted').length
    // The budget refills all the time, so another request may be mined between two refusals.
    while (refusals() < 2 && states.length < 40) {
      if (refusals() === 0) expect(linesOf('gas budget exhausted')).toEqual([])
      states.push((await relayNext()).state)
    }
    expect(refusals()).toBe(2)
    const facts = {
      group: 'agent:1',
      budget: 'agent',
      window: 'minute',
      limitGas: 400_000,
      retryAfterSeconds: expect.any(Number),
    }
    expect(linesOf('gas budget exhausted')).toEqual([{ level: 'error', event: 'gas budget exhausted', ...facts }])
  })

  test('an implausible nonce once, while it works with the node that shows a plausible one', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    node.fault = (sent, forward) => (sent.isSpare ? forward() : withNonce('0x7a1200', sent, forward))
    while (linesOf('implausible nonce', account.address).length === 0) await relayUntilMined(executor, newRequest())
    await relayUntilMined(executor, newRequest())
    const facts = { executor: account.address, nonce: 8_000_000 }
    expect(linesOf('implausible nonce', account.address)).toEqual([
      { level: 'error', event: 'implausible nonce', ...facts },
    ])
    expect(linesOf('foreign transaction', account.address)).toEqual([])
    expect(await executor.status()).toMatchObject([{ nextNonce: await nonceOf(account.address), pending: 0 }])
  })
})
