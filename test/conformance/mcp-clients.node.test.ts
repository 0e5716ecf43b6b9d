import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { payerOf } from '../../client/payer.ts'
import { type CallTool, type Pay, type ToolResult, wholeTrade } from '../support/mcp-client.ts'

const deployment = inject('deployment')
const { sign } = payerOf(privateKeyToAccount(deployment.accounts.payer.privateKey), {
  network: `eip155:${deployment.chainId}`,
  asset: deployment.contracts.USDC,
})
/** Pays the registration fee with the official x402 client. */
const pay: Pay = async required => ({ 'x402/payment': (await sign(required))['PAYMENT-SIGNATURE'] ?? '' })

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
  it('trades through tools alone and ends its session', async () => {
    const client = new ClientV1({ name: 'test', version: '1' })
    const transport = new TransportV1(url)
    await client.connect(transport as Transport)
    const { sessionId = '' } = transport
    expect(sessionId).toMatch(/^[0-9a-f]{64}$/)
    await client.listTools()
    await wholeTrade(callBy(client), pay)
    await transport.terminateSession()
    const late = await fetch(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': sessionId } })
    expect(late.status).toBe(404)
    await client.close()
  })
})

describe.each(['legacy', 'modern'] as const)("the Inspector's command line, %s era", era => {
  const home = mkdtempSync(join(tmpdir(), 'mcp-inspector-'))
  afterAll(() => rmSync(home, { recursive: true, force: true }))
  const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')
  const { bin } = createRequire(import.meta.url)(manifest)
  const inspector = join(dirname(manifest), bin['mcp-inspector'])

  function inspect(args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const target = ['--cli', `${url}`, '--transport', 'http', '--protocol-era', era]
    const child = spawn(process.execPath, [inspector, ...target, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, MCP_CATALOG_PATH: join(home, 'catalog.json'), NO_COLOR: '1' },
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', code => resolve({ code, stdout, stderr }))
    })
  }

  const callTool: CallTool = async (name, input, meta = {}) => {
    const pairs = Object.entries(input).map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    const metadata = Object.entries(meta).map(([key, value]) => `${key}=${value}`)
    const args = [
      ...['--method', 'tools/call', '--tool-name', name],
      ...(pairs.length > 0 ? ['--tool-arg', ...pairs] : []),
      ...(metadata.length > 0 ? ['--tool-metadata', ...metadata] : []),
    ]
    const { stdout, stderr } = await inspect(args)
    if (stdout === '') throw new Error(stderr)
    return JSON.parse(stdout)
  }

  it('accepts every schema as portable', async () => {
    const { code, stdout } = await inspect(['--method', 'tools/list', '--strict'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout).tools.length).toBeGreaterThan(20)
  })

  it('trades through tools alone', () => wholeTrade(callTool, pay))
})
