import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import type { Account } from './accounts.ts'
import { type Devnet, startDevnet } from './index.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'deploy-test-'))
const configPath = join(folder, 'config.json')
const out = join(folder, 'deployment.json')

let devnet: Devnet
let deployer: Account
let admin: Account
beforeAll(async () => {
  devnet = await startDevnet()
  const [first, second] = devnet.deployment.accounts.agents.slice(-2)
  if (!first || !second) throw new Error('the devnet has too few accounts')
  deployer = first
  admin = second
  const chain = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) })
  const hurry = setInterval(() => chain.mine({ blocks: 1 }).catch(() => {}), 25)
  return () => clearInterval(hurry)
}, 30_000)
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await devnet?.stop()
})

test('nothing is sent when what the suite stands on is not there', async () => {
  writeConfig({ fee: 10000 })
  const refused = await deploy(['--config', configPath, '--out', out])
  expect(refused).toMatchObject({ code: 1, text: expect.stringContaining('TSLA: Uniswap has no pool of USDC') })
  writeConfig({ chainId: 1 })
  const wrongChain = await deploy(['--config', configPath, '--out', out])
  expect(wrongChain).toMatchObject({ code: 1, text: expect.stringContaining('The node serves chain 31337') })
  writeConfig({ usdc: '0x1' })
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining('usdc'),
  })
  expect(await devnet.client.getTransactionCount({ address: deployer.address })).toBe(0)
})

test('an interrupted deployment goes on where it ended and is verified', async () => {
  writeConfig()
  const interrupted = run(['--config', configPath, '--out', out])
  for await (const text of interrupted.stdout)
    if (String(text).includes('deploy AgentRegistry')) interrupted.kill('SIGKILL')

  const { code, text } = await deploy(['--config', configPath, '--out', out])
  expect({ code, text }).toMatchObject({
    code: 0,
    text: expect.stringMatching(/Going on after [5-9] steps[\s\S]*Verified: \d+ wired values/),
  })
  expect(text).not.toContain('deploy PriceOracle')
  expect(existsSync(`${out}.journal`)).toBe(false)

  const { contracts, vaults, tokens } = readDeployment()
  expect(Object.keys(vaults)).toEqual(['genesis'])
  expect(tokens.TSLA).toBe(devnet.deployment.tokens.TSLA)
  const vars = JSON.parse((await deploy(['--vars', out])).text)
  expect(JSON.parse(vars.CONTRACTS)).toEqual(contracts)
  expect(vars.CHAIN_ID).toBe('31337')
}, 60_000)

test('a value that is not as configured is named', async () => {
  const verification = ['--config', configPath, '--verify', out]
  expect(await deploy(verification)).toMatchObject({ code: 0 })
  await devnet.send(admin, {
    address: readDeployment().contracts.TradeRouter ?? '0x',
    abi: tradeRouterAbi,
    functionName: 'setKeeperBounty',
    args: [7n, 1_000_000n],
  })
  const { code, text } = await deploy(verification)
  expect(code).toBe(1)
  expect(text).toContain('TradeRouter.keeperBountyBps(): expected 10, the chain says 7')
  expect(text).toContain('TradeRouter.maxKeeperBounty(): expected 5000000, the chain says 1000000')
})

function writeConfig({ fee = 500, ...changes }: { fee?: number; chainId?: number; usdc?: string } = {}): void {
  const { contracts, tokens, accounts } = devnet.deployment
  const example = JSON.parse(readFileSync(join(root, 'scripts/deploy.example.json'), 'utf8'))
  const config = {
    ...example,
    chainId: devnet.chainId,
    usdc: contracts.USDC,
    identityRegistry: contracts.ERC8004IdentityRegistry,
    uniswap: { factory: contracts.UniswapV3Factory, quoter: contracts.QuoterV2 },
    roles: { ...example.roles, admin: admin.address, operators: [accounts.operator.address] },
    tokens: [{ symbol: 'TSLA', address: tokens.TSLA, fee, maxAge: 86_400, maxDeviationBps: 2_000 }],
    vaults: [{ ...example.vaults[0], tokens: ['TSLA'] }],
    ...changes,
  }
  writeFileSync(configPath, JSON.stringify(config))
}

function readDeployment(): {
  contracts: Record<string, `0x${string}`>
  vaults: object
  tokens: Record<string, string>
} {
  return JSON.parse(readFileSync(out, 'utf8'))
}

async function deploy(args: string[]): Promise<{ code: number; text: string }> {
  const child = run(args)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (text += chunk))
  const [code] = await once(child, 'close')
  return { code, text }
}

function run(args: string[]) {
  return spawn(process.execPath, [join(root, 'scripts/deploy.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, RPC_URL: devnet.rpcUrl, DEPLOYER_PRIVATE_KEY: deployer.privateKey },
  })
}
