import { Hono } from 'hono'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { respondInTime, submitInTime } from '../../src/call.ts'
import { Refusal } from '../../src/errors/refusal.ts'
import { admit, readBody, takeTurn } from '../../src/http/admission.ts'
import type { AppEnv } from '../../src/http/request-state.ts'
import { createRateLimits, UNITS_PER_BINDING_CALL } from '../../src/limits/rate-limits.ts'
import { getHealth } from '../../src/operations/health.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const client = (limits: ReturnType<typeof createRateLimits>, address: string) => {
  const client = limits.ofClient(new Headers({ 'cf-connecting-ip': address }))
  if (client === undefined) throw new Error('There are no limits.')
  return client
}

/** Returns how many of these reads pass. */
async function passed(limits: ReturnType<typeof createRateLimits>, address: string, reads: number): Promise<number> {
  let count = 0
  for (let sent = 0; sent < reads; sent++) if (!(await client(limits, address).count('reads'))?.exceeded) count++
  return count
}

/** Returns limits under which an address has as many requests in progress as it may. */
async function withStrangers(address: string) {
  const limits = createRateLimits({ ...config, maxParallel: 2 })
  await client(limits, address).enter()
  return limits
}

const config = { address: 6_000, account: 2_400, maxParallel: 0 }

test('a client may use some seconds of its budget at once, and then its share of each second', async () => {
  const limits = createRateLimits(config)
  expect(await passed(limits, '192.0.2.1', 3_000)).toBe(2_000)
  expect(await passed(limits, '192.0.2.2', 10)).toBe(10)
  const refused = await client(limits, '192.0.2.1').count('reads')
  expect(refused).toMatchObject({ remaining: 0, resetSeconds: 1, exceeded: { requests: 2_000, seconds: 20 } })
  vi.advanceTimersByTime(1_000)
  expect(await passed(limits, '192.0.2.1', 1_000)).toBe(100)
  vi.advanceTimersByTime(20_000)
  expect(await passed(limits, '192.0.2.1', 3_000)).toBe(2_000)
})

test('ten minutes have no more than their budgets and a burst', async () => {
  const limits = createRateLimits(config)
  let total = 0
  for (let second = 0; second < 600; second++) {
    total += await passed(limits, '192.0.2.1', second === 0 ? 2_500 : 101)
    vi.advanceTimersByTime(1_000)
  }
  expect(total).toBeLessThanOrEqual(10 * 6_000 + 2_000)
  expect(total).toBeGreaterThan(10 * 6_000)
})

test('a small budget is not spread', async () => {
  const limits = createRateLimits({ ...config, address: 50 })
  expect(await passed(limits, '192.0.2.1', 100)).toBe(50)
})

test('one budget pays for everything but reductions, each kind at its price, and its count is in requests of that kind', async () => {
  const limits = createRateLimits({ ...config, address: 60 })
  const count = (name: Parameters<ReturnType<typeof client>['count']>[0]) => client(limits, '192.0.2.1').count(name)
  expect(await count('reads')).toMatchObject({ name: 'reads', quota: 60, remaining: 59 })
  expect(await count('quotes')).toMatchObject({ name: 'quotes', quota: 15, remaining: 13 })
  expect(await count('registrations')).toMatchObject({ name: 'registrations', quota: 1, remaining: 0 })
  expect(await count('mcpSessions')).toMatchObject({ exceeded: { requests: 1, seconds: 60 }, resetSeconds: 17 })
  expect(await count('submissions')).toMatchObject({ name: 'submissions', quota: 15, remaining: 2 })
  expect(await count('reductions')).toMatchObject({ name: 'reductions', quota: 15, remaining: 14 })
})

test('a verified signature adds a burst and a rate at once, and its address does not wait for strangers', async () => {
  const limits = await withStrangers('192.0.2.1')
  const refused = expect(client(limits, '192.0.2.1').enter()).rejects.toMatchObject({
    body: { code: 'RATE_LIMITED', details: { limit: 'parallel', requests: 1 } },
  })
  await vi.advanceTimersByTimeAsync(4_000)
  await refused
  expect(await passed(limits, '192.0.2.1', 3_000)).toBe(2_000)

  client(limits, '192.0.2.1').raise('0x1', '0xd1')
  await client(limits, '192.0.2.1').enter()
  expect(await passed(limits, '192.0.2.1', 3_000)).toBe(2_000)
})

