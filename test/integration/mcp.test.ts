import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { describe, expect, it, vi } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { type Context, createContext } from '../../src/context.ts'
import { createMcpRoute } from '../../src/mcp/route.ts'
import { createServer } from '../../src/mcp/server.ts'
import { createSessionIds } from '../../src/mcp/session-id.ts'
import { toolOperations } from '../../src/mcp/tool-operations.ts'
import { chain, newTrader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { refused, sign, succeed, type ToolResult, ToolTrader, wholeTrade } from '../support/mcp-client.ts'
import { call, deployment, request } from '../support/surfaces.ts'

const fetchWorker = (async (input, init) => exports.default.fetch(new Request(input as string, init))) as typeof fetch

// MCP only: the MCP surface itself, over the protocol's 2025 revisions (with sessions) and its 2026 revision.

type ProtocolMode = 'legacy' | { pin: string }
const MODES: [ProtocolMode, string][] = [
  ['legacy', '2025-11-25'],
  [{ pin: '2026-07-28' }, '2026-07-28'],
]

async function connect(mode: ProtocolMode = 'legacy', path = '/mcp', fetch = fetchWorker) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(new URL(path, 'http://localhost'), { fetch })
  await client.connect(transport)
  return {
    client,
    sessionId: transport.sessionId ?? '',
    tool: (name: string, input: Record<string, unknown> = {}) =>
      client.callTool({ name, arguments: input }) as Promise<ToolResult>,
  }
}

