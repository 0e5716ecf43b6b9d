import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Hex } from 'viem'

// biome-ignore lint/suspicious/noExplicitAny: responses of an API, which the steps check as they read them
export type Json = any
export type Service = { url: string; get(path: string): Promise<Json>; post(path: string, body: Json): Promise<Json> }

/** Returns a client of the HTTP API that throws on every refusal. */
export function serviceAt(url: string, send: (request: Request) => Promise<Response> = fetch): Service {
  const request = async (path: string, init?: RequestInit) => {
    const response = await send(new Request(url + path, init))
    const body: Json = await response.json()
    if (!response.ok)
      throw new Error(`${init?.method ?? 'GET'} ${path} returned ${response.status}: ${JSON.stringify(body)}`)
    return body
  }
  return {
    url,
    get: path => request(path),
    post: (path, body) =>
      request(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
  }
}

/** Calls operations by their tool name, over HTTP or MCP. */
export type Surface = { call(tool: string, input: Json): Promise<Json> }

/** Maps tools to routes: quotes are GET and submissions POST requests below the agent. */
export const httpSurface = (service: Service): Surface => ({
  call(tool, { agentId, ...input }) {
    const [, verb, kind = ''] = /^svc_(get|submit)_(.+?)(?:_quote)?$/.exec(tool) ?? []
    const path = `/agents/${agentId}/${kind.replaceAll('_', '-')}s`
    return verb === 'submit' ? service.post(path, input) : service.get(`${path}/quote?${new URLSearchParams(input)}`)
  },
})

export type McpSurface = Surface & { toolCount: number; close(): Promise<void> }

/** Connects to the service's MCP server. */
export async function mcpSurface(url: string): Promise<McpSurface> {
  const client = new Client({ name: 'demo', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url)))
  return {
    toolCount: (await client.listTools()).tools.length,
    close: () => client.close(),
    async call(tool, input) {
      const detail = tool.endsWith('_quote') ? { detail: 'full' } : {}
      const { isError, structuredContent, content } = await client.callTool({
        name: tool,
        arguments: { ...detail, ...input },
      })
      if (isError) throw new Error(`${tool} returned ${JSON.stringify(content)}`)
      return structuredContent
    },
  }
}

/** Asserts that a transaction was mined and succeeded, and returns where. */
export async function confirm(service: Service, hash: Hex): Promise<string> {
  const { status, blockNumber } = await service.get(`/transactions/${hash}`)
  assert.equal(status, 'success', `transaction ${hash} is ${status}`)
  return `in block ${blockNumber}, transaction ${hash.slice(0, 10)}…`
}

const POLL_TIMEOUT_MS = 120_000

/** Polls until the value is as expected; throws after POLL_TIMEOUT_MS. */
export async function pollUntil(read: () => Promise<Json>, isExpected: (value: Json) => boolean): Promise<Json> {
  const deadline = Date.now() + POLL_TIMEOUT_MS
  for (;;) {
    const value = await read()
    if (isExpected(value)) return value
    assert.ok(Date.now() < deadline, `still ${JSON.stringify(value)} after ${POLL_TIMEOUT_MS / 1000} s`)
    await sleep(200)
  }
}