test('while a verified signer sends requests, fewer requests of strangers run at a time', async () => {
  const limits = createRateLimits({ ...config, maxParallel: 8 })
  /** Returns how many of five requests, each from its own address, run at once. */
  const running = async (network: string) => {
    const strangers = Array.from({ length: 5 }, (_, host) => client(limits, `${network}.${host}`))
    let entered = 0
    const entering = strangers.map(stranger => stranger.enter().then(() => entered++))
    await vi.advanceTimersByTimeAsync(0)
    const atOnce = entered
    for (const [index, stranger] of strangers.entries()) {
      await vi.advanceTimersByTimeAsync(20)
      await entering[index]
      stranger.leave()
    }
    return atOnce
  }
  expect(await running('192.0.2')).toBe(5)

  client(limits, '198.51.100.1').raise('0x1', '0xd1')
  await client(limits, '198.51.100.1').enter()
  expect(await running('192.0.2')).toBe(2)

  await vi.advanceTimersByTimeAsync(1_000)
  expect(await running('192.0.2')).toBe(5)
})

test('while a verified signer sends requests, one stream of a stranger opens at a time', async () => {
  const limits = createRateLimits({ ...config, maxParallel: 8 })
  client(limits, '198.51.100.1').raise('0x1', '0xd1')
  await client(limits, '198.51.100.1').enter()
  const [first, second] = [client(limits, '192.0.2.1'), client(limits, '192.0.2.2')]
  await first.enter('stream')
  let hasEntered = false
  const entering = second.enter('stream').then(() => {
    hasEntered = true
  })
  await client(limits, '192.0.2.3').enter()
  await vi.advanceTimersByTimeAsync(100)
  expect(hasEntered).toBe(false)
  first.leave()
  await vi.advanceTimersByTimeAsync(10)
  await entering
  expect(hasEntered).toBe(true)
})

/** Returns a binding that allows a client so many calls, and the keys that it was called with. */
function bindingOf(calls: number) {
  const keys: string[] = []
  const limit = async ({ key }: { key: string }) => {
    keys.push(key)
    return { success: keys.filter(called => called === key).length <= calls }
  }
  return { keys, bindings: { ADDRESS_RATE_LIMIT: { limit } } }
}

test('an isolate takes units in advance from what all isolates have together, and none for what it refuses', async () => {
  const { keys, bindings } = bindingOf(1_000)
  const limits = createRateLimits({ ...config, address: 50 }, bindings)
  expect(await passed(limits, '192.0.2.1', 100)).toBe(50)
  expect(keys).toEqual(Array(Math.ceil(50 / UNITS_PER_BINDING_CALL)).fill('192.0.2.1'))
})

test('a heavy request costs its units in all isolates together', async () => {
  const { bindings } = bindingOf(3)
  const send = async (address: string) => {
    const limits = createRateLimits({ ...config, address: 60 }, bindings)
    return (await client(limits, address).count('reads', { units: 25 }))?.exceeded !== undefined
  }
  expect([await send('192.0.2.1'), await send('192.0.2.1')]).toEqual([false, true])
  expect(await send('192.0.2.2')).toBe(false)
  // Of the four shares of a /56, an isolate uses the next one where another has used up the first.
  expect(await send('2001:db8:0:1::1')).toBe(false)
  expect(await send('2001:db8:0:2::1')).toBe(false)
  expect(await send('2001:db8:0:3::1')).toBe(false)
})

test('the time for which a request waits for its turn is part of the time of its response', async () => {
  const limits = createRateLimits({ ...config, maxParallel: 2 })
  const early = client(limits, '192.0.2.1')
  await early.enter()
  setTimeout(early.leave, 900)
  const arrivedAt = Date.now()
  const late = client(limits, '192.0.2.1')
  const respond = async (inTime: () => Promise<object>) => {
    expect(Date.now() - arrivedAt).toBeGreaterThanOrEqual(900)
    await expect(inTime()).rejects.toMatchObject({ body: { code: 'CHAIN_UNREACHABLE' } })
    return Date.now() - arrivedAt
  }
  const neverEnds = () => new Promise<never>(() => {})
  const entered = late.enter()
  await vi.advanceTimersByTimeAsync(950)
  await entered
  const responses = Promise.all([
    respond(() => respondInTime({ client: late }, neverEnds())),
    respond(() => submitInTime({ client: late }, { submissionTimeoutMs: 4_500, bodyHash: '0x' }, neverEnds)),
  ])
  await vi.advanceTimersByTimeAsync(6_000)
  expect(await responses).toEqual([4_500, 4_500])
})