const JSON_AND_STREAM = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}
const post = (body: unknown, headers: Record<string, string> = {}, path = '/mcp') =>
  request(path, {
    method: 'POST',
    headers: { ...JSON_AND_STREAM, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const listTools = { jsonrpc: '2.0', id: 2, method: 'tools/list' }

async function rawSession(path = '/mcp'): Promise<Record<string, string>> {
  const response = await post(initialize, {}, path)
  await response.text()
  expect(response.status).toBe(200)
  return { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': '2025-11-25' }
}
/** Returns the object of a session, whose id begins with the object's. */
const objectOf = (sessionId: string) => env.MCP_SESSION.get(env.MCP_SESSION.idFromString(sessionId.split('.')[0] ?? ''))
const tables = (stub: DurableObjectStub) =>
  runInDurableObject(stub, (_, state) =>
    state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'event'").toArray(),
  )

const keysIn = (stub: DurableObjectStub) =>
  runInDurableObject(stub, async (_, { storage }) => [...(await storage.list()).keys()])

/** Returns the result in the last message of an event stream. */
const resultOf = (stream: string) => JSON.parse(/^data: (.+)$/gm.exec(stream)?.[1] ?? '').result

/** Reads server-sent events until one satisfies `until`, cancels the stream and returns all of them. */
async function readEvents(response: Response, until: (event: { id: string; data: string }) => boolean) {
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  const events: { id: string; data: string }[] = []
  let buffer = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return events
    buffer += value
    const frames = buffer.split('\n\n')
    buffer = frames.pop() ?? ''
    for (const frame of frames) {
      const event = { id: /^id: (.*)$/m.exec(frame)?.[1] ?? '', data: /^data: (.*)$/m.exec(frame)?.[1] ?? '' }
      events.push(event)
      if (until(event)) {
        await reader.cancel()
        return events
      }
    }
  }
}

describe.each(MODES)('protocol %o', (mode, version) => {
  it('negotiates the version and returns server name and instructions', async () => {
    const { client } = await connect(mode)
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    expect(client.getServerVersion()).toMatchObject({ name: 'agent-trading-service', version: '0.1.0' })
    expect(client.getInstructions()).toContain('svc_get_agent_registration_quote')
    await client.close()
  })

  it('completes a trade through tools alone', async () => {
    const { client, tool } = await connect(mode)
    await client.listTools() // from here on, the client validates results against the output schemas
    await wholeTrade(tool)
    await client.close()
  })

  it('reports progress while a submission waits for inclusion', async () => {
    const { client } = await connect(mode)
    const seen: number[] = []
    const onprogress = ({ progress }: { progress: number }) => seen.push(progress)
    const trader = new ToolTrader(
      (name, input) => client.callTool({ name, arguments: input }, { onprogress }) as Promise<ToolResult>,
    )
    await trader.register()
    expect(seen.length).toBeGreaterThanOrEqual(2)
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    await client.close()
  })

  it('returns a refusal as an error with the same body as over HTTP but for tools in its remedy, without structured content', async () => {
    const { client, tool } = await connect(mode)
    const { requestId, ...body } = await refused(tool('svc_get_agent', { agentId: '999999' }))
    const { body: overHttp } = await call('getAgent', { agentId: '999999' })
    expect(overHttp.remedy).toBe('Use an agent id from POST /agents/register or GET /agents/by-owner/{owner}.')
    const remedy = 'Use an agent id from svc_register_agent or svc_list_agents_by_owner.'
    expect({ ...body, requestId: overHttp.requestId }).toEqual({ ...overHttp, remedy })
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/)
    expect(await refused(tool('svc_get_agent', { agentId: '1', verbose: true }))).toMatchObject({
      code: 'INVALID_REQUEST',
    })
    expect(await refused(tool('svc_get_agent', { agentId: 2 ** 60 }))).toMatchObject({ code: 'INVALID_REQUEST' })
    await expect(tool('svc_withdraw_everything')).rejects.toThrow('There is no tool svc_withdraw_everything')
    await client.close()
  })

  it('accepts what models write for each other type, wherever nothing is lost, and trades with it', async () => {
    const { client, tool } = await connect(mode)
    const trader = new ToolTrader(tool)
    const agentId = Number(await trader.register({ linkERC8004: false, erc8004AgentId: null, deadline: '' }))
    const asked = { agentId, symbol: 'NVDA', usdcAmount: 50, minTokenOut: '', deadline: null }
    const exits = [{ triggerBps: '-800', exitBps: 10_000 }]
    const quote = await succeed(
      tool('svc_get_trade_intent_quote', { ...asked, exits, maxSlippageBps: '100', detail: 'full' }),
    )
    const signature = await sign(trader.account, quote.typedData)
    const { nonce, ...body } = quote.body
    const written = { agentId, ...body, usdcAmount: 50, exits: JSON.stringify(body.exits), maxSlippageBps: '100' }
    const receipt = await succeed(tool('svc_submit_trade_intent', { ...written, nonce: Number(nonce), signature }))
    expect(receipt.positionId).toMatch(/^\d+$/)
    const { prices } = await succeed(tool('svc_get_prices', { symbols: ['NVDA', 'AAPL'] }))
    expect(Object.keys(prices)).toEqual(['NVDA', 'AAPL'])
    expect((await succeed(tool('svc_list_closed_positions', { agentId, limit: '1', cursor: '' }))).positions).toEqual(
      [],
    )
    await client.close()
  })

  it('refuses what would lose something, in a sentence with the field, what was sent and what to do', async () => {
    const { client, tool } = await connect(mode)
    for (const [input, problem] of [
      [{ limit: '1e1' }, 'limit: must be a number, not "1e1"'],
      [{ limit: '0x10' }, 'limit: must be a number, not "0x10"'],
      [{ limit: 1.5 }, 'limit: must be an integer, not 1.5'],
      [{ agentId: 2 ** 53 }, 'agentId: must be a string with every digit'],
      [{ agentId: null }, 'agentId: must be a string, not null'],
      [{ agentId: ['😀'.repeat(40)] }, 'agentId: must be a string, not ["😀'],
    ] as const) {
      const { error, remedy } = await refused(tool('svc_list_closed_positions', { agentId: '1', ...input }))
      expect(error).toContain(problem)
      expect(error.isWellFormed()).toBe(true)
      expect(remedy).toContain('call the tool again')
    }
    await expect(tool('svc_get_agnt', {})).rejects.toThrow('Did you mean svc_get_agent?')
    await client.close()
  })

  it('offers resources and prompts', async () => {
    const { client } = await connect(mode)
    const { resources } = await client.listResources()
    const skills = ['onboard', 'recover', 'risk', 'trade'].map(name => `skill://${name}/SKILL.md`)
    expect(resources.map(({ uri }) => uri)).toEqual(['svc://vaults', 'svc://errors', 'svc://signing', ...skills])
    const read = async (uri: string) => {
      const { contents } = await client.readResource({ uri })
      return JSON.parse((contents[0] as { text: string }).text)
    }
    expect((await read('svc://vaults')).vaults).toEqual((await call('listVaults')).body.vaults)
    const { service, contracts } = await read('svc://errors')
    expect([...service, ...contracts].map(({ code }: { code: string }) => code)).toEqual(
      expect.arrayContaining(['INVALID_NONCE', 'EXCEEDS_ALLOCATION_CAP']),
    )
    const { messages } = await read('svc://signing')
    expect(messages.map(({ primaryType }: { primaryType: string }) => primaryType)).toContain('OpenPosition')
    await expect(client.readResource({ uri: 'svc://nothing' })).rejects.toMatchObject({ code: -32602 })
    await expect(client.readResource({ uri: 'svc://agents/999999/risk-state' })).rejects.toMatchObject({
      data: { code: 'AGENT_NOT_FOUND' },
    })

    const { prompts } = await client.listPrompts()
    for (const { arguments: given = [], description } of prompts) {
      expect(description).toBeTruthy()
      for (const argument of given) expect(argument.description).toBeTruthy()
    }
    const explained = await client.getPrompt({
      name: 'explain_refusal',
      arguments: { refusal: '{"code":"INVALID_NONCE"}' },
    })
    expect(JSON.stringify(explained.messages)).toContain('Fetch a fresh quote')
    await expect(client.getPrompt({ name: 'open_position', arguments: {} })).rejects.toMatchObject({ code: -32602 })
    await client.close()
  })

  it('selects tools with ?tools= and rejects the others', async () => {
    const { client, tool } = await connect(mode, '/mcp?tools=read')
    const { tools } = await client.listTools()
    expect(tools.length).toBeGreaterThan(10)
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).toBe(true)
    await expect(tool('svc_submit_trade_intent')).rejects.toThrow('There is no tool')
    await client.close()
  })

  it('serves the tool sets of ?toolsets= and rejects the tools of others', async () => {
    const { client, tool } = await connect(mode, '/mcp?toolsets=owner,history')
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toContain('svc_set_mandate')
    expect(names).toContain('svc_get_trade_history')
    expect(names).not.toContain('svc_submit_trade_intent')
    await expect(tool('svc_submit_trade_intent')).rejects.toThrow('There is no tool')
    await client.close()
    const all = await connect(mode, '/mcp?toolsets=all')
    const { tools } = await all.client.listTools()
    expect(tools).toHaveLength(toolOperations.length)
    await all.client.close()
  })

  it('reads for the agent of ?agentId= where a read names none, and writes for none', async () => {
    const { agentId, account } = await newTrader()
    const { client, tool } = await connect(mode, `/mcp?agentId=0${agentId}`)
    const { tools } = await client.listTools()
    const schemaOf = (name: string) => tools.find(tool => tool.name === name)?.inputSchema
    expect(schemaOf('svc_get_risk_state')).toMatchObject({ properties: { agentId: { default: agentId } } })
    expect(schemaOf('svc_get_risk_state')?.required).toBeUndefined()
    expect(schemaOf('svc_submit_reduce_intent')?.required).toContain('agentId')
    expect(await succeed(tool('svc_whoami'))).toMatchObject({ agentId, signer: account.address })
    expect(await succeed(tool('svc_get_risk_state', { agentId: '' }))).toMatchObject({ agentId })
    const quote = await succeed(tool('svc_get_trade_intent_quote', { symbol: 'NVDA', usdcAmount: '50' }))
    expect(quote).toMatchObject({ passes: true, signer: account.address })
    expect(await refused(tool('svc_get_risk_state', { agentId: '999999' }))).toMatchObject({ code: 'AGENT_NOT_FOUND' })
    expect(await refused(tool('svc_submit_reduce_intent'))).toMatchObject({ code: 'INVALID_REQUEST' })
    await client.close()
  })

  it('does not serve the tools of owners without a selection', async () => {
    const { client } = await connect(mode)
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toContain('svc_submit_trade_intent')
    expect(names).not.toContain('svc_set_mandate')
    await client.close()
  })

  it('notifies a subscriber when the positions of an agent change, whoever changes them', async () => {
    const { client, tool } = await connect(mode)
    const trader = new ToolTrader(tool)
    const base = `svc://agents/${await trader.register()}`
    const uris = [`${base}/positions`, `${base}/risk-state`]
    let updated = new Set<string>()
    let all = Promise.withResolvers<void>()
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      if (updated.add(params.uri).size === uris.length) all.resolve()
    })
    if (mode === 'legacy') for (const uri of uris) await client.subscribeResource({ uri })
    else await client.listen({ resourceSubscriptions: uris })
    const { agentId, account } = trader
    const input = { agentId, symbol: 'NVDA', usdcAmount: '20', exits: '-800:10000,1500:10000' }
    const { body, typedData } = (await call('getTradeIntentQuote', input)).body
    const signature = await sign(account, typedData)
    const { positionId } = (await call('submitTradeIntent', { agentId, ...body, signature })).body
    await all.promise
    expect([...updated].sort()).toEqual(uris)

    updated = new Set()
    all = Promise.withResolvers<void>()
    await chain.setAgentStatus(BigInt(agentId), AgentStatus.Suspended)
    await chain.send(deployment.accounts.operator, {
      address: deployment.contracts.TradeRouter as `0x${string}`,
      abi: tradeRouterAbi,
      functionName: 'forceClose',
      args: [BigInt(positionId)],
    })
    await all.promise
    const { contents } = await client.readResource({ uri: `${base}/positions` })
    expect(JSON.parse((contents[0] as { text: string }).text).positions).toEqual([])
    await client.close()
  })
})

