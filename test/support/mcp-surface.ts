import { exports } from 'cloudflare:workers'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { errorCodes } from '../../src/errors/catalogue.ts'
import type { Body } from './body.ts'
import type { ToolResult } from './mcp-client.ts'

const fetchWorker = (async (input, init) => exports.default.fetch(new Request(input as string, init))) as typeof fetch
const statuses = new Map(errorCodes.map(({ code, status }) => [code, status]))

let connected: Promise<Client> | undefined
async function connect(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: fetchWorker }))
  await client.listTools() // from here on the client holds every answer against the listed output schema
  return client
}

/** Calls a tool as an operation is called over HTTP; a refusal has the status of its code. */
export async function callTool(name: string, input: Record<string, unknown>) {
  connected ??= connect()
  const client = await connected
  const { content, structuredContent, isError } = (await client.callTool({ name, arguments: input })) as ToolResult
  const body: Body = JSON.parse(content[0]?.text ?? '')
  if (!isError) return { ok: true as const, body: structuredContent }
  return { ok: false as const, status: statuses.get(body.code) ?? 500, body }
}
