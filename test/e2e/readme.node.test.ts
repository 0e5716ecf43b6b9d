import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'

// Runs the README's commands and programs as they are.

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const deployment = inject('deployment')
let scratch: string
let env: Record<string, string>

/** Returns the code below a heading. */
const codeBelow = (heading: string, language = 'sh') => {
  const section = readme.split(`${heading}\n`)[1]?.split(/^#/m)[0] ?? ''
  const [, code = ''] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(section) ?? []
  expect(code, heading).not.toBe('')
  return code
}
const execute = promisify(execFile)
const shell = async (script: string) => {
  const { stdout } = await execute('bash', ['-euo', 'pipefail', '-c', script], { cwd: root, env })
  return stdout
}

beforeAll(async () => {
  scratch = mkdtempSync(join(root, '.devnet-readme-'))
  env = {
    ...(process.env as Record<string, string>),
    PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
    ATS_HOME: scratch,
  }
  // The README finds the payer in .devnet/deployment.json, which this chain does not write.
  const script = codeBelow('## A first trade')
    .replace('http://127.0.0.1:8787', inject('serviceUrl'))
    .replace(
      'require("./.devnet/deployment.json").accounts.payer.privateKey',
      `"${deployment.accounts.payer.privateKey}"`,
    )
  const variables = ['ATS_URL', 'ATS_KEY', 'ATS_PASSWORD', 'ATS_AGENT', 'AGENT_KEY']
  const stdout = await shell(`${script}\n${variables.map(name => `echo "${name}=$${name}"`).join('\n')}`)
  for (const name of variables) env[name] = new RegExp(`^${name}=(.+)$`, 'm').exec(stdout)?.[1] ?? ''
})
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true })
})

it('opens a first position with four commands', async () => {
  const { positions } = JSON.parse(await shell('npx ats positions -o json'))
  expect(positions).toMatchObject([{ symbol: 'NVDA' }])
})

it('starts an MCP server whose tools trade', async () => {
  const command = codeBelow('### Your model has MCP tools')
  const transport = new StdioClientTransport({ command: 'bash', args: ['-c', `exec ${command}`], cwd: root, env })
  const client = new Client({ name: 'readme', version: '1' })
  await client.connect(transport)
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['trade', 'close', 'stop']))
  await client.close()
})

it('trades in TypeScript', async () => {
  const file = join(scratch, 'trade.mjs')
  writeFileSync(file, codeBelow('### You write TypeScript', 'ts'))
  // Resolves the client to its source, because this repository does not build it for its own tests.
  const args = ['--conditions=@agent-trading-service/source', file]
  const { stdout } = await execute(process.execPath, args, { cwd: root, env })
  expect(stdout).toMatch(/transactionHash: '0x[0-9a-f]{64}'/)
})

it('limits and stops the agent as its owner', async () => {
  const stdout = await shell(codeBelow('### You own an agent, or deposit into a vault'))
  expect(stdout).toMatch(/^mandate\.mode +reduceOnly$/m)
  expect(stdout).toContain('"accountRiskBounds"')
})

it('names commands of operators that exist', async () => {
  const stdout = await shell(codeBelow('### You operate a deployment'))
  expect(stdout).toContain('Usage: ats doctor')
  expect(stdout).toContain('Usage: ats admin')
})

it('has at most 700 words', () => {
  expect(readme.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(700)
})