describe('a session of the 2025 revisions', () => {
  it('a session of the 2025 revisions survives the eviction of its object, with its notifications', async () => {
    const headers = await rawSession('/mcp?tools=read')
    const before = await (await post(listTools, headers)).text()
    expect(before).not.toContain('"name":"svc_submit_trade_intent"')
    const stub = objectOf(headers['mcp-session-id'] ?? '')
    const listen = (resume: Record<string, string> = {}) =>
      request('/mcp', { headers: { ...headers, accept: 'text/event-stream', ...resume } })
    const firstOf = async (response: Response) => (await readEvents(response, ({ data }) => data !== '')).at(-1)
    const stream = await listen()
    await stub.resourcesUpdated(['svc://vaults'])
    const { id = '' } = (await firstOf(stream)) ?? {}
    await stub.resourcesUpdated(['svc://tokens'])
    await evictDurableObject(stub)
    const after = await (await post(listTools, headers)).text()
    expect(resultOf(after)).toEqual(resultOf(before))
    const missed = await firstOf(await listen({ 'last-event-id': id }))
    expect(JSON.parse(missed?.data ?? '')).toMatchObject({ params: { uri: 'svc://tokens' } })
    // Responses are not stored, because anyone may cause any number.
    const unknown = await firstOf(await listen({ 'last-event-id': /^id: (\d+)$/m.exec(before)?.[1] ?? '' }))
    expect(JSON.parse(unknown?.data ?? '')).toMatchObject({ params: { logger: 'event-stream' } })
  })

  it('a session of the 2025 revisions stores nothing of what its client reads', async () => {
    const headers = await rawSession()
    const stub = objectOf(headers['mcp-session-id'] ?? '')
    for (let call = 0; call < 5; call++) await (await post(listTools, headers)).text()
    expect(await tables(stub)).toHaveLength(0)
    expect(await keysIn(stub)).toEqual(['opening'])
  })

  it('a session of the 2025 revisions expires when idle and leaves nothing in storage', async () => {
    const headers = await rawSession()
    const stub = objectOf(headers['mcp-session-id'] ?? '')
    await (await post(listTools, headers)).text()
    await stub.resourcesUpdated(['svc://vaults'])
    expect(await tables(stub)).toHaveLength(1)
    expect(await runDurableObjectAlarm(stub)).toBe(true)
    expect((await post(listTools, headers)).status).toBe(404)
    expect(await tables(stub)).toHaveLength(0)
    // What is left is that it has ended, until its id is too old to open it again.
    expect(await runDurableObjectAlarm(stub)).toBe(true)
    expect(await keysIn(stub)).toEqual([])
    expect(await runDurableObjectAlarm(stub)).toBe(false)
  })

  it('a session of the 2025 revisions stores nothing before it is used, and expires half an hour after that', async () => {
    const headers = await rawSession()
    const stub = objectOf(headers['mcp-session-id'] ?? '')
    expect(await keysIn(stub)).toEqual([])
    expect(await tables(stub)).toHaveLength(0)
    await (await post(listTools, headers)).text()
    expect(await keysIn(stub)).toEqual(['opening'])
    const minutesLeft = await runInDurableObject(stub, async (_, { storage }) =>
      Math.round((((await storage.getAlarm()) ?? 0) - Date.now()) / 60_000),
    )
    expect(minutesLeft).toBe(30)
  })

  it('a session of the 2025 revisions is gone if it was not used within two minutes', async () => {
    const headers = await rawSession()
    const [object, issuedAt = '', ...rest] = (headers['mcp-session-id'] ?? '').split('.')
    const old = (Number.parseInt(issuedAt, 36) - 121_000).toString(36)
    const expired = { ...headers, 'mcp-session-id': [object, old, ...rest].join('.') }
    expect((await post(listTools, expired)).status).toBe(404)
    expect((await post(listTools, headers)).status).toBe(200)
  })

  const listVaults = {
    jsonrpc: '2.0',
    id: 9,
    method: 'tools/call',
    params: { name: 'svc_list_vaults', arguments: {} },
  }

  it.each([
    ['toolsets=trade,all-of-them', 'There is no tool set \\"all-of-them\\": market, agents, trade'],
    ['tools=reads', 'There is no subset \\"reads\\" of tools: all, read, trade'],
    ['agentId=0x7', 'The agentId \\"0x7\\" of the URL is no agent id'],
  ])(
    'a session of the 2025 revisions refuses ?%s, because a typo must not select anything else',
    async (query, text) => {
      const response = await post(initialize, {}, `/mcp?${query}`)
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(text)])
      expect((await post(initialize, {}, '/mcp?toolsets=&tools=&agentId=')).status).toBe(200)
    },
  )

  it('a session of the 2025 revisions refuses a request with the id of another one in flight', async () => {
    const headers = await rawSession()
    const { fetch } = globalThis
    let isReleased = false
    // The node responds to the first request only after the second one was refused.
    const node = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      await vi.waitUntil(() => isReleased, { timeout: 30_000, interval: 10 })
      return fetch(input, init)
    })
    try {
      const first = await post(listVaults, headers)
      const second = await post(listVaults, headers)
      expect([second.status, await second.text()]).toEqual([400, expect.stringContaining('-32600')])
      isReleased = true
      expect([first.status, await first.text()]).toEqual([200, expect.stringContaining('"id":9')])
    } finally {
      isReleased = true
      node.mockRestore()
    }
    const later = await post(listVaults, headers)
    expect([later.status, await later.text()]).toEqual([200, expect.stringContaining('"id":9')])
  })

  it('a session of the 2025 revisions accepts the id of a request that the client has cancelled', async () => {
    const headers = await rawSession()
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }
    // The response to the first one begins once its id is in flight; sent at once, the cancellation could overtake it.
    const first = await post(listVaults, headers)
    await post(cancelled, headers)
    const later = await post(listVaults, headers)
    expect([later.status, await later.text()]).toEqual([200, expect.stringContaining('"id":9')])
    await first.body?.cancel()
  })

  it('a session of the 2025 revisions ends with DELETE', async () => {
    const headers = await rawSession()
    expect((await request('/mcp', { method: 'DELETE', headers })).status).toBe(200)
    expect((await post(listTools, headers)).status).toBe(404)
    expect(await tables(objectOf(headers['mcp-session-id'] ?? ''))).toHaveLength(0)
  })

  it('a session of the 2025 revisions replays the events that a lost stream has missed, to its own client only', async () => {
    const headers = await rawSession()
    const stream = await post(
      { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'svc_list_vaults', arguments: {} } },
      headers,
    )
    const [first] = await readEvents(stream, () => true)
    expect(first).toMatchObject({ id: expect.stringMatching(/^\d+$/), data: '' })
    const resume = { ...headers, accept: 'text/event-stream', 'last-event-id': first?.id ?? '' }
    const events = await readEvents(await request('/mcp', { headers: resume }), ({ data }) => data.includes('"id":7'))
    expect(JSON.parse(events.at(-1)?.data ?? '').result.structuredContent.vaults).not.toHaveLength(0)

    const stranger = await rawSession()
    const stolen = await request('/mcp', { headers: { ...resume, ...stranger } })
    const [notice] = await readEvents(stolen, ({ data }) => data !== '')
    expect(JSON.parse(notice?.data ?? '')).toMatchObject({ method: 'notifications/message' })
  })

  it('a session of the 2025 revisions is separate from another session in use at the same time', async () => {
    const [a, b] = await Promise.all([connect('legacy', '/mcp?tools=read'), connect('legacy', '/mcp?tools=trade')])
    expect(a.sessionId).not.toBe(b.sessionId)
    const names = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const { client } = index % 2 ? b : a
        const [{ tools }, refusal] = await Promise.all([
          client.listTools(undefined, { cacheMode: 'refresh' }),
          refused((index % 2 ? b : a).tool('svc_get_risk_state', { agentId: `${900_000 + index}` })),
        ])
        expect(refusal.details.agentId).toBe(`${900_000 + index}`)
        return tools.some(({ name }) => name === 'svc_list_vaults')
      }),
    )
    expect(names).toEqual(names.map((_, index) => index % 2 === 0))
  })

  it('a session of the 2025 revisions supports every 2024 and 2025 revision, and offers the newest to a client with an unknown one', async () => {
    for (const [requested, negotiated] of [
      ['2024-11-05', '2024-11-05'],
      ['2025-03-26', '2025-03-26'],
      ['2025-06-18', '2025-06-18'],
      ['2025-11-25', '2025-11-25'],
      ['1999-01-01', '2025-11-25'],
    ]) {
      const response = await post({ ...initialize, params: { ...initialize.params, protocolVersion: requested } })
      expect(await response.text()).toContain(`"protocolVersion":"${negotiated}"`)
    }
  })
})

