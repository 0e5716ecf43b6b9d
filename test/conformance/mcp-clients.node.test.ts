import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { type CallTool, type ToolResult, wholeTrade } from '../support/mcp-client.ts'
import { pay } from '../support/mcp-payment.ts'

const url = new URL('/mcp', inject('serviceUrl'))

type SdkClient = {
  callTool(call: { name: string; arguments: Record<string, unknown>; _meta?: Record<string, string> }): Promise<unknown>
}
/** Calls tools with the client of either SDK version. */
const callBy =
  (client: SdkClient): CallTool =>
  (name, input, meta) =>
    client.callTool({ name, arguments: input, ...(meta && { _meta: meta }) }) as Promise<ToolResult>

describe.each([
  ['2025-11-25', 'legacy'],
  ['2026-07-28', { pin: '2026-07-28' }],
  ['2026-07-28', 'auto'],
] as const)('the official client, %s by %o', (version, mode) => {
  it('trades through tools alone', async () => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(url))
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    await client.listTools()
    await wholeTrade(callBy(client), pay)
    await client.close()
  })
})

describe("the official SDK's first version", () => {
  it("the official SDK's first version trades through tools alone and ends its session", async () => {
    const client = new ClientV1({ name: 'test', version: '1' })
    const transport = new TransportV1(url)
    await client.connect(transport as Transport)
    const { sessionId = '' } = transport
    expect(sessionId).toMatch(/^[0-9a-f]{64}[!-~]+$/)
    await client.listTools()
    await wholeTrade(callBy(client), pay)
    await transport.terminateSession()
    const late = await fetch(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': sessionId } })
    expect(late.status).toBe(404)
    await client.close()
  })
})

describe('mcp-remote, which hosts without HTTP start', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-remote-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('mcp-remote trades through tools alone', async () => {
    const manifest = createRequire(import.meta.url).resolve('mcp-remote/package.json')
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [join(dirname(manifest), 'dist/proxy.js'), url.href, '--allow-http'],
      env: { PATH: process.env.PATH ?? '', HOME: folder, MCP_REMOTE_CONFIG_DIR: folder },
      stderr: 'ignore',
    })
    await client.connect(transport)
    expect((await client.listTools()).tools.length).toBeGreaterThan(20)
    await wholeTrade(callBy(client), pay)
    await client.close()
  })
})
