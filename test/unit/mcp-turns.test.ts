import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRateLimits } from '../../src/limits/rate-limits.ts'
import { chargeMessages } from '../../src/mcp/admission.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const headers = new Headers({ 'cf-connecting-ip': '192.0.2.1' })

/** Returns limits under which an isolate works on two requests and two batches at a time, one of each address. */
const createLimits = () => createRateLimits({ address: 4_800, account: 2_400, maxParallel: 2 })

test('a batch of MCP messages or an initialize request waits for its turn, and another message does not', async () => {
  const limits = createLimits()
  await limits.ofClient(headers)?.enter('batch')
  await limits.ofClient(headers)?.enter('initialize')
  const count = (...tools: string[]) =>
    chargeMessages(
      limits.ofClient(headers),
      false,
      tools.map((name, id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })),
    )
  expect(await count('svc_list_vaults')).not.toHaveProperty('leave')
  const notOpened = expect(
    chargeMessages(limits.ofClient(headers), false, [{ jsonrpc: '2.0', id: 1, method: 'initialize' }]),
  ).rejects.toMatchObject({ body: { code: 'RATE_LIMITED' } })

  const refused = expect(count('svc_list_vaults', 'svc_list_vaults')).rejects.toMatchObject({
    body: { code: 'RATE_LIMITED', details: { limit: 'parallel' } },
  })
  await vi.advanceTimersByTimeAsync(1_100)
  await Promise.all([refused, notOpened])
})

test('batches that never end keep nobody from opening a session, and other batches for five seconds', async () => {
  const limits = createLimits()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const clientAt = (last: number) => limits.ofClient(new Headers({ 'cf-connecting-ip': `192.0.2.${last}` }))
  for (const last of [2, 3]) await chargeMessages(clientAt(last), false, [ping, ping])
  const opened = await chargeMessages(clientAt(4), false, [{ jsonrpc: '2.0', id: 1, method: 'initialize' }])
  expect(opened.leave).toBeDefined()
  await vi.advanceTimersByTimeAsync(4_500)
  const batch = chargeMessages(clientAt(4), false, [ping, ping])
  await vi.advanceTimersByTimeAsync(600)
  expect((await batch).leave).toBeDefined()
})

test('the next batch of an address begins when the turn of the one before it ends', async () => {
  const limits = createLimits()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const { leave } = await chargeMessages(limits.ofClient(headers), false, [ping, ping])
  let hasEntered = false
  const second = chargeMessages(limits.ofClient(headers), false, [ping, ping]).then(() => {
    hasEntered = true
  })
  await vi.advanceTimersByTimeAsync(80)
  expect(hasEntered).toBe(false)
  leave?.()
  await vi.advanceTimersByTimeAsync(19)
  await second
  expect(hasEntered).toBe(true)
})

test('a batch and its calls take turns of different kinds, so that neither waits for the other', async () => {
  const limits = createLimits()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  await chargeMessages(limits.ofClient(headers), false, [ping, ping])
  await expect(limits.ofClient(headers)?.enter()).resolves.toBeUndefined()
})
