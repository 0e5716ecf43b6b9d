import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Ats, createAts } from '../support/ats.ts'
import { registeredServer } from '../support/mcp-registry.ts'

// Starts the MCP configurations that `ats mcp config` prints, as they are, with the two keys that the documented walk
// creates.

const root = join(import.meta.dirname, '../..')
const docs = readFileSync(join(root, 'docs/cli.md'), 'utf8')
const json = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))
/** Each trades another symbol, because an agent has one position of each. */
const HOSTS = [
  ['claude-desktop', 'NVDA'],
  ['claude-code', 'AAPL'],
  ['cursor', 'MSFT'],
  ['vscode', 'TSLA'],
] as const

let ats: Ats
let agentId: string
beforeAll(async () => {
  ats = createAts({ ATS_URL: inject('serviceUrl') })
  await ats.importKey('trader', generatePrivateKey())
  await ats.importKey('payer', inject('deployment').accounts.payer.privateKey)
  const registration = ['register', '--name', 'configured', '--key', 'trader', '--payer', 'payer']
  agentId = (await ats.json(registration)).agentId
  writeFileSync(join(ats.home, 'password'), 'correct horse\n', { mode: 0o600 })
})
afterAll(() => ats.remove())

type Configuration = { command: string; args: string[]; env: Record<string, string> }

async function configurationFor(host: string): Promise<Configuration> {
  const { stdout, stderr } = await ats.run(['mcp', 'config', host, '--allow', 'trade', '--agent', agentId])
  expect(stderr).toContain('Save this as')
  const { mcpServers, servers } = JSON.parse(stdout)
  return (mcpServers ?? servers).ats
}

describe.each(HOSTS)('the configuration for %s', (host, symbol) => {
  it('starts a server that trades with the key of its agent', async () => {
    const { command, args, env } = await configurationFor(host)
    expect(env).toMatchObject({ ATS_URL: inject('serviceUrl'), ATS_AGENT: agentId })
    const transport = new StdioClientTransport({
      command,
      args,
      // npx finds the package of this repository from its root.
      cwd: root,
      env: {
        ...env,
        HOME: ats.home,
        PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
        npm_config_offline: 'true',
      },
      stderr: 'ignore',
    })
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { sign: true } }))
    await client.connect(transport)
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(['whoami', 'trade', 'close', 'set_ladder', 'register', 'stop', 'svc_list_vaults']),
    )
    const { isError, content } = await client.callTool({
      name: 'trade',
      arguments: { symbol, usdcAmount: '5' },
    })
    expect([isError ?? false, JSON.stringify(content)]).toEqual([false, expect.stringContaining('transactionHash')])
    await client.close()
  })

  it('is what docs/cli.md names', () => {
    expect(docs).toContain(`ats mcp config ${host}`)
  })
})

describe('server.json', () => {
  const server = json('packages/cli/server.json')
  const [described] = server.packages

  it('server.json follows the rules of the MCP registry', () => {
    expect(() => registeredServer.parse(server)).not.toThrow()
    for (const wrong of [
      { ...server, description: 'x'.repeat(101) },
      { ...server, name: 'ats' },
      { ...server, version: '^0.1.0' },
      { ...server, packages: [{ ...described, version: 'latest' }] },
      { ...server, packages: [{ ...described, packageArguments: [{ type: 'positional' }] }] },
      { ...server, packages: [{ ...described, runtime_hint: 'npx' }] },
    ])
      expect(registeredServer.safeParse(wrong).success).toBe(false)
  })

  it('server.json describes the package, and what `ats mcp` takes', async () => {
    const { name, version, mcpName } = json('packages/cli/package.json')
    expect(server).toMatchObject({ name: mcpName, version })
    expect(described).toMatchObject({ identifier: name, version })
    const { stdout } = await ats.run(['mcp', '--help'])
    const [{ value }, ...named] = described.packageArguments
    expect(value).toBe('mcp')
    for (const { name } of named) expect(stdout).toMatch(new RegExp(`^  (-\\w, )?${name}\\b`, 'm'))
    const documented = `${stdout}${(await ats.run(['--help'])).stdout}`
    for (const { name } of described.environmentVariables) expect(documented).toContain(name)
  })
})
