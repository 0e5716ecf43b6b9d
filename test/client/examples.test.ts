import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import { clientOf, deployment, newAgent, runPython, serviceUrl } from './support.ts'

// Runs the programs of examples/ as they are.

const root = join(import.meta.dirname, '../..')
const key = generatePrivateKey()
const account = privateKeyToAccount(key)
const node = process.execPath
let agentId: string
let env: NodeJS.ProcessEnv

beforeAll(async () => {
  agentId = await newAgent(account)
  env = { ...process.env, BASE: serviceUrl, RPC_URL: deployment.rpcUrl, AGENT_KEY: key, ATS_AGENT: agentId }
})

/** Returns the arguments of `node` that a program's first lines name. */
function documentedCommand(program: string): string[] {
  const [, command = ''] = / node (.*)$/m.exec(readFileSync(join(root, program), 'utf8')) ?? []
  expect(command).toContain(program)
  return command.split(' ')
}

const run = async (command: string, args: string[], more: NodeJS.ProcessEnv = {}) => {
  const { stdout } = await promisify(execFile)(command, args, { cwd: root, env: { ...env, ...more } })
  return stdout
}

it('the TypeScript agent registers, opens and closes', async () => {
  const stdout = await run(node, documentedCommand('examples/agent.ts'), {
    AGENT_KEY: generatePrivateKey(),
    PAYER_KEY: deployment.accounts.payer.privateKey,
    ROUNDS: '1',
  })
  expect(stdout).toMatch(/^agent \d+ of 0x[0-9a-fA-F]{40}$/m)
  expect(stdout.match(/^opened (NVDA|AAPL) at [\d.]+ USD: position \d+$/gm)).toHaveLength(2)
  expect(stdout.match(/^closed position \d+ in 0x[0-9a-f]{64}$/gm)).toHaveLength(2)
  const lines = readFileSync(join(root, 'examples/agent.ts'), 'utf8').trim().split('\n')
  expect(lines.length).toBeLessThanOrEqual(70)
})

it('the Python agent opens and closes on the plain HTTP API', async () => {
  const stdout = await run(node, [runPython, 'examples/agent.py'])
  expect(stdout).toMatch(/^opened position \d+$/m)
  expect(stdout).toMatch(/^closed position \d+ in 0x[0-9a-f]{64}$/m)
})

it('curl opens and closes', async () => {
  const stdout = await run('bash', ['examples/curl.sh'], {
    SIGN: `${node} ${join(import.meta.dirname, 'sign-typed-data.ts')}`,
  })
  expect(stdout).toMatch(/^opened position \d+$/m)
  expect(stdout).toMatch(/^closed position \d+ in 0x[0-9a-f]{64}$/m)
})

it('the loop of a scripted model reads over MCP and trades through the client', async () => {
  const stdout = await run(node, documentedCommand('examples/mcp-loop.ts'))
  expect(stdout).toMatch(/^open .* -> .*"positionId":"\d+"/m)
  expect(stdout).toMatch(/^svc_get_agent_position .*"symbol":"NVDA"/m)
  expect(stdout).toMatch(/^close .* -> .*"transactionHash":"0x[0-9a-f]{64}"/m)
  expect((await clientOf(account).listPositions({ agentId })).positions).toEqual([])
})
