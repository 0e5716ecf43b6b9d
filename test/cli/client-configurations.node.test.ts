import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Ats, createAts } from '../support/ats.ts'
import { registeredServer } from '../support/mcp-registry.ts'

// Starts the MCP configurations of docs/cli.md as they are written; only the URL and the path of the password are replaced.

const root = join(import.meta.dirname, '../..')
const docs = readFileSync(join(root, 'docs/cli.md'), 'utf8')
const json = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))

type Configuration = { command: string; args: string[]; env: Record<string, string> }

function blockOf(client: string): string {
  const [, block] = new RegExp(`<!-- configuration: ${client} -->\n\`\`\`\\w+\n([^]*?)\`\`\``).exec(docs) ?? []
  if (block === undefined) throw new Error(`docs/cli.md has no configuration for ${client}.`)
  return block
}

/** Reads `claude mcp add <name> --env NAME=VALUE … -- <command> <arguments>`. */
function parseClaudeCode(line: string): Configuration {
  const [before = '', after = ''] = line.trim().split(' -- ')
  expect(before).toMatch(/^claude mcp add ats( --env [A-Z_]+=\S+)+$/)
  const env = Object.fromEntries([...before.matchAll(/--env ([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name, value]))
  const [command = '', ...args] = after.split(' ')
  return { command, args, env }
}

const configurations: [client: string, Configuration][] = [
  ['claude-desktop', JSON.parse(blockOf('claude-desktop')).mcpServers.ats],
  ['claude-code', parseClaudeCode(blockOf('claude-code'))],
  ['cursor', JSON.parse(blockOf('cursor')).mcpServers.ats],
  ['vscode', JSON.parse(blockOf('vscode')).servers.ats],
]

let ats: Ats
beforeAll(async () => {
  ats = createAts()
  await ats.importKey('trader', generatePrivateKey())
  writeFileSync(join(ats.home, 'password'), 'correct horse\n', { mode: 0o600 })
})
afterAll(() => ats.remove())

describe.each(configurations)('the configuration for %s', (_, { command, args, env }) => {
  it('starts the server with tools that sign', async () => {
    const replaced = { ...env, ATS_URL: inject('serviceUrl'), ATS_PASSWORD_FILE: join(ats.home, 'password') }
    expect(Object.keys(replaced)).toEqual(Object.keys(env))
    const transport = new StdioClientTransport({
      command,
      args,
      // npx finds the package of this repository from its root.
      cwd: root,
      env: {
        ...replaced,
        ATS_HOME: ats.home,
        HOME: ats.home,
        PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
        npm_config_offline: 'true',
      },
      stderr: 'ignore',
    })
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
    await client.connect(transport)
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(
      expect.arrayContaining(['trade', 'close', 'set_ladder', 'register', 'stop', 'svc_list_vaults']),
    )
    await client.close()
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
