import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { getAbiItem, toFunctionSelector } from 'viem'
import { expect, test, vi } from 'vitest'
import { serviceReaderAbi } from '../../contracts-abi/service-reader.ts'
import type { Networks } from '../../src/requests/client-address.ts'
import { newTrader } from '../support/actors.ts'
import { appWith, deployment, request } from '../support/surfaces.ts'

// MCP only: what one client may open and send.

const initializeWith = (clientInfo: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1', ...clientInfo } },
})
const WAIT = { timeout: 30_000, interval: 50 }
const app = appWith({ REQUEST_BUDGET_ADDRESS: '100000' })
const post = (body: unknown, address: string, headers: Record<string, string> = {}) =>
  request(
    '/mcp',
    {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'cf-connecting-ip': address,
        ...headers,
      },
      body: JSON.stringify(body),
    },
    app,
  )
/**
 * The object that counts sessions and subscriptions: a crowd's are counted there in one call, without a request for
 * each.
 */
const hub = () => env.MCP_HUB.getByName('hub')
const newSession = () => env.MCP_SESSION.newUniqueId().toString()
const forget = (sessions: string[]) =>
  runInDurableObject(hub(), async instance => {
    for (const session of sessions) await instance.forget(session)
  })

async function statusOf(response: Promise<Response>) {
  const { status, body } = await response
  await body?.cancel()
  return status
}

test('one address may have 200 sessions in use, and others still open theirs', async () => {
  /** Opens a session and uses it. */
  const openFrom = async (address: string) => {
    const offered = await post(initializeWith(), address)
    await offered.body?.cancel()
    const session = { 'mcp-session-id': offered.headers.get('mcp-session-id') ?? '' }
    return post({ jsonrpc: '2.0', method: 'notifications/initialized' }, address, session)
  }
  const crowd = Array.from({ length: 199 }, newSession)
  await runInDurableObject(hub(), async instance => {
    for (const session of crowd) expect(await instance.admit(session, ['192.0.2.1'])).toBe(true)
  })
  expect(await statusOf(openFrom('192.0.2.1'))).toBe(202)
  const refused = await openFrom('192.0.2.1')
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  await refused.body?.cancel()
  expect(await statusOf(openFrom('192.0.2.2'))).toBe(202)
  await forget(crowd)
})

test('one address may open 4 listen streams in sessions, each of which keeps an object busy, and one that ends makes room', async () => {
  const listen = async (address: string) => {
    const offered = await post(initializeWith(), address)
    await offered.body?.cancel()
    const session = { 'mcp-session-id': offered.headers.get('mcp-session-id') ?? '', 'cf-connecting-ip': address }
    const again = () => request('/mcp', { headers: { accept: 'text/event-stream', ...session } }, app)
    return { again, response: await again() }
  }
  const streams = []
  for (let opened = 0; opened < 5; opened++) streams.push(await listen('192.0.2.71'))
  expect(streams.map(({ response }) => response.status)).toEqual([...Array(4).fill(200), 429])
  const other = await listen('192.0.2.72')
  expect(other.response.status).toBe(200)
  const [first, last] = [streams[0], streams[4]]
  const replaced = await first?.again()
  expect(replaced?.status).toBe(200)
  expect((await last?.again())?.status).toBe(429)
  await Promise.all([first?.response.body?.cancel(), replaced?.body?.cancel()].map(end => end?.catch(() => {})))
  let after: Response | undefined
  await vi.waitUntil(async () => {
    after = await last?.again()
    return after?.status === 200
  }, WAIT)
  for (const response of [after, other.response, ...streams.map(({ response }) => response)])
    await response?.body?.cancel().catch(() => {})
})

test('waits for events in sessions count as listen streams: one address has 4 of them', async () => {
  const { agentId } = await newTrader()
  const address = '192.0.2.73'
  const wait = async (timeoutSeconds: number) => {
    const offered = await post(initializeWith(), address)
    await offered.body?.cancel()
    const params = { name: 'svc_wait_for_event', arguments: { agentId, timeoutSeconds } }
    return post({ jsonrpc: '2.0', id: 2, method: 'tools/call', params }, address, {
      'mcp-session-id': offered.headers.get('mcp-session-id') ?? '',
    })
  }
  const waits = await Promise.all(Array.from({ length: 4 }, () => wait(20)))
  await vi.waitUntil(async () => (await (await wait(1)).text()).includes('TOO_MANY_STREAMS_OF_CLIENT'), WAIT)
  for (const { body } of waits) await body?.cancel()
})