describe('an internal error', () => {
  /** Connects to tools over a context that the test has broken. */
  async function toolsOver(context: Context) {
    const route = createMcpRoute({
      createServer: options => createServer(context, options),
      sessionIds: createSessionIds('test'),
      allowedHosts: ['localhost'],
      namespaces: env,
    })
    const fetchBroken = (async (input, init) => route(new Request(input as string, init))) as typeof fetch
    return connect({ pin: '2026-07-28' }, '/mcp', fetchBroken)
  }

  it('an internal error reveals neither its message nor the URL of the node', async () => {
    const vars = { ...workerVars(deployment), RPC_URL: 'http://127.0.0.1:1/v2/secret-key' }
    const unreachable = createContext(parseConfig(vars), env)
    const broken: Context = Object.create(unreachable, {
      chain: {
        get() {
          throw new TypeError('secret-key is not a function')
        },
      },
    })
    for (const [context, code] of [
      [unreachable, 'CHAIN_UNREACHABLE'],
      [broken, 'INTERNAL'],
    ] as const) {
      const { client, tool } = await toolsOver(context)
      const refusal = await refused(tool('svc_list_vaults'))
      expect(refusal.code).toBe(code)
      const read = client
        .readResource({ uri: 'svc://vaults' })
        .catch((error: { data: unknown; message: string }) => error)
      const { data, message } = (await read) as { data: unknown; message: string }
      expect(data).toMatchObject({ code })
      expect(JSON.stringify([refusal, data, message])).not.toContain('secret-key')
      await client.close()
    }
  })

  it('an internal error is CHAIN_UNREACHABLE for the signing reference once the time for a response is over', async () => {
    const context: Context = Object.create(createContext(parseConfig(workerVars(deployment)), env), {
      rateLimits: { value: { ofClient: () => ({ arrivedAt: 0, enter: async () => {}, leave: () => {} }) } },
    })
    const { client } = await toolsOver(context)
    await expect(client.readResource({ uri: 'svc://signing' })).rejects.toMatchObject({
      data: { code: 'CHAIN_UNREACHABLE' },
    })
    await client.close()
  })

  it('an internal error is a refusal that names the missing capability if the deployment is not configured', async () => {
    const { client, tool } = await toolsOver(createContext(parseConfig({}), env))
    expect(await refused(tool('svc_list_vaults'))).toMatchObject({ code: 'CHAIN_NOT_CONFIGURED' })
    expect(await refused(tool('svc_get_risk_state', { agentId: '1' }))).toMatchObject({
      code: 'TRADING_NOT_CONFIGURED',
    })
    expect((await client.listTools()).tools.length).toBeGreaterThan(20)
    await client.close()
  })
})

