import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import { createRateLimits } from '../../src/limits/rate-limits.ts'
import { countMessages } from '../../src/mcp/admission.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const headers = new Headers({ 'cf-connecting-ip': '192.0.2.1' })

/** Returns limits under which an isolate works on two requests and two batches at a time, one of each address. */
const createLimits = () =>
  createRateLimits({ quotas: parseConfig({}).rateLimits.quotas, burstSeconds: 5, maxParallel: 2 })

test('a batch of MCP messages or an initialize request waits for its turn, and another message does not', async () => {
  const limits = createLimits()
  await limits.ofClient(headers)?.enter('batch')
  await limits.ofClient(headers)?.enter('initialize')
  const count = (...tools: string[]) =>
    countMessages(
      limits.ofClient(headers),
      undefined,
      tools.map((name, id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })),
    )
  expect(await count('svc_list_vaults')).not.toHaveProperty('leave')
  const notOpened = expect(
    countMessages(limits.ofClient(headers), undefined, [{ jsonrpc: '2.0', id: 1, method: 'initialize' }]),
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
  for (const last of [2, 3]) await countMessages(clientAt(last), undefined, [ping, ping])
  const opened = await countMessages(clientAt(4), undefined, [{ jsonrpc: '2.0', id: 1, method: 'initialize' }])
  expect(opened.leave).toBeDefined()
  await vi.advanceTimersByTimeAsync(4_500)
  const batch = countMessages(clientAt(4), undefined, [ping, ping])
  await vi.advanceTimersByTimeAsync(600)
  expect((await batch).leave).toBeDefined()
})

test('the next batch of an address begins when the turn of the one before it ends', async () => {
  const limits = createLimits()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const { leave } = await countMessages(limits.ofClient(headers), undefined, [ping, ping])
  let hasEntered = false
  const second = countMessages(limits.ofClient(headers), undefined, [ping, ping]).then(() => {
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
  await countMessages(limits.ofClient(headers), undefined, [ping, ping])
  await expect(limits.ofClient(headers)?.enter()).resolves.toBeUndefined()
})