/** Opens a listen stream of the protocol's 2026 revision. */
const listen = (id: number, address: string, notifications: object = {}) =>
  post(
    {
      jsonrpc: '2.0',
      id,
      method: 'subscriptions/listen',
      params: {
        notifications,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
    address,
    { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
  )

test('a listen stream follows at most 100 resources, each of which the service has', async () => {
  const positions = (agent: number) => `svc://agents/${agent}/positions`
  const ask = async (resourceSubscriptions: unknown) => {
    const response = await listen(1, '192.0.2.80', { resourceSubscriptions })
    if (response.headers.get('content-type')?.includes('event-stream')) await response.body?.cancel()
    else return { status: response.status, error: (await response.json<{ error: object }>()).error }
    return { status: response.status }
  }
  const agentId = Number((await newTrader()).agentId)
  const hundred = Array.from({ length: 100 }, () => positions(agentId))
  expect(await ask(hundred)).toEqual({ status: 200 })
  for (const refused of [
    [...hundred, positions(agentId)],
    [positions(agentId), positions(424_242)],
    ['svc://nothing'],
    [positions(1).padEnd(2_000, 'x')],
    [1],
    'all',
  ])
    expect(await ask(refused)).toMatchObject({ error: { code: -32602 } })
})

test('where all listen streams are open, the network that holds most gives one back to a newcomer', async () => {
  const given: string[] = []
  const releases: (() => void)[] = []
  /** Takes places for streams without opening them. */
  const hold = (networks: Networks) =>
    runInDurableObject(hub(), instance => {
      for (let held = 0; held < 100; held++)
        releases.push(instance.holdListenStream(networks, () => given.push(networks[0])) ?? (() => {}))
    })
  for (let index = 0; index < 48; index++) await hold([`192.0.100.${index}`])
  for (const index of [1, 2]) await hold([`2001:db8:1:${index}`, `2001:db8:1:${index}00/56`, '2001:db8:1/48'])
  expect(await statusOf(listen(1, '192.0.2.81'))).toBe(200)
  expect(given).toEqual(['2001:db8:1:1'])
  await runInDurableObject(hub(), () => {
    for (const release of releases) release()
  })
})

test('one address may open 100 listen streams, and others still open theirs', async () => {
  const streams = []
  for (let id = 1; id <= 100; id++) streams.push(await listen(id, '192.0.2.3'))
  expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200))
  expect(await statusOf(listen(101, '192.0.2.3'))).toBe(429)
  expect(await statusOf(listen(102, '192.0.2.4'))).toBe(200)
  await Promise.all(streams.map(({ body }) => body?.cancel()))
})

test('a large initialize request is refused, and what its client says of itself is not stored', async () => {
  expect(await statusOf(post(initializeWith({ title: 'x'.repeat(20_000) }), '192.0.2.5'))).toBe(413)
  const response = await post(initializeWith({ title: 'x'.repeat(10_000) }), '192.0.2.5')
  await response.text()
  const id = response.headers.get('mcp-session-id') ?? ''
  expect(id.length).toBeLessThan(200)
  await statusOf(post({ jsonrpc: '2.0', method: 'notifications/initialized' }, '192.0.2.5', { 'mcp-session-id': id }))
  const session = env.MCP_SESSION.get(env.MCP_SESSION.idFromString(id.split('.')[0] ?? ''))
  const stored = await runInDurableObject(session, (_, { storage }) => storage.get('opening'))
  expect(JSON.stringify(stored).length).toBeLessThan(500)
})

test('a body that is refused unread or is no message counts as a read', async () => {
  const limited = appWith({ REQUEST_BUDGET_ADDRESS: '3' })
  const send = (body: string) =>
    request(
      '/mcp',
      {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': `${body.length}`,
          'cf-connecting-ip': '192.0.2.7',
        },
        body,
      },
      limited,
    )
  const tooLarge = '"'.padEnd(2 * 1024 * 1024, 'x')
  const statuses: number[] = []
  for (const body of ['{', '[', tooLarge, '{', tooLarge]) statuses.push(await statusOf(send(body)))
  expect(statuses).toEqual([400, 400, 413, 429, 429])
})

test('a batch has at most ten messages', async () => {
  const batch = Array.from({ length: 11 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'tools/list' }))
  const response = await post(batch, '192.0.2.6')
  expect({ status: response.status, body: await response.json() }).toMatchObject({
    status: 400,
    body: { error: { code: -32600, message: expect.stringContaining('at most 10') } },
  })
})

