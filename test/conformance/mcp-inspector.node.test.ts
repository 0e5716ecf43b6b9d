import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { type CallTool, wholeTrade } from '../support/mcp-client.ts'
import { pay } from '../support/mcp-payment.ts'

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')
const { bin } = createRequire(import.meta.url)(manifest)
const inspector = join(dirname(manifest), bin['mcp-inspector'])

describe.each(['legacy', 'modern'] as const)("the Inspector's command line, %s era", era => {
  const home = mkdtempSync(join(tmpdir(), 'mcp-inspector-'))
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  function inspect(args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const target = ['--cli', `${inject('serviceUrl')}/mcp`, '--transport', 'http', '--protocol-era', era]
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
    const args = ['--method', 'tools/call', '--tool-name', name]
    if (pairs.length > 0) args.push('--tool-arg', ...pairs)
    if (metadata.length > 0) args.push('--tool-metadata', ...metadata)
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
