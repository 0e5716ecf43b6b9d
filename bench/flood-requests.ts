import type { LoadRequest } from './load-child.ts'

/** The kinds of floods that strangers can send. */
export const floodKinds = [
  'reads',
  'reads that wait for a block',
  'quotes',
  'invalid submissions',
  'registrations',
  'refused payments',
  'price refreshes',
  'event streams',
  'MCP initialize',
  'MCP batches',
  'MCP listen streams',
  'oversized bodies',
] as const
type FloodKind = (typeof floodKinds)[number]

/** A signed registration, and a payment for it from an account without USDC. */
export type UnpaidRegistration = { body: object; payment: string }

/** The data that the requests of a flood refer to. */
export type FloodTarget = {
  agentId: string
  vault: string
  /** The head of the chain when the requests are made. */
  block: number
  unpaid: readonly UnpaidRegistration[]
}

/** At four blocks a second, as many as a request may wait for. */
const BLOCKS_AHEAD = 20
/** As many resources as a listen stream may follow. */
const RESOURCES = 100
const LARGE_BYTES = 2 * 1024 * 1024

const BATCH = 10
const SIGNATURE = `0x${'5f'.repeat(64)}1b`
const MCP_HEADERS = { accept: 'application/json, text/event-stream' }

const initialize = (id: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'initialize',
  params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'flood', version: '1' } },
})

const listen = (id: number, agentId: string) => ({
  jsonrpc: '2.0',
  id,
  method: 'subscriptions/listen',
  params: {
    notifications: { resourceSubscriptions: Array(RESOURCES).fill(`svc://agents/${agentId}/positions`) },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'flood', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
})

/** The addresses of a flood. */
type FloodSenders = { firstAddress: number; addresses: number }

/** Returns an address of the network that RFC 2544 reserves for benchmarks, one per number. */
const addressOf = (index: number) => `198.18.${index >> 8}.${index & 255}`

/** Opens a session of the 2025 revisions from each address, for floods of batches. Returns the session ids. */
export async function openSessions(url: string, { firstAddress, addresses }: FloodSenders): Promise<string[]> {
  const open = async (index: number) => {
    const headers = {
      ...MCP_HEADERS,
      'content-type': 'application/json',
      'cf-connecting-ip': addressOf(firstAddress + index),
    }
    const post = (body: object, more: Record<string, string> = {}) =>
      fetch(`${url}/mcp`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) })
    const response = await post(initialize(1))
    await response.text()
    const id = response.headers.get('mcp-session-id') ?? ''
    await (await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, { 'mcp-session-id': id })).text()
    return id
  }
  return Promise.all(Array.from({ length: addresses }, (_, index) => open(index)))
}

/** Returns different requests of a flood; the addresses take turns. */
export function floodRequests(
  kind: FloodKind,
  {
    target,
    firstAddress,
    addresses,
    sessions,
    count,
  }: FloodSenders & { target: FloodTarget; sessions: readonly string[]; count: number },
): LoadRequest[] {
  return Array.from({ length: count }, (_, index) => {
    const sender = index % addresses
    const request = requestOf(kind, { target, index, session: sessions[sender] ?? '' })
    return { ...request, headers: { ...request.headers, 'cf-connecting-ip': addressOf(firstAddress + sender) } }
  })
}

function requestOf(
  kind: FloodKind,
  { target, index, session }: { target: FloodTarget; index: number; session: string },
): LoadRequest {
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): LoadRequest => ({
    method: 'POST',
    path,
    body: JSON.stringify(body),
    headers,
  })
  const agent = `/agents/${target.agentId}`
  const signed = { deadline: '4102444800', signature: SIGNATURE }
  switch (kind) {
    case 'reads':
      return { method: 'GET', path: `${agent}/positions` }
    case 'reads that wait for a block':
      return {
        method: 'GET',
        path: '/vaults',
        headers: { 'min-block': `${target.block + BLOCKS_AHEAD + (index % BLOCKS_AHEAD)}` },
      }
    case 'quotes':
      return { method: 'GET', path: `${agent}/trade-intents/quote?symbol=NVDA&usdcAmount=${(index % 1000) + 1}` }
    case 'invalid submissions':
      return post(`${agent}/trade-intents`, {
        ...signed,
        nonce: `${index}`,
        symbol: 'NVDA',
        usdcAmount: '1',
        exits: [{ triggerBps: -800, exitBps: 10_000 }],
      })
    case 'registrations':
      return post('/agents/register', {
        ...signed,
        vault: target.vault,
        name: `flood ${index}`,
        metadataURI: 'https://agents.example/flood.json',
        signer: `0x${(index + 1).toString(16).padStart(40, '0')}`,
      })
    case 'refused payments': {
      const { body, payment } = target.unpaid[index % target.unpaid.length] as UnpaidRegistration
      return post('/agents/register', body, { 'payment-signature': payment })
    }
    case 'price refreshes':
      return post('/prices/refresh', {})
    case 'event streams':
      return { method: 'GET', path: `${agent}/events`, staysOpen: true }
    case 'MCP initialize':
      return post('/mcp', initialize(index), MCP_HEADERS)
    case 'MCP batches':
      return post(
        '/mcp',
        Array.from({ length: BATCH }, (_, message) => ({
          jsonrpc: '2.0',
          id: index * BATCH + message + 2, // an id in flight must not be used again
          method: 'tools/call',
          params: { name: 'svc_get_agent_positions', arguments: { agentId: target.agentId } },
        })),
        { ...MCP_HEADERS, 'mcp-session-id': session },
      )
    case 'MCP listen streams':
      return {
        ...post('/mcp', listen(index, target.agentId), {
          ...MCP_HEADERS,
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'subscriptions/listen',
        }),
        staysOpen: true,
      }
    case 'oversized bodies':
      return {
        method: 'POST',
        path: index % 2 === 0 ? `${agent}/trade-intents` : '/mcp',
        bodyBytes: LARGE_BYTES,
        headers: { ...MCP_HEADERS, 'content-type': 'application/json' },
      }
  }
}