test('a batch of 100 reads costs the node nothing, and one of ten at most as much as ten reads', async () => {
  const { agentId } = await newTrader()
  const address = '192.0.2.7'
  const opened = await post(
    { ...initializeWith(), params: { ...initializeWith().params, protocolVersion: '2025-03-26' } },
    address,
  )
  await opened.text()
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
  await statusOf(post({ jsonrpc: '2.0', method: 'notifications/initialized' }, address, session))
  let lastId = 1
  const reads = (length: number) =>
    Array.from({ length }, () => ({
      jsonrpc: '2.0',
      id: ++lastId,
      method: 'tools/call',
      params: { name: 'svc_get_agent_positions', arguments: { agentId } },
    }))
  /**
   * In each read's call to the chain, and in no call of the indexer and the event streams, which may read at the same
   * time.
   */
  const selector = toFunctionSelector(getAbiItem({ abi: serviceReaderAbi, name: 'openPositions' })).slice(2)
  /** Returns the status of a batch and the number of calls that it made to the chain. */
  const send = async (length: number) => {
    const { fetch } = globalThis
    let calls = 0
    const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const sent = new Request(input as RequestInfo, init as RequestInit)
      if (sent.url.startsWith(deployment.rpcUrl) && (await sent.clone().text()).includes(selector)) calls++
      return fetch(sent)
    })
    const response = await post(reads(length), address, session)
    const text = await response.text()
    spy.mockRestore()
    return { status: response.status, results: text.split('"result"').length - 1, calls }
  }
  const one = await send(1)
  expect(one).toMatchObject({ status: 200, results: 1, calls: 1 })
  const ten = await send(10)
  expect(ten).toMatchObject({ status: 200, results: 10 })
  expect(ten.calls).toBeLessThanOrEqual(10)
  const hundred = await send(100)
  expect(hundred).toEqual({ status: 400, results: 0, calls: 0 })
})

test('a large body counts by its size before it is read, and one above the limits is refused unread', async () => {
  const limited = appWith({ REQUEST_BUDGET_ADDRESS: '6' })
  /** Posts a body of a declared length. Returns the status, and whether the body was read. */
  const send = async (length: number, address: string) => {
    let isRead = false
    const body = new ReadableStream(
      {
        pull(controller) {
          isRead = true
          controller.enqueue(new TextEncoder().encode('"'.padEnd(length, 'x')))
          controller.close()
        },
      },
      { highWaterMark: 0 },
    )
    const headers = {
      'content-type': 'application/json',
      'content-length': `${length}`,
      'cf-connecting-ip': address,
    }
    const status = await statusOf(request('/mcp', { method: 'POST', headers, body }, limited))
    return { status, isRead }
  }
  const large = 3 * 16 * 1024
  expect(await send(large, '192.0.2.40')).toEqual({ status: 400, isRead: true })
  expect(await send(large, '192.0.2.40')).toEqual({ status: 400, isRead: true })
  expect(await send(large, '192.0.2.40')).toEqual({ status: 429, isRead: false })
  expect(await send(1024 * 1024, '192.0.2.41')).toEqual({ status: 413, isRead: false })
})

/** Returns a function that sends a message of one address, with its length, which counts. */
function senderTo(limited: typeof app, address: string, headers: Record<string, string> = {}) {
  return (method: string, message?: object) => {
    const body = message && JSON.stringify(message)
    const declared = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'cf-connecting-ip': address,
      ...(body !== undefined && { 'content-length': `${body.length}` }),
      ...headers,
    }
    return request('/mcp', { method, headers: declared, ...(body !== undefined && { body }) }, limited)
  }
}

/** Opens a session, which this service does not count. Returns what sends to it. */
async function senderInSession(limited: typeof app, address: string) {
  const offered = await senderTo(app, address)('POST', initializeWith())
  await offered.body?.cancel()
  return senderTo(limited, address, { 'mcp-session-id': offered.headers.get('mcp-session-id') ?? '' })
}

test('a read in a session counts as two, because it also costs a request of an object, and so does the end of one', async () => {
  const send = await senderInSession(appWith({ REQUEST_BUDGET_ADDRESS: '6' }), '192.0.2.9')
  const ping = { jsonrpc: '2.0', id: 2, method: 'ping' }
  const pinged = await send('POST', ping)
  await pinged.body?.cancel()
  expect(pinged.headers.get('ratelimit')).toMatch(/"reads";r=4;/)
  expect(await statusOf(send('DELETE'))).toBe(200)
  expect(await statusOf(send('POST', [ping, { ...ping, id: 3 }]))).toBe(429)
})

