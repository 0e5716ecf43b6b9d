import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { publicChain } from '@agent-trading-service/protocol/known-chain'
import { type Address, createTestClient, domainSeparator, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import { operatorsOf } from '../test/support/deploy-config.ts'
import { type Devnet, startDevnet } from './index.ts'

// An operator on a test network that has neither stock tokens nor Uniswap seeds it, deploys the suite, and verifies it.

const CHAIN_ID = 46_630
const deployer = generatePrivateKey()
const funded = privateKeyToAccount(generatePrivateKey()).address
const folder = mkdtempSync(join(tmpdir(), 'testnet-seed-'))
const seeded = join(folder, 'deploy.json')

let devnet: Devnet

beforeAll(async () => {
  devnet = await startDevnet({ chainId: CHAIN_ID, blockMs: 50, priceSource: 'reports' })
  // The network has Chainlink's verifier, at an address of its own.
  const { VerifierProxy = expect.unreachable() } = devnet.deployment.contracts
  const bytecode = await devnet.client.getCode({ address: VerifierProxy })
  const address = publicChain(CHAIN_ID)?.reportVerifier ?? expect.unreachable()
  const node = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) })
  await node.setCode({ address, bytecode: bytecode ?? expect.unreachable() })
  await devnet.fund(privateKeyToAccount(deployer).address, 0n)
})
afterAll(async () => {
  await devnet?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const run = (script: string, ...args: string[]) =>
  spawn(process.execPath, [join(import.meta.dirname, '../scripts', script), ...args], {
    env: { ...process.env, RPC_URL: devnet.rpcUrl, DEPLOYER_PRIVATE_KEY: deployer },
  })
async function finish(child: ReturnType<typeof run>): Promise<{ code: number; output: string }> {
  const [[code], ...outputs] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
  return { code, output: outputs.join('') }
}
const seed = (...args: string[]) => run('seed-testnet.ts', '--out', seeded, ...args)

test.each([
  ['no chain', [], 'Name a test network: --chain takes one of arbitrum-sepolia, robinhood-testnet.'],
  ['a chain with money', ['--chain', 'robinhood'], 'robinhood is no test network: --chain takes one of'],
  ['another chain than the node serves', ['--chain', 'arbitrum-sepolia'], 'The node serves chain 46630; arbitrum'],
])('nothing is seeded on %s', async (_, args, problem) => {
  expect(await finish(seed(...args))).toEqual({ code: 1, output: expect.stringContaining(problem) })
})

test('a seeded test network has all that a deployment names, after an interruption too', async () => {
  const interrupted = seed('--chain', 'robinhood-testnet', '--fund', funded)
  for await (const line of interrupted.stdout) if (String(line).includes('deploy QuoterV2')) interrupted.kill('SIGKILL')
  const { code, output } = await finish(seed('--chain', 'robinhood-testnet', '--fund', funded))
  expect(output).toContain('Continuing after')
  expect(output).toContain("npx ats admin call 'PriceOracle.setPrices([")
  expect(code).toBe(0)
  const config = JSON.parse(readFileSync(seeded, 'utf8'))
  const dollar = { address: config.usdc as Address, abi: usdcTokenAbi } as const
  const { domain } = publicChain(CHAIN_ID)?.dollar ?? expect.unreachable()
  expect(await devnet.client.readContract({ ...dollar, functionName: 'DOMAIN_SEPARATOR' })).toBe(
    domainSeparator({ domain: { ...domain, chainId: CHAIN_ID, verifyingContract: config.usdc } }),
  )
  expect(await devnet.client.readContract({ ...dollar, functionName: 'balanceOf', args: [funded] })).toBe(
    1_000_000_000_000n,
  )
})

test('the suite deploys on it once the accounts are filled in', async () => {
  const { roles } = JSON.parse(readFileSync(join(import.meta.dirname, '../scripts/deploy.example.json'), 'utf8'))
  const { deployer: _, ...holders } = operatorsOf(devnet)
  const config = JSON.parse(readFileSync(seeded, 'utf8'))
  expect(config.roles).toEqual(roles)
  const path = join(folder, 'filled.json')
  const accounts = Object.values(holders).map(({ address }) => address)
  let next = 0
  const filled = JSON.stringify(config.roles).replace(/0x0{30,}[0-9a-f]+/g, () => accounts[next++] ?? funded)
  writeFileSync(path, JSON.stringify({ ...config, roles: JSON.parse(filled) }))
  const out = join(folder, 'deployment.json')
  const { code, output } = await finish(run('deploy.ts', '--config', path, '--out', out))
  expect(output).toContain('Verified: ')
  expect(code).toBe(0)
})
