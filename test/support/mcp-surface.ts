import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { errorCodes } from '../../src/errors/catalogue.ts'
import type { Body } from './body.ts'
import type { ToolResult } from './mcp-client.ts'

type Fetch = (request: Request) => Promise<Response>

const statuses = new Map<string, number>(errorCodes.map(({ code, status }) => [code, status]))
const clients = new WeakMap<Fetch, Promise<Client>>()

async function connect(fetch: Fetch): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  const clientFetch = (input: RequestInfo | URL, init?: RequestInit) => fetch(new Request(input as string, init))
  await client.connect(
    new StreamableHTTPClientTransport(new URL('http://localhost/mcp?toolsets=all'), {
      fetch: clientFetch as typeof globalThis.fetch,
    }),
  )
  await client.listTools() // from here on, the client validates every result against the listed output schema
  return client
}

/** Calls a tool over MCP. An error gets the HTTP status of its code. */
export async function callTool(name: string, input: Record<string, unknown>, fetch: Fetch) {
  const connected = clients.get(fetch) ?? connect(fetch)
  clients.set(fetch, connected)
  const client = await connected
  const { content, structuredContent, isError } = (await client.callTool({ name, arguments: input })) as ToolResult
  const body: Body = JSON.parse(content[0]?.text ?? '')
  if (!isError) return { ok: true as const, body: structuredContent }
  return { ok: false as const, status: statuses.get(body.code) ?? 500, body }
}
