import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createTestClient,
  getAddress,
  http,
  isAddressEqual,
  keccak256,
  publicActions,
  stringToHex,
  walletActions,
  zeroAddress,
  zeroHash,
} from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { fluxAggregatorAbi } from '../contracts-abi/flux-aggregator.ts'
import { impostorStockTokenAbi } from '../contracts-abi/impostor-stock-token.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { rebasingTokenAbi } from '../contracts-abi/rebasing-token.ts'
import { serviceReaderCode } from '../contracts-abi/service-reader-bytecode.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { uniswapV3SwapAdapterAbi } from '../contracts-abi/uniswap-v3-swap-adapter.ts'
import { environmentOf, varsOf } from '../scripts/environments.ts'
import { createAtsInProcess } from '../test/support/ats-in-process.ts'
import { makeRebasing } from '../test/support/rebasing-token.ts'
import { unsetOrderBook } from '../test/support/unset-order-book.ts'
import type { Account } from './accounts.ts'
import { type Devnet, startDevnet } from './index.ts'
import { stepwiseSender } from './sender.ts'
import { administered, DEFAULT_ADMIN_ROLE } from './suite-roles.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'deploy-test-'))
const configPath = join(folder, 'config.json')
const out = join(folder, 'deployment.json')

// Not the embedded chain's own id, for which the rules about keys are off.
const CHAIN_ID = 421614
const TIMELOCK_DELAY = 518_400

let devnet: Devnet
let ats: ReturnType<typeof createAtsInProcess>
let deployer: Account
let admin: Account
beforeAll(async () => {
  devnet = await startDevnet({ chainId: CHAIN_ID })
  devnet.marketMaker.pause() // these tests move no price of the embedded chain's own pools
  const [first, second] = devnet.deployment.accounts.agents.slice(-2)
  if (!first || !second) throw new Error('the devnet has too few accounts')
  deployer = first
  admin = second
  ats = createAtsInProcess({})
  ats.importKey('deployer', deployer.privateKey)
  ats.importKey('admin', admin.privateKey)
  const chain = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) })
  const hurry = setInterval(() => chain.mine({ blocks: 1 }).catch(() => {}), 25)
  return () => clearInterval(hurry)
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  ats?.remove()
  await devnet?.stop()
})

test('nothing is sent when what the suite stands on is not there', async () => {
  writeConfig({ fee: 10000 })
  const refused = await deploy(['--config', configPath, '--out', out])
  expect(refused).toMatchObject({ code: 1, text: expect.stringContaining('TSLA: Uniswap has no pool of USDC') })
  const node = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) }).extend(publicActions)
  const tsla = { address: devnet.deployment.tokens.TSLA ?? '0x', abi: rebasingTokenAbi } as const
  const supply = () => node.readContract({ ...tsla, functionName: 'totalSupply' })
  const before = await supply()
  const restore = await makeRebasing(node, tsla.address)
  const anyone = stepwiseSender(devnet.client, devnet.deployment.accounts.payer.privateKey, {
    journal: { done: new Map(), add() {} },
    log() {},
  })
  await anyone.write({ ...tsla, functionName: 'rebase', args: [2n * 10n ** 18n] })
  expect(await supply()).toBe(2n * before)
  writeConfig()
  const rebasing = await deploy(['--config', configPath, '--out', out])
  expect(rebasing).toMatchObject({
    code: 1,
    text: expect.stringContaining('TSLA: its balances change without transfers'),
  })
  await restore()
  writeConfig({ chainId: 1 })
  const wrongChain = await deploy(['--config', configPath, '--out', out])
  expect(wrongChain).toMatchObject({ code: 1, text: expect.stringContaining('The node serves chain 421614') })
  writeConfig({ usdc: '0x1' })
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining('usdc'),
  })
  expect(await devnet.client.getTransactionCount({ address: deployer.address })).toBe(0)
})