describe('the endpoint', () => {
  it('the endpoint rejects foreign origins and hosts on every method', async () => {
    for (const method of ['POST', 'GET', 'DELETE', 'OPTIONS'])
      for (const origin of ['http://evil.example', 'null', 'http://localhost.evil.example'])
        expect((await request('/mcp', { method, headers: { origin } })).status).toBe(403)
    const rebound = await exports.default.fetch('http://evil.example/mcp', { method: 'POST', body: '{}' })
    expect(rebound.status).toBe(403)
  })

  it('the endpoint accepts pages of its own hosts', async () => {
    const preflight = await request('/mcp', { method: 'OPTIONS', headers: { origin: 'http://localhost:6274' } })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Mcp-Session-Id')
    const response = await post(initialize, { origin: 'http://localhost:6274' })
    expect(response.status).toBe(200)
    expect(response.headers.get('access-control-allow-origin')).toBe('http://localhost:6274')
    expect(response.headers.get('access-control-expose-headers')).toContain('Mcp-Session-Id')
    await response.text()
  })

  it.each([
    ['another method', { method: 'PUT' }, 405],
    ['a body above 64 KiB', { body: JSON.stringify({ ...listTools, padding: 'x'.repeat(64 * 1024) }) }, 413],
    ['no JSON', { body: '{"jsonrpc":' }, 400],
    ['another content type', { headers: { ...JSON_AND_STREAM, 'content-type': 'text/plain' } }, 415],
    ['no session id', {}, 400],
    ['no session id on a listen stream', { method: 'GET' }, 400],
    ['an initialize request in a batch', { body: JSON.stringify([initialize]) }, 400],
    ['an invented session id', { headers: { ...JSON_AND_STREAM, 'mcp-session-id': 'invented' } }, 404],
    [
      'a well-formed session id that was never issued',
      { headers: { ...JSON_AND_STREAM, 'mcp-session-id': '0'.repeat(64) } },
      404,
    ],
    [
      'a session id that was issued and never used',
      { headers: { ...JSON_AND_STREAM, 'mcp-session-id': `${env.MCP_SESSION.newUniqueId()}` } },
      404,
    ],
  ])('the endpoint rejects %s', async (_, { body, ...init }: RequestInit, status) => {
    const method = init.method ?? 'POST'
    const response = await request('/mcp', {
      headers: JSON_AND_STREAM,
      ...init,
      method,
      ...(method !== 'GET' && { body: body ?? JSON.stringify(listTools) }),
    })
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code: expect.any(Number) } })
  })

  it('the endpoint names the header that a request without a session or revision lacks', async () => {
    const messageOf = async (response: Response) => ((await response.json()) as Body).error.message
    expect(await messageOf(await post(listTools, {}))).toMatch(/Mcp-Session-Id.*Mcp-Protocol-Version 2026-07-28/)
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const newer = { ...listTools, params: { _meta } }
    expect(await messageOf(await post(newer, { 'mcp-method': 'tools/list' }))).toMatch(/MCP-Protocol-Version/i)
  })

  it('the endpoint rejects requests that a session does not accept', async () => {
    const headers = await rawSession()
    expect((await post(listTools, { ...headers, accept: 'text/html' })).status).toBe(406)
    expect((await post(listTools, { ...headers, 'mcp-protocol-version': '1999-01-01' })).status).toBe(400)
  })

  it('the endpoint opens no session for an initialize request that it rejects', async () => {
    const response = await post(initialize, { accept: 'text/html' })
    expect(response.status).toBe(406)
    expect(response.headers.get('mcp-session-id')).toBeNull()
  })

  it('the endpoint limits the size of a streamed request body', async () => {
    const chunk = new TextEncoder().encode('x'.repeat(1024 * 1024))
    let sent = 0
    const body = new ReadableStream({
      pull: controller => (sent++ < 6 ? controller.enqueue(chunk) : controller.close()),
    })
    const response = await request('/mcp', { method: 'POST', headers: JSON_AND_STREAM, body })
    expect(response.status).toBe(413)
  })

  it.each([
    ['prompts/get', { name: 'open_position', arguments: 'NVDA' }],
    ['prompts/get', { name: 'open_position', arguments: [] }],
    ['prompts/get', { name: 'open_position', arguments: { symbol: 7 } }],
    ['prompts/get', { arguments: {} }],
    ['resources/read', { uri: 7 }],
    ['resources/subscribe', {}],
    ['tools/list', { cursor: 7 }],
  ])('the endpoint rejects %s with malformed parameters as invalid: %j', async (method, params) => {
    const stream = await (await post({ jsonrpc: '2.0', id: 3, method, params }, await rawSession())).text()
    const message = JSON.parse(/^data: ({.+})$/m.exec(stream)?.[1] ?? '')
    expect(message).toMatchObject({ id: 3, error: { code: -32602 } })
  })

  it('the endpoint rejects a message that is nested too deeply', async () => {
    const nested = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
    const body = JSON.stringify({ ...initialize, params: { ...initialize.params, capabilities: { experimental: 0 } } })
    const response = await post(body.replace('"experimental":0', `"experimental":{"deep":${nested}}`))
    expect([response.status, await response.json()]).toMatchObject([400, { error: { code: -32600 } }])
  })

  it('the endpoint keeps the request id of the client', async () => {
    const headers = { ...(await rawSession()), 'x-request-id': 'chosen-by-the-client' }
    const body = { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'svc_get_agent', arguments: {} } }
    expect(await (await post(body, headers)).text()).toContain('chosen-by-the-client')
  })
})
