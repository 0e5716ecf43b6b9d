import { Client, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client'
import { errorCodes } from '../../src/errors/catalogue.ts'
import type { Body } from './body.ts'
import type { ToolResult } from './mcp-client.ts'

type Fetch = (request: Request) => Promise<Response>

const statuses = new Map<string, number>(errorCodes.map(({ code, status }) => [code, status]))
const clients = new WeakMap<Fetch, Promise<Client>>()
/** The tools by name, listed once, because every configuration of the service lists the same. */
let listed: Promise<Map<string, Tool>> | undefined

async function listTools(client: Client): Promise<Map<string, Tool>> {
  const { tools } = await client.listTools()
  return new Map(tools.map(tool => [tool.name, tool]))
}

async function connect(fetch: Fetch): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  const clientFetch = (input: RequestInfo | URL, init?: RequestInit) => fetch(new Request(input as string, init))
  await client.connect(
    new StreamableHTTPClientTransport(new URL('http://localhost/mcp?toolsets=all'), {
      fetch: clientFetch as typeof globalThis.fetch,
    }),
  )
  return client
}

/**
 * Calls a tool over MCP. The client validates the result against the output schema. An error gets the status of its
 * code.
 */
export async function callTool(name: string, input: Record<string, unknown>, fetch: Fetch) {
  const connected = clients.get(fetch) ?? connect(fetch)
  clients.set(fetch, connected)
  const client = await connected
  listed ??= listTools(client).catch(error => {
    listed = undefined
    throw error
  })
  const toolDefinition = (await listed).get(name)
  const result = await client.callTool({ name, arguments: input }, toolDefinition && { toolDefinition })
  const { content, structuredContent, isError } = result as ToolResult
  const body: Body = JSON.parse(content[0]?.text ?? '')
  if (!isError) return { ok: true as const, body: structuredContent }
  return { ok: false as const, status: statuses.get(body.code) ?? 500, body }
}