test('nothing is sent for a token whose beacon is not the configured issuer, whatever its symbol, name and multiplier', async () => {
  const { tokens, contracts, accounts } = devnet.deployment
  const described = (issuer: string | undefined, address = tokens.NVDA) => ({
    token: { symbol: 'NVDA', address, description: { kind: 'scaledUI', issuer } },
  })
  const journal = { done: new Map(), add() {} }
  const stranger = stepwiseSender(devnet.client, accounts.payer.privateKey, { journal, log() {} })
  const impostor = await stranger.deploy({
    name: 'ImpostorStockToken',
    abi: impostorStockTokenAbi,
    args: ['NVIDIA', 'NVDA', stranger.address],
  })
  writeConfig(described(contracts.StockIssuer, impostor))
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining(
      `NVDA: ${getAddress(impostor)} has no beacon, not the issuer ${contracts.StockIssuer}; it is an impostor`,
    ),
  })
  writeConfig(described(contracts.USDC))
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining(`has the beacon ${contracts.StockIssuer}, not the issuer ${contracts.USDC}`),
  })
  writeConfig(described(undefined))
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining('no issuer is described; name the beacon as its issuer if you trust it'),
  })
  expect(await devnet.client.getTransactionCount({ address: deployer.address })).toBe(0)
})

test("nothing is sent for a verifier that is none, and for a push feed that is none or another token's", async () => {
  const { tokens, contracts, accounts } = devnet.deployment
  writeConfig({ embedded: true, reportVerifier: contracts.USDC })
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining(`reportVerifier: ${contracts.USDC} is a contract without typeAndVersion`),
  })
  const feed = (aggregator: string | undefined) => ({
    token: { source: { kind: 'feed', aggregator, isSharePrice: false } },
  })
  writeConfig(feed(tokens.NVDA))
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining(`TSLA: ${tokens.NVDA} is no push feed`),
  })
  const journal = { done: new Map(), add() {} }
  const stranger = stepwiseSender(devnet.client, accounts.payer.privateKey, { journal, log() {} })
  const foreign = await stranger.deploy({
    name: 'FluxAggregator',
    abi: fluxAggregatorAbi,
    args: [contracts.USDC, 0n, 60, zeroAddress, 1n, 2n ** 100n, 8, 'NVDA / USD'],
  })
  const feedContract = { address: foreign, abi: fluxAggregatorAbi }
  const oracles = [[], [stranger.address], [stranger.address], 1, 1, 0] as const
  await stranger.write({ ...feedContract, functionName: 'changeOracles', args: oracles })
  await stranger.write({ ...feedContract, functionName: 'submit', args: [1n, 18_025_000_000n] })
  writeConfig(feed(foreign))
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining('("NVDA / USD") says 180.25 USD, its pool 421.29999999 USD'),
  })
  expect(await devnet.client.getTransactionCount({ address: deployer.address })).toBe(0)
})

test('nothing is sent when one key holds two powers or the admin acts without a delay', async () => {
  const { oracleUpdater, executor } = devnet.deployment.accounts
  writeConfig({ roles: { executors: [executor.address], oracleUpdaters: [executor.address] } })
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining(`${executor.address} holds executors and oracleUpdaters`),
  })
  const timelock = { delaySeconds: 60, proposers: [oracleUpdater.address], executors: [] }
  const placeholder = '0x0000000000000000000000000000000000000005'
  const oracle = { oracleForcers: [oracleUpdater.address], oracleUpdaters: [] }
  const roles = { timelock, ...oracle, guardians: [], executors: [placeholder] }
  writeConfig({ roles })
  const { code, text } = await deploy(['--config', configPath, '--out', out])
  expect(code).toBe(1)
  expect(text).toContain(`${oracleUpdater.address} holds timelock.proposers and oracleForcers`)
  expect(text).toContain('roles.timelock.delaySeconds is 60, it must be at least 518400')
  expect(text).toContain('roles.guardians names 0; name 2 who may pause and cancel')
  expect(text).toContain(`${placeholder} is a placeholder of the example`)
  expect(await devnet.client.getTransactionCount({ address: deployer.address })).toBe(0)
})

