import { Hono } from 'hono'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { toRefusal } from '../../src/errors/refuse.ts'
import { admit } from '../../src/http/admission.ts'
import type { AppEnv } from '../../src/http/request-state.ts'
import { createRateLimits } from '../../src/limits/rate-limits.ts'
import { chargeMessages } from '../../src/mcp/admission.ts'
import { registerAgent } from '../../src/operations/register.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('while a verified signer sends requests, strangers wait for their refusals, a bounded number at a time', async () => {
  const limits = createRateLimits({
    address: 40, // a registration
    account: 0,
    maxParallel: 8,
  })
  const clientAt = (address: string) => limits.ofClient(new Headers({ 'cf-connecting-ip': address }))
  const app = new Hono<AppEnv>()
  app.use((c, next) => {
    c.set('call', { client: limits.ofClient(c.req.raw.headers) })
    c.set('operation', registerAgent)
    return next()
  }, admit)
  app.post('/agents/register', c => c.body(null))
  app.onError(error => new Response(null, { status: toRefusal(error).status }))
  /**
   * Posts two registrations, of which the second is refused. Returns after how many milliseconds each response came.
   */
  const register = async (address: string) => {
    const sentAt = Date.now()
    const post = async () => {
      const headers = { 'cf-connecting-ip': address }
      const { status } = await app.request('/agents/register', { method: 'POST', headers })
      return { status, ms: Date.now() - sentAt }
    }
    const responded = Promise.all([post(), post()])
    await vi.advanceTimersByTimeAsync(300)
    const responses = await responded
    expect(responses.map(({ status }) => status)).toEqual([200, 429])
    return responses.map(({ ms }) => ms)
  }
  expect(await register('192.0.2.1')).toEqual([0, 0])

  clientAt('198.51.100.1')?.raise('0x1', '0xd1')
  await clientAt('198.51.100.1')?.enter()
  expect(await register('192.0.2.2')).toEqual([0, 250])
  expect(await register('198.51.100.1')).toEqual([0, 0])

  const crowd = Array.from({ length: 500 }, () => clientAt('192.0.2.3')?.delayRefusal())
  expect(await register('192.0.2.4')).toEqual([0, 0])
  await Promise.all(crowd)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(await register('192.0.2.5')).toEqual([0, 0])
})

test('a message that an MCP client sends too often is refused with the same delay', async () => {
  const limits = createRateLimits({
    address: 32, // a session
    account: 0,
    maxParallel: 8,
  })
  const headers = new Headers({ 'cf-connecting-ip': '192.0.2.1' })
  const initialize = () =>
    chargeMessages(limits.ofClient(headers), false, [{ jsonrpc: '2.0', id: 1, method: 'initialize' }])
  const { leave } = await initialize()
  leave?.()
  const signer = limits.ofClient(new Headers({ 'cf-connecting-ip': '198.51.100.1' }))
  signer?.raise('0x1', '0xd1')
  await signer?.enter()
  let isRefused = false
  const refused = initialize().then(({ counts }) => {
    isRefused = counts.some(({ exceeded }) => exceeded)
  })
  await vi.advanceTimersByTimeAsync(249)
  expect(isRefused).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  await refused
  expect(isRefused).toBe(true)
})
