import { expect, it } from 'vitest'
import { appWith, type Fetch, request } from '../support/surfaces.ts'

// HTTP only: the operations of a rehearsal are in no list that `call` knows. MCP is called with raw messages.

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const paths = ['/rehearsal/advance', '/rehearsal/exits']

const statusOf = async (path: string, app: Fetch) =>
  (await request(path, { method: 'POST', headers, body: '{}' }, app)).status

/** Returns the names of all tools that a service lists. */
async function toolsOf(app: Fetch): Promise<string[]> {
  const version = '2026-07-28'
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const response = await request(
    '/mcp?toolsets=all',
    {
      method: 'POST',
      headers: { ...headers, 'mcp-protocol-version': version, 'mcp-method': 'tools/list' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } }),
    },
    app,
  )
  const { result }: { result: { tools: { name: string }[] } } = await response.json()
  return result.tools.map(({ name }) => name)
}

it('a deployment has nothing that moves its market', async () => {
  const app = appWith({})
  expect(await Promise.all(paths.map(path => statusOf(path, app)))).toEqual([404, 404])
  const tools = await toolsOf(app)
  expect(tools).toContain('svc_get_prices')
  expect(tools).not.toContain('svc_advance_market')
})

it('a rehearsal serves what moves its market, over HTTP and MCP', async () => {
  const app = appWith({ REHEARSAL_URL: 'http://127.0.0.1:9' })
  expect(await statusOf('/rehearsal/exits', app)).toBe(200)
  expect(await toolsOf(app)).toContain('svc_advance_market')
})