test('the embedded flag allows one key to hold every power', async () => {
  const { executor } = devnet.deployment.accounts
  writeConfig({
    embedded: true,
    roles: { executors: [executor.address], oracleUpdaters: [executor.address] },
    fee: 10000,
  })
  expect(await deploy(['--config', configPath, '--out', out])).toMatchObject({
    code: 1,
    text: expect.not.stringContaining('holds'),
  })
})

test('an interrupted deployment continues where it stopped and is verified', async () => {
  writeConfig()
  const interrupted = run(['--config', configPath, '--out', out])
  for await (const text of interrupted.stdout)
    if (String(text).includes('deploy AgentRegistry')) interrupted.kill('SIGKILL')
  const [startedAtBlock] = readFileSync(`${out}.journal`, 'utf8').split('\n')

  const { code, text } = await deploy(['--config', configPath, '--out', out])
  expect({ code, text }).toMatchObject({
    code: 0,
    text: expect.stringMatching(/Continuing after [5-9] steps[\s\S]*Verified: \d+ wired values/),
  })
  expect(text).not.toContain('deploy PriceOracle')
  expect(existsSync(`${out}.journal`)).toBe(false)

  expect(text).toMatch(/timelock\.proposers +0x/)
  const { contracts, vaults, tokens, deployedAtBlock } = readDeployment()
  expect(deployedAtBlock).toBe(startedAtBlock)
  expect(Object.keys(vaults)).toEqual(['genesis'])
  expect(tokens.TSLA).toBe(devnet.deployment.tokens.TSLA)

  const wranglerToml = join(folder, 'wrangler.toml')
  copyFileSync(join(root, 'wrangler.toml'), wranglerToml)
  expect(await deploy(['--vars', out, '--wrangler', wranglerToml])).toMatchObject({
    code: 0,
    text: expect.stringContaining('npm run deploy -- --env arbitrum-sepolia --secrets'),
  })
  const vars = varsOf(readFileSync(wranglerToml, 'utf8'), environmentOf('arbitrum-sepolia'))
  expect(JSON.parse(`${vars.CONTRACTS}`)).toEqual(contracts)
  expect(vars).toMatchObject({ CHAIN_ID: `${CHAIN_ID}`, START_BLOCK: deployedAtBlock })
})

test('the admin is a timelock, and the deployer keeps nothing', async () => {
  const { contracts, vaults } = readDeployment()
  for (const [, address] of administered({ contracts, vaults })) {
    const access = { address, abi: agentRegistryAbi } as const
    const holder = await devnet.client.readContract({ ...access, functionName: 'defaultAdmin' })
    expect(isAddressEqual(holder, contracts.Timelock ?? '0x')).toBe(true)
  }
  const timelock = { address: contracts.Timelock ?? '0x', abi: timelockAbi } as const
  expect(await devnet.client.readContract({ ...timelock, functionName: 'getMinDelay' })).toBe(BigInt(TIMELOCK_DELAY))
  await expect(
    devnet.send(deployer, {
      ...timelock,
      functionName: 'schedule',
      args: [contracts.TradeRouter ?? '0x', 0n, '0x', zeroHash, zeroHash, BigInt(TIMELOCK_DELAY)],
    }),
  ).rejects.toThrow('AccessControlUnauthorizedAccount')
})

test('a pool remembers as many prices as configured', async () => {
  const { contracts, tokens } = readDeployment()
  const pool = await devnet.client.readContract({
    address: contracts.SwapAdapter ?? '0x',
    abi: uniswapV3SwapAdapterAbi,
    functionName: 'poolOf',
    args: [tokens.TSLA ?? '0x'],
  })
  const slot0 = await devnet.client.readContract({ address: pool, abi: uniswapV3PoolAbi, functionName: 'slot0' })
  expect(slot0[4]).toBe(250)
})

