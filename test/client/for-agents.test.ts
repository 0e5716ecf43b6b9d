import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, expect, it } from 'vitest'
import { deployment, hasPython, newAgent, serviceUrl } from './support.ts'

// Runs the programs of docs/for-agents.md as they are. Packages are not installed: the repository has them, and a stand-in
// for Python's eth-account signs through a helper process.

const root = join(import.meta.dirname, '../..')
const guide = readFileSync(join(root, 'docs/for-agents.md'), 'utf8')
const scratch = mkdtempSync(join(root, '.devnet-guide-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const blockAfter = (heading: string, language: string) => {
  const section = guide.split(`## ${heading}\n`)[1] ?? ''
  return new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(section)?.[1] ?? ''
}
const run = async (command: string, args: string[], env: NodeJS.ProcessEnv) => {
  const base = { ...process.env, BASE: serviceUrl, RPC_URL: deployment.rpcUrl }
  const { stdout } = await promisify(execFile)(command, args, { cwd: root, env: { ...base, ...env } })
  return stdout
}

it('a TypeScript developer installs what the client declares, registers and trades', async () => {
  const { name, peerDependencies } = JSON.parse(readFileSync(join(root, 'packages/client/package.json'), 'utf8'))
  const installed = blockAfter('A TypeScript developer', 'sh').trim().split(' ').slice(2)
  expect(installed.sort()).toEqual([name, ...Object.keys(peerDependencies)].sort())
  const file = join(scratch, 'first-trade.mjs')
  writeFileSync(file, blockAfter('A TypeScript developer', 'ts'))
  const stdout = await run(process.execPath, ['--conditions=@agent-trading-service/source', file], {
    AGENT_KEY: generatePrivateKey(),
    PAYER_KEY: deployment.accounts.payer.privateKey,
  })
  expect(stdout).toMatch(/^agent \d+ opened position (\d+)\nclosed position \1\n$/)
})

it.skipIf(!hasPython)('a Python developer trades with an agent that is registered', async () => {
  const key = generatePrivateKey()
  const file = join(scratch, 'first_trade.py')
  writeFileSync(file, blockAfter('A Python developer', 'python'))
  const stdout = await run('python3', [file], {
    AGENT_KEY: key,
    AGENT_ID: await newAgent(privateKeyToAccount(key)),
    PYTHONPATH: join(import.meta.dirname, 'python'),
    SIGN_HELPER: JSON.stringify([process.execPath, join(import.meta.dirname, 'sign-typed-data.ts')]),
  })
  expect(stdout).toMatch(/^opened position (\d+)\nclosed position \1\n$/)
})
