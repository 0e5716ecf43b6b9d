import { describe, expect, it } from 'vitest'
import { listen } from '../support/event-stream.ts'
import { request } from '../support/surfaces.ts'

// MCP only: the same messages as different clients write them.

const JSON_AND_STREAM = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}
const post = (body: unknown, headers: Record<string, string> = {}, path = '/mcp') =>
  request(path, { method: 'POST', headers: { ...JSON_AND_STREAM, ...headers }, body: JSON.stringify(body) })

async function newSession(): Promise<Record<string, string>> {
  const response = await post(initialize)
  await response.text()
  return { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-06-18' }
}

/** Returns the only message of a response in either form. */
async function messageOf(response: Response) {
  const text = await response.text()
  const [, data = text] = /^data: (\{.*\})$/m.exec(text) ?? []
  return JSON.parse(data)
}

describe('the Accept header of a message', () => {
  it.each([
    ['*/*', 'text/event-stream'],
    ['', 'text/event-stream'],
    ['Application/JSON, Text/Event-Stream', 'text/event-stream'],
    ['text/event-stream', 'text/event-stream'],
    ['application/json', 'application/json'],
    ['application/*;q=0.5', 'application/json'],
    ['application/json, text/event-stream;q=0', 'application/json'],
  ])('the Accept header %j of a message gets %s', async (accept, type) => {
    const opened = await post(initialize, { accept })
    expect([opened.status, opened.headers.get('content-type')]).toEqual([200, expect.stringContaining(type)])
    expect(await messageOf(opened)).toMatchObject({ id: 1, result: { serverInfo: {} } })
    const session = {
      'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
      'mcp-protocol-version': '2025-06-18',
    }
    const listed = await post({ jsonrpc: '2.0', id: 2, method: 'tools/list' }, { ...session, accept })
    expect([listed.status, listed.headers.get('content-type')]).toEqual([200, expect.stringContaining(type)])
    expect((await messageOf(listed)).result.tools).not.toHaveLength(0)
    const batch = [3, 4].map(id => ({ jsonrpc: '2.0', id, method: 'ping' }))
    const answered = await post(batch, { ...session, accept })
    expect(answered.status).toBe(200)
    const text = await answered.text()
    for (const { id } of batch) expect(text).toContain(`"id":${id}`)
    expect((await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, { ...session, accept })).status).toBe(
      202,
    )
  })

  it('the Accept header of a message of the 2026 revision may name one type or none', async () => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }
    for (const accept of ['*/*', 'application/json', 'text/event-stream']) {
      const response = await post(
        { jsonrpc: '2.0', id: 2, method: 'tools/list', params: { _meta } },
        { ...headers, accept },
      )
      expect([accept, response.status]).toEqual([accept, 200])
      if (accept !== '*/*') expect(response.headers.get('content-type')).toContain(accept)
      expect((await messageOf(response)).result.tools).not.toHaveLength(0)
    }
  })
})

describe('the endpoint', () => {
  it('the endpoint answers under a path with a slash', async () => {
    const opened = await post(initialize, {}, '/mcp/?toolsets=')
    expect(await messageOf(opened)).toMatchObject({ result: { serverInfo: {} } })
  })

  it('the endpoint opens a new session for an initialize request with the id of another one', async () => {
    const ended = await newSession()
    expect((await request('/mcp', { method: 'DELETE', headers: ended })).status).toBe(200)
    for (const id of [
      ended['mcp-session-id'] ?? '',
      'id-of-an-ended-session',
      (await newSession())['mcp-session-id'] ?? '',
    ]) {
      const opened = await post(initialize, { 'mcp-session-id': id })
      expect(opened.status).toBe(200)
      const session = opened.headers.get('mcp-session-id') ?? ''
      expect(session).not.toBe(id)
      await opened.text()
      const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-06-18' }
      expect((await messageOf(await post({ jsonrpc: '2.0', id: 5, method: 'ping' }, headers))).result).toEqual({})
    }
  })

  it('the endpoint lets a page send a bearer token, and says for how long', async () => {
    const headers = {
      origin: 'http://localhost:6274',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    }
    const preflight = await request('/mcp', { method: 'OPTIONS', headers })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toContain('authorization')
    expect(Number(preflight.headers.get('access-control-max-age'))).toBeGreaterThan(0)
  })
})

describe('the id of the last event', () => {
  it.each(['1000000', 'nonsense', '0', '-1'])(
    'the id %s of an event that is not known starts the stream afresh with a notice',
    async id => {
      const session = await newSession()
      const stream = await request('/mcp', {
        headers: { ...session, accept: 'text/event-stream', 'last-event-id': id },
      })
      expect(stream.status).toBe(200)
      const listener = listen(stream)
      const { data } = await listener.until(() => listener.events[0])
      expect(data).toMatchObject({ method: 'notifications/message', params: { level: 'warning' } })
      await listener.leave()
    },
  )

  it('the id of the last event is absent if it is empty', async () => {
    const session = await newSession()
    const stream = await request('/mcp', { headers: { ...session, accept: '*/*', 'last-event-id': '' } })
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    await stream.body?.cancel()
  })
})

describe('a field that is null', () => {
  it('a field that is null is absent in messages', async () => {
    const session = await newSession()
    const send = async (body: Record<string, unknown>) =>
      messageOf(await post({ jsonrpc: '2.0', id: 2, ...body }, session))
    expect((await send({ method: 'tools/list', params: null })).result.tools).not.toHaveLength(0)
    expect((await send({ method: 'tools/list', params: { cursor: null, _meta: null } })).result.tools).not.toHaveLength(
      0,
    )
    const vaults = { name: 'svc_list_vaults', _meta: null }
    for (const given of [null, {}, '{}'])
      expect((await send({ method: 'tools/call', params: { ...vaults, arguments: given } })).result.isError).toBeFalsy()
    expect((await send({ method: 'prompts/list', params: null })).result.prompts).not.toHaveLength(0)
  })

  it('a field that is wrong is named in plain words', async () => {
    const session = await newSession()
    for (const [method, params, text] of [
      ['tools/call', {}, 'params.name is missing'],
      ['tools/call', { name: 7 }, 'params.name must be a string, not 7'],
      ['tools/call', { name: 'svc_list_vaults', arguments: [1] }, 'params.arguments must be an object, not [1]'],
      ['tools/call', { name: 'svc_list_vaults', arguments: 'x' }, 'params.arguments must be an object'],
      ['resources/read', {}, 'uri is missing'],
      ['resources/read', { uri: 7 }, 'uri must be a string, not 7'],
      [
        'prompts/get',
        { name: 'open_position', arguments: { symbol: {} } },
        'arguments.symbol must be a string, not {}',
      ],
    ] as const) {
      const { error } = await messageOf(await post({ jsonrpc: '2.0', id: 2, method, params }, session))
      expect(error.code).toBe(-32602)
      expect(error.message).toContain(text)
      expect(error.message).not.toMatch(/invalid_type|"code"|expected/)
    }
  })
})