/** Creates a server of one operation, which reads its body and then nodes for two seconds. */
function createServer(limits = createRateLimits(config)) {
  const app = new Hono<AppEnv>()
  const read = () => new Promise<object>(resolve => setTimeout(resolve, 2_000, { read: true }))
  app.use(async (c, next) => {
    c.set('call', { client: client(limits, c.req.header('cf-connecting-ip') ?? '192.0.2.1') })
    await next()
  })
  app.post('/', admit, readBody, takeTurn, async c =>
    c.json({ ...(await respondInTime(c.var.call, read())), ...(await c.req.json()) }),
  )
  app.onError((error, c) => c.json(error instanceof Refusal ? error.body : { error: error.message }, 500))
  const post = (body: ReadableStream, headers = {}) =>
    app.fetch(new Request('http://localhost/', { method: 'POST', headers, body, duplex: 'half' } as RequestInit))
  return { post }
}

/** Posts a body that ends after some milliseconds. Returns the response and whether the body was cancelled. */
async function postSlowly(bodyMs: number) {
  let isCancelled = false
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"name":"m\u00fcn'))
      setTimeout(() => {
        if (isCancelled) return
        controller.enqueue(new TextEncoder().encode('ster"}'))
        controller.close()
      }, bodyMs)
    },
    cancel: () => {
      isCancelled = true
    },
  })
  const responded = createServer().post(body)
  await vi.advanceTimersByTimeAsync(7_000)
  return { body: await (await responded).json(), isCancelled }
}

test('the time in which a client sends its body is not part of the time of its response', async () => {
  expect(await postSlowly(4_900)).toEqual({ body: { read: true, name: 'münster' }, isCancelled: false })
})

test('a body that takes longer than five seconds is refused and cancelled', async () => {
  const body = { code: 'BODY_TOO_SLOW', details: { limitSeconds: 5 }, retryable: true }
  expect(await postSlowly(5_100)).toMatchObject({ body, isCancelled: true })
})

test('clients that send their bodies slowly take no slots from others', async () => {
  const { post } = createServer(createRateLimits({ ...config, maxParallel: 2 }))
  const unfinished = () => new ReadableStream({ start: stream => stream.enqueue(new TextEncoder().encode('{')) })
  const slow = ['192.0.2.1', '192.0.2.2'].map(address => post(unfinished(), { 'cf-connecting-ip': address }))
  await vi.advanceTimersByTimeAsync(100)
  const honest = post(new Response('{}').body as ReadableStream, { 'cf-connecting-ip': '192.0.2.3' })
  await vi.advanceTimersByTimeAsync(6_000)
  expect(await (await honest).json()).toEqual({ read: true })
  for (const response of slow) expect(await (await response).json()).toMatchObject({ code: 'BODY_TOO_SLOW' })
})

test('the health of the service is told without a turn', async () => {
  const limits = createRateLimits({ ...config, maxParallel: 2 })
  for (const address of ['192.0.2.1', '192.0.2.2']) await client(limits, address).enter()
  const app = new Hono<AppEnv>()
  app.use((c, next) => {
    c.set('call', { client: client(limits, '192.0.2.3') })
    c.set('operation', getHealth)
    return next()
  }, takeTurn)
  app.get('/health', c => c.body(null))
  app.onError(() => new Response(null, { status: 429 }))
  const responded = app.request('/health')
  await vi.advanceTimersByTimeAsync(2_000)
  expect((await responded).status).toBe(200)
})

test('a body whose client hangs up is malformed, and no fault of the service', async () => {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"name":'))
    },
    pull(controller) {
      controller.error(new Error('the client has disconnected'))
    },
  })
  const response = await createServer().post(body)
  expect(await response.json()).toMatchObject({ code: 'MALFORMED_JSON' })
})
