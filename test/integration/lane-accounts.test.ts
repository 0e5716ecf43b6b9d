import { evictDurableObject } from 'cloudflare:test'
import { numberToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test, vi } from 'vitest'
import {
  chain,
  errorResponse,
  executionsOf,
  executorOf,
  isSend,
  newRequest,
  node,
  nonceOf,
  onFirstSendOf,
  relayUntilKnown,
  relayUntilMined,
  sendForeignTransaction,
  useLanes,
  withNonce,
} from '../support/lanes.ts'
import { taskOf } from '../support/requesters.ts'

const { newKey, newLane } = useLanes('lane-accounts')

describe('an executor account', () => {
  test('without funds uses no nonce, and works again once it is funded', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    await chain('anvil_setBalance', account.address, '0x0')
    const request = newRequest()
    expect(await executor.relay(request)).toEqual({ state: 'unfunded' })
    expect(await executor.status()).toMatchObject([{ pausedFor: 'funds', pending: 0 }])
    expect(await nonceOf(account.address)).toBe(1)
    await chain('anvil_setBalance', account.address, numberToHex(10n ** 18n))
    await relayUntilMined(executor, request)
    expect(await executionsOf(request)).toBe(1n)
    expect(await executor.status()).toEqual([expect.not.objectContaining({ pausedFor: expect.anything() })])
  })

  test('that is funded again resends its pending transactions at once', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    let isPoor = true
    const times: number[] = []
    let acceptedAt: number | undefined
    node.fault = async ({ method }, forward) => {
      if (!isSend(method)) return forward()
      if (!isPoor) {
        acceptedAt ??= Date.now()
        return forward()
      }
      times.push(Date.now())
      return errorResponse(-32003, 'Insufficient funds for gas * price + value')
    }
    const request = newRequest()
    await executor.relay(request)
    // After four sends the delay between two of them is long.
    await vi.waitFor(() => expect(times.length).toBeGreaterThanOrEqual(4), { timeout: 120_000 })
    isPoor = false
    await chain('anvil_setBalance', account.address, numberToHex(10n ** 19n))
    await vi.waitFor(async () => expect(await executionsOf(request)).toBe(1n), { timeout: 120_000 })
    const [previous = 0, last = 0] = times.slice(-2)
    // Without the funds the next delay would be twice the previous one.
    expect((acceptedAt ?? 0) - last).toBeLessThan(1.5 * (last - previous))
  })

  test('that someone else uses too accepts no more intents, and those in flight are completed', async () => {
    const { executor, account, stub } = newLane()
    /** Relays a request whose nonce someone else uses before it is sent. */
    const relayTooLate = async (nonce: number) => {
      const request = newRequest()
      node.fault = onFirstSendOf(request, async (_, forward) => {
        await sendForeignTransaction(account, nonce)
        return forward()
      })
      await relayUntilMined(executor, request)
      return request
    }
    await relayTooLate(0)
    const request = await relayTooLate(2)
    expect(await executor.relay(newRequest())).toEqual({ state: 'paused', retryAfterSeconds: expect.any(Number) })
    expect(await executor.status()).toMatchObject([{ pausedFor: 'shared key', pending: 0 }])
    await evictDurableObject(stub)
    expect(await executor.relay(newRequest())).toMatchObject({ state: 'paused' })
    expect(await relayUntilKnown(executor, request)).toMatchObject({ state: 'mined' })
  })

  test('that someone else uses while the lane is idle accepts no more intents', async () => {
    const lines: string[] = []
    const spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(line))
    const { executor, account, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    for (const nonce of [1, 2]) await sendForeignTransaction(account, nonce)
    await vi.waitFor(async () => expect(await executor.status()).toMatchObject([{ pausedFor: 'shared key' }]), {
      timeout: 120_000,
      interval: 250,
    })
    spy.mockRestore()
    expect(await executor.relay(newRequest())).toMatchObject({ state: 'paused' })
    expect(lines.map(line => JSON.parse(line)).filter(({ event }) => event === 'foreign transaction')).toEqual([
      { level: 'error', event: 'foreign transaction', executor: account.address, nonce: 1, count: 2 },
    ])
    // The operator sees the transaction, and may end the pause.
    const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/)
    await expect
      .poll(() => executor.status())
      .toMatchObject([{ foreignUse: { nonce: 2, hash, to: expect.any(String) } }])
    expect(await stub.resume()).toBe(true)
    await relayUntilMined(executor, newRequest())
  })

  test('that someone else has used once counts it once, also if the lane restarts before it sends', async () => {
    const lines: string[] = []
    const spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(line))
    const foreign = () => lines.map(line => JSON.parse(line)).filter(({ event }) => event === 'foreign transaction')
    const { executor, account, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    await sendForeignTransaction(account, 1)
    const isCounted = async () => {
      await executor.status()
      expect(foreign()).toHaveLength(1)
    }
    await vi.waitFor(isCounted, { timeout: 120_000, interval: 250 })
    await evictDurableObject(stub)
    for (let count = 0; count < 3; count++) await relayUntilMined(executor, newRequest())
    spy.mockRestore()
    expect(foreign()).toHaveLength(1)
    expect((await executor.status())[0]).not.toHaveProperty('pausedFor')
  })

  test.each(['0x', 'pending', '0x7a1200'])(
    'that every node shows with the nonce %j is not in use by others',
    async nonce => {
      const { executor, account } = newLane()
      await relayUntilMined(executor, newRequest())
      let answered = 0
      node.fault = (sent, forward) => {
        if (sent.method.includes('eth_getTransactionCount')) answered++
        return withNonce(nonce, sent, forward)
      }
      await vi.waitFor(
        async () => {
          expect((await executor.status())[0]).not.toHaveProperty('nextNonce')
          expect(answered).toBeGreaterThanOrEqual(6)
        },
        { timeout: 120_000, interval: 250 },
      )
      node.fault = undefined
      await vi.waitFor(async () => expect(await executor.status()).toMatchObject([{ nextNonce: 1 }]), {
        timeout: 120_000,
      })
      expect((await executor.status())[0]).not.toHaveProperty('pausedFor')
      await relayUntilMined(executor, newRequest())
      expect(await nonceOf(account.address)).toBe(2)
    },
  )

  test('that is one of several relays only its own groups', async () => {
    const keys = [newKey(), newKey()]
    const executor = executorOf(keys)
    const requests = Array.from({ length: 16 }, (_, i) => newRequest({ by: taskOf(i) }))
    for (const outcome of await Promise.all(requests.map(request => relayUntilKnown(executor, request))))
      expect(outcome.state).toBe('mined')
    for (const key of keys) {
      const { address } = privateKeyToAccount(key)
      const count = requests.filter(({ by }) => executor.addressOf(by) === address).length
      expect(count).toBeGreaterThan(0)
      expect(await nonceOf(address)).toBe(count)
    }
  })
})