test('the timelock can make every call of the table in docs/operations.md that names no placeholder', async () => {
  const [, rest = ''] = readFileSync(join(root, 'docs/operations.md'), 'utf8').split('## Act as the admin')
  const [section = ''] = rest.split(/^## /m)
  const calls = [...section.matchAll(/^\| [^|]+ \| `([^`]+)`/gm)]
    .map(([, call = '']) => call.replace('NVDA', 'TSLA'))
    .filter(call => /^[\w-]+\.\w+\(/.test(call) && !/[…<]/.test(call))
  expect(calls.length).toBeGreaterThan(5)
  const { plans } = await ats.json('admin', 'call', ...calls, ...operator('admin'), '--dry-run')
  expect(plans).toMatchObject([{ route: 'timelock', calls: calls.map(() => ({ now: 'succeeds now' })) }])
})

test('an oracle is replaced as docs/operations.md describes it', async () => {
  const { contracts, tokens, ...deployment } = readDeployment()
  const { PriceOracle: old = '0x', Timelock = '0x', SwapAdapter = '0x' } = contracts
  const { oracleUpdater } = devnet.deployment.accounts
  const token = tokens.TSLA ?? '0x'
  for (const price of [42_000_000_000n, 42_100_000_000n])
    await devnet.send(oracleUpdater, {
      address: old,
      abi: priceOracleAbi,
      functionName: 'setPrice',
      args: [token, price],
    })

  const journal = { done: new Map(), add() {} }
  const sender = stepwiseSender(devnet.client, deployer.privateKey, { journal, log() {} })
  const address = await sender.deploy({ name: 'PriceOracle', abi: priceOracleAbi, args: [deployer.address] })
  const oracle = { address, abi: priceOracleAbi } as const
  const bound = { maxAge: 3600, maxDeviationBps: 1000, deviationWindow: 3600 }
  await sender.write({ ...oracle, functionName: 'setAssetConfig', args: [token, bound] })
  const opinion = { source: SwapAdapter, twapWindow: 600 }
  await sender.write({ ...oracle, functionName: 'setSecondOpinion', args: [token, opinion] })
  const { oracleUpdaters, oracleForcers } = JSON.parse(readFileSync(configPath, 'utf8')).roles
  for (const [role, [account]] of [
    ['ORACLE_UPDATER_ROLE', oracleUpdaters],
    ['ORACLE_FORCER_ROLE', oracleForcers],
  ])
    await sender.write({ ...oracle, functionName: 'grantRole', args: [keccak256(stringToHex(role)), account] })
  await sender.write({ ...oracle, functionName: 'beginDefaultAdminTransfer', args: [Timelock] })

  const migration = ['admin', 'migrate-oracle', address, ...operator('admin'), '--yes']
  await ats.json(...migration)
  await devnet.increaseTime(TIMELOCK_DELAY)
  await ats.json(...migration)
  writeFileSync(out, JSON.stringify({ ...deployment, tokens, contracts: { ...contracts, PriceOracle: address } }))
  const inherited = await devnet.client.readContract({ ...oracle, functionName: 'peekPrice', args: [token] })
  expect(inherited).toMatchObject([42_100_000_000n, expect.anything(), 2n])
  expect(await deploy(['--config', configPath, '--verify', out])).toMatchObject({ code: 0 })
})

test('a deployment without an order book is verified, and a book that its file does not name is reported', async () => {
  const { contracts, ...deployment } = readDeployment()
  const { OrderBook = '0x', AgentRegistry = '0x', ...others } = contracts
  const path = join(folder, 'without-book.json')
  writeFileSync(path, JSON.stringify({ ...deployment, contracts: { AgentRegistry, ...others } }))
  const verification = ['--config', configPath, '--verify', path]
  expect(await deploy(verification)).toMatchObject({
    code: 1,
    text: expect.stringContaining(`the deployment names no OrderBook, the chain says ${getAddress(OrderBook)}`),
  })
  const node = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) }).extend(publicActions)
  const snapshot = await node.snapshot()
  await unsetOrderBook(node, AgentRegistry, OrderBook)
  expect(await deploy(verification)).toMatchObject({ code: 0, text: expect.stringContaining('Verified: ') })
  await node.revert({ id: snapshot })
})

test('a vault that names no request queue of its own is reported', async () => {
  const { contracts, vaults } = readDeployment()
  const [slug = '', address = '0x'] = Object.entries(vaults)[0] ?? []
  const node = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) })
    .extend(publicActions)
    .extend(walletActions)
  const snapshot = await node.snapshot()
  const account = contracts.Timelock ?? '0x'
  await node.impersonateAccount({ address: account })
  await node.setBalance({ address: account, value: 10n ** 18n })
  const vault = { address, abi: mandateVaultAbi, account, chain: null } as const
  const hash = await node.writeContract({ ...vault, functionName: 'setRequestQueue', args: [zeroAddress] })
  await node.waitForTransactionReceipt({ hash })
  expect(await deploy(['--config', configPath, '--verify', out])).toMatchObject({
    code: 1,
    text: expect.stringContaining(`${slug}.requestQueue(): expected a queue of ${address}`),
  })
  await node.revert({ id: snapshot })
})

test('a value that is not as configured is named, and the admin changes one only after the delay', async () => {
  const verification = ['--config', configPath, '--verify', out]
  expect(await deploy(verification)).toMatchObject({ code: 0 })
  const { contracts } = readDeployment()
  const router = { address: contracts.TradeRouter ?? '0x', abi: tradeRouterAbi } as const
  const change = { ...router, functionName: 'setKeeperBounty', args: [7n, 1_000_000n] } as const
  await expect(devnet.send(admin, change)).rejects.toThrow('AccessControlUnauthorizedAccount')

  const operation = ['admin', 'call', 'TradeRouter.setKeeperBounty(7, "1000000")', '--yes']
  const [scheduled] = (await ats.json(...operation, ...operator('admin'))).plans
  expect(scheduled).toMatchObject({ operation: { state: 'not scheduled' }, calls: [{ now: 'succeeds now' }] })
  expect(await ats.json(...operation, ...operator('admin'))).toMatchObject({
    sent: [],
    plans: [{ operation: { state: 'waiting' } }],
  })
  await devnet.increaseTime(TIMELOCK_DELAY)
  // Any account may execute it once the delay is over.
  expect(await ats.json(...operation, ...operator('deployer'))).toMatchObject({
    plans: [{ operation: { state: 'ready' } }],
  })
  expect(await ats.json(...operation, ...operator('deployer'))).toMatchObject({
    plans: [{ operation: { state: 'done' } }],
  })

  const { code, text } = await deploy(verification)
  expect(code).toBe(1)
  expect(text).toContain('TradeRouter.keeperBountyBps(): expected 10, the chain says 7')
  expect(text).toContain('TradeRouter.maxKeeperBounty(): expected 5000000, the chain says 1000000')
})

test('the protocol without the extension is deployed and verified, on an embedded chain only', async () => {
  const other = join(folder, 'protocol-only.json')
  writeConfig()
  expect(await deploy(['--config', configPath, '--out', other, '--protocol-only'])).toMatchObject({
    code: 1,
    text: expect.stringContaining("--protocol-only leaves the vaults' money unprotected"),
  })
  writeConfig({ embedded: true })
  expect(await deploy(['--config', configPath, '--out', other, '--protocol-only'])).toMatchObject({
    code: 0,
    text: expect.stringContaining('its admin acts without a delay'),
  })
  const { contracts } = readDeployment(other)
  expect(contracts).not.toHaveProperty('Timelock')
  const verification = ['--config', configPath, '--verify', other]
  expect(await deploy(verification)).toMatchObject({ code: 0, text: expect.stringContaining('Verified: ') })

  const router = { address: contracts.TradeRouter ?? '0x', abi: tradeRouterAbi } as const
  await devnet.send(deployer, { ...router, functionName: 'setKeeperBounty', args: [7n, 5_000_000n] })
  const role = { ...router, functionName: 'grantRole', args: [DEFAULT_ADMIN_ROLE, admin.address] } as const
  await devnet.send(deployer, role)
  const { code, text } = await deploy(verification)
  expect(code).toBe(1)
  expect(text).toContain('TradeRouter.keeperBountyBps(): expected 10, the chain says 7')
  expect(text).toContain(
    `TradeRouter.hasRole(DEFAULT_ADMIN_ROLE, ${admin.address}): expected false, the chain says true`,
  )
})

type Changes = {
  fee?: number
  chainId?: number
  usdc?: string
  embedded?: boolean
  roles?: Record<string, unknown>
  reportVerifier?: string
  token?: { symbol?: string; address?: `0x${string}` | undefined; description?: object; source?: object }
}

function writeConfig({ fee = 500, roles, token, ...changes }: Changes = {}): void {
  const { contracts, tokens, accounts } = devnet.deployment
  const text = readFileSync(join(root, 'scripts/deploy.example.json'), 'utf8')
  const example = JSON.parse(text.replace(/0x0{39}[1-9a-f]/g, placeholder => getAddress(`0x11${placeholder.slice(4)}`)))
  const config = {
    ...example,
    chainId: devnet.chainId,
    usdc: contracts.USDC,
    identityRegistry: contracts.ERC8004IdentityRegistry,
    uniswap: { factory: contracts.UniswapV3Factory, quoter: contracts.QuoterV2 },
    roles: {
      ...example.roles,
      timelock: { ...example.roles.timelock, proposers: [admin.address] },
      operators: { ...example.roles.operators, vaults: [accounts.operator.address] },
      oracleUpdaters: [accounts.oracleUpdater.address],
      ...roles,
    },
    tokens: [
      {
        ...example.tokens[0],
        symbol: 'TSLA',
        address: tokens.TSLA,
        fee,
        observations: 250,
        description: undefined,
        ...token,
      },
    ],
    vaults: [{ ...example.vaults[0], tokens: [token?.symbol ?? 'TSLA'] }],
    ...changes,
  }
  writeFileSync(configPath, JSON.stringify(config))
}

function readDeployment(path = out): {
  contracts: Record<string, `0x${string}`>
  vaults: Record<string, `0x${string}`>
  tokens: Record<string, `0x${string}`>
  deployedAtBlock: string
} {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** Options of `ats admin` for this deployment and one of its keys. */
const operator = (key: 'admin' | 'deployer') => ['--deployment', out, '--rpc', devnet.rpcUrl, '--key', key]

const deploy = (args: string[]) => outputOf(run(args))

async function outputOf(child: ReturnType<typeof run>): Promise<{ code: number; text: string }> {
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

test('a deployment of contracts without a reader gets one by a command of its own, and only once', async () => {
  const path = join(folder, 'without-reader.json')
  const { contracts, ...deployment } = readDeployment()
  const { ServiceReader: _, ...others } = contracts
  writeFileSync(path, JSON.stringify({ ...deployment, contracts: others }))
  expect(await deploy(['--reader', path])).toMatchObject({ code: 0 })
  const { ServiceReader } = JSON.parse(readFileSync(path, 'utf8')).contracts
  expect(await devnet.client.getCode({ address: ServiceReader })).toBe(serviceReaderCode)
  expect(await deploy(['--reader', path])).toMatchObject({ code: 0, text: expect.stringContaining(ServiceReader) })
  expect(JSON.parse(readFileSync(path, 'utf8')).contracts.ServiceReader).toBe(ServiceReader)
})