test('a request that is cancelled in its own batch leaves no stream open', async () => {
  const send = await senderInSession(app, '192.0.2.11')
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }
  const batch = await send('POST', [
    { jsonrpc: '2.0', id: 8, method: 'ping' },
    { jsonrpc: '2.0', id: 9, method: 'ping' },
    cancelled,
  ])
  const text = await batch.text()
  expect(text).toContain('"result":{},"jsonrpc":"2.0","id":8')
  expect(text).toContain('Request cancelled')
})

test('a subscription and its end count as many reads, because they write', async () => {
  const { agentId } = await newTrader()
  const send = await senderInSession(appWith({ REQUEST_BUDGET_ADDRESS: '33' }), '192.0.2.10')
  const change = (method: string) =>
    send('POST', { jsonrpc: '2.0', id: 2, method, params: { uri: `svc://agents/${agentId}/positions` } })
  expect(await statusOf(change('resources/subscribe'))).toBe(200)
  const ended = await change('resources/unsubscribe')
  await ended.body?.cancel()
  expect(ended.headers.get('ratelimit')).toMatch(/"reads";r=1;/)
  expect(await statusOf(change('resources/subscribe'))).toBe(429)
})

test('a session id says when it was issued, and a client can change nothing of it', async () => {
  const address = '192.0.2.42'
  const opened = await post(initializeWith(), address)
  await opened.body?.cancel()
  const id = opened.headers.get('mcp-session-id') ?? ''
  const ping = (sessionId: string) =>
    statusOf(post({ jsonrpc: '2.0', id: 1, method: 'ping' }, address, { 'mcp-session-id': sessionId }))
  const [object = '', issuedAt = '', ...rest] = id.split('.')
  const later = (Number.parseInt(issuedAt, 36) + 600_000).toString(36)
  expect(await ping([object, later, ...rest].join('.'))).toBe(404)
  const another = env.MCP_SESSION.newUniqueId().toString()
  expect(await ping([another, issuedAt, ...rest].join('.'))).toBe(404)
  expect(await ping(id.slice(0, -1))).toBe(404)
  expect(await ping(id)).toBe(200)
})

test('a resource has at most 100 subscribers, and one of the network that has most gives way to a newcomer', async () => {
  const uri = 'svc://agents/424242/positions'
  const crowd = Array.from({ length: 100 }, newSession)
  const [late, newcomer] = [newSession(), newSession()]
  await runInDurableObject(hub(), async (instance, { storage }) => {
    for (const [index, session] of crowd.entries()) {
      expect(await instance.admit(session, [`2001:db8:1:${index}`, '2001:db8:1:0/56', '2001:db8:1/48'])).toBe(true)
      expect(await instance.subscribe(session, uri)).toBe(true)
    }
    await instance.admit(late, ['2001:db8:1:ffff', '2001:db8:1:ff00/56', '2001:db8:1/48'])
    expect(await instance.subscribe(late, uri)).toBe(false)
    await instance.admit(newcomer, ['192.0.2.60'])
    expect(await instance.subscribe(newcomer, uri)).toBe(true)
    expect(await instance.subscribe(newcomer, uri)).toBe(true)
    const subscribers = storage.sql
      .exec<{ session: string }>('SELECT session FROM subscription WHERE uri = ?', uri)
      .toArray()
      .map(({ session }) => session)
    expect(subscribers).toHaveLength(100)
    expect(subscribers).toContain(newcomer)
  })
  await forget([...crowd, late, newcomer])
})

test('an address has at most 1,000 subscriptions, and those of sessions that ended do not count', async () => {
  const sessions = Array.from({ length: 11 }, newSession)
  await runInDurableObject(hub(), async instance => {
    const fill = async (session = '') => {
      let count = 0
      for (let agent = 0; agent < 101; agent++)
        if (await instance.subscribe(session, `svc://agents/${agent}/equity`)) count++
      return count
    }
    for (const session of sessions) await instance.admit(session, ['192.0.2.61'])
    const counts: number[] = []
    for (const session of sessions) counts.push(await fill(session))
    expect(counts).toEqual([...Array(10).fill(100), 0])
    await instance.forget(sessions[0] ?? '')
    expect(await fill(sessions[10])).toBe(100)
  })
  await forget(sessions)
})
