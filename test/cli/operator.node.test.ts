import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { AgentStatus, PositionStatus } from '@agent-trading-service/protocol/enums'
import type { Finding } from '@agent-trading-service/protocol/finding'
import { marketHours, type Session } from '@agent-trading-service/protocol/market-hours'
import { roleHash } from '@agent-trading-service/protocol/roles-of-powers'
import { type Address, getAddress, type Hex, keccak256, stringToHex, zeroAddress, zeroHash } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { timelockAbi } from '../../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { stepwiseSender } from '../../devnet/sender.ts'
import { createProgram } from '../../packages/cli/src/program.ts'
import { profiles } from '../providers/profiles.ts'
import { startProviderProxy } from '../providers/provider-proxy.ts'
import type { Body } from '../support/body.ts'
import { createDevnetAgents } from '../support/devnet-agents.ts'
import { type OperatedChain, startOperatedChain, TIMELOCK_DELAY } from '../support/operated-chain.ts'
import { makeRebasing } from '../support/rebasing-token.ts'
import { unsetOrderBook } from '../support/unset-order-book.ts'

// `ats doctor` and `ats admin` on one chain with a timelock of six days. Each test starts from the same block.

let chain: OperatedChain
let snapshot: Hex
beforeAll(async () => {
  chain = await startOperatedChain()
})
afterAll(() => chain?.stop())
beforeEach(async () => {
  snapshot = await chain.node.snapshot()
})
afterEach(() => chain.restore(snapshot))

const deployed = () => chain.devnet.deployment
const contract = (name: string): Address => (deployed().contracts as Partial<Record<string, Address>>)[name] ?? '0x'
const vault = (slug = 'genesis'): Address => deployed().vaults[slug] ?? '0x'
const token = (symbol: string): Address => deployed().tokens[symbol] ?? '0x'
/** Lets all prices grow too old, until the market of equities has been in a session for an hour. */
async function growOldUntil(session: Session): Promise<void> {
  const now = Number((await chain.node.getBlock()).timestamp)
  const isIn = (time: number) => marketHours('us-equity-24-5', time).session === session
  let time = now + 86_400 + 60
  while (!isIn(time) || !isIn(time - 3_600)) time += 600
  await chain.devnet.increaseTime(time - now)
}
const registry = () => ({ address: contract('AgentRegistry'), abi: agentRegistryAbi }) as const
const oracle = () => ({ address: contract('PriceOracle'), abi: priceOracleAbi }) as const

describe('ats doctor', () => {
  /** What is known about the embedded chain's own deployment, which shares keys and has short limits. */
  let known: Set<string>

  async function examine(changes: Record<string, string> = {}): Promise<Finding[]> {
    const { code, stdout, stderr } = await chain.ats.run([
      ...['doctor', '--vars', chain.varsWith(changes), '--no-service', '-o', 'json'],
    ])
    if (stdout === '') throw new Error(stderr)
    const { findings, verdict } = JSON.parse(stdout)
    expect(code).toBe({ ok: 0, unchecked: 0, warning: 11, wrong: 12 }[verdict as string])
    return findings
  }

  const sentences = (findings: readonly Finding[]) =>
    findings.filter(({ verdict }) => verdict === 'warning' || verdict === 'wrong').map(({ sentence }) => sentence)

  /** Returns the faults that the embedded chain does not have by itself. */
  async function newFaults(changes: Record<string, string> = {}): Promise<Finding[]> {
    return (await examine(changes)).filter(({ verdict, sentence }) => isFault(verdict) && !known.has(sentence))
  }
  const isFault = (verdict: string) => verdict === 'warning' || verdict === 'wrong'

  beforeAll(async () => {
    known = new Set(sentences(await examine()))
  })

  it('ats doctor finds nothing wrong in a deployment, and warns of shared keys, limits that are off and missing first-loss capital', async () => {
    const findings = await examine()
    expect(findings.filter(({ verdict }) => verdict === 'wrong')).toEqual([])
    const { admin, operator } = deployed().accounts
    expect(sentences(findings)).toEqual(
      expect.arrayContaining([
        expect.stringContaining(`${admin.address} holds timelock.proposers and timelock.executors and oracleForcers`),
        expect.stringContaining(`${operator.address} holds guardians and operators.agentRegistry`),
        'Signed intents may be valid for ever.',
        expect.stringContaining("No first-loss capital answers for an agent's losses"),
      ]),
    )
    const checks = new Set(findings.map(({ check }) => check))
    for (const check of [
      'code',
      'wiring',
      'admin',
      'role',
      'fee',
      'oracle',
      'balance',
      'vault',
      'listing',
      'signing domain',
    ])
      expect(checks).toContain(check)
    expect(findings.filter(({ check }) => check === 'wiring').length).toBeGreaterThan(30)
  })

  it('ats doctor names an operation of the timelock that nobody announced, and people without ether', async () => {
    const { admin, operator } = deployed().accounts
    const timelock = { address: contract('Timelock'), abi: timelockAbi }
    const operation = [contract('FeeManager'), 0n, '0x', zeroHash, zeroHash] as const
    await chain.devnet.send(admin, { ...timelock, functionName: 'schedule', args: [...operation, 518_400n] })
    const id = await chain.devnet.client.readContract({ ...timelock, functionName: 'hashOperation', args: operation })
    await chain.node.setBalance({ address: operator.address, value: 0n })
    const found = await newFaults()
    expect(found).toContainEqual(
      expect.objectContaining({
        check: 'timelock',
        subject: id,
        sentence: expect.stringMatching(/from 20\d\d-.+Z on/),
      }),
    )
    expect(found).toContainEqual(
      expect.objectContaining({
        check: 'balance',
        verdict: 'warning',
        sentence: expect.stringMatching(
          /^The account of (guardians|operators\.\w+) 0x\w+ has no ether and can send nothing\.$/,
        ),
      }),
    )
    expect((await newFaults({ ANNOUNCED_OPERATIONS: id })).map(({ check }) => check)).toEqual(['balance'])
  })

  it.each([
    [{ RPC_URL: '' }, 'RPC_URL'],
    [{ RPC_URL: '', CHAIN_ID: '' }, 'CHAIN_ID, RPC_URL'],
  ])('ats doctor names only the variables that a chain lacks: %j', async (changes, subject) => {
    const findings = await examine(changes)
    expect(findings).toContainEqual(expect.objectContaining({ verdict: 'wrong', subject, fix: `set ${subject}` }))
    expect(findings.map(({ sentence }) => sentence)).toContain('No chain is configured.')
  })

  it('ats doctor names the status with which a gateway refuses for the node, without its text', async () => {
    const gateway = createServer((_, response) => void response.writeHead(403).end('the host is not in the list'))
    await new Promise<void>(resolve => void gateway.listen(0, '127.0.0.1', resolve))
    const { port } = gateway.address() as AddressInfo
    const findings = await examine({ RPC_URL: `http://127.0.0.1:${port}/key` })
    gateway.close()
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'node', verdict: 'wrong', sentence: expect.stringContaining('the status 403') }),
    )
    expect(JSON.stringify(findings)).not.toMatch(/in the list|\/key/)
  })

  it('ats doctor names the trading contracts that are missing', async () => {
    const { TradeRouter: _, ...others } = deployed().contracts
    expect(await newFaults({ CONTRACTS: JSON.stringify(others) })).toContainEqual(
      expect.objectContaining({ verdict: 'wrong', sentence: 'CONTRACTS lacks TradeRouter, so nobody can trade.' }),
    )
  })

  it('ats doctor prints what is wrong with the command that fixes it, and exits with the worst', async () => {
    await chain.node.setBalance({ address: deployed().accounts.keeper.address, value: 0n })
    const { code, stdout, stderr } = await chain.ats.run(['doctor', '--vars', chain.varsWith(), '--no-service'])
    expect(code).toBe(12)
    const { address } = deployed().accounts.keeper
    expect(stdout).toContain(`WRONG      balance: The keeper ${address} has no ether and can send nothing.`)
    expect(stdout).toContain(`fix: send ether to ${address}`)
    expect(stderr).toMatch(/1 wrong, \d+ warnings, \d+ not checked, \d+ in order\. \[DEPLOYMENT_WRONG\]/)
  })

  it('ats doctor reads the environment of wrangler.toml, whose secrets are in a vars file or in the environment', async () => {
    const { CONTRACTS = '', TOKENS = '', VAULTS = '', ...secrets } = chain.variables
    const toml = join(chain.ats.home, 'wrangler.toml')
    const block = {
      CONTRACTS: `'${CONTRACTS}'`,
      TOKENS: JSON.stringify(TOKENS),
      VAULTS: `'${VAULTS}'`,
      CHAIN_ID: '421614',
    }
    const lines = Object.entries(block).map(([name, value]) => `${name} = ${value}`)
    writeFileSync(toml, ['[env.testnet.vars]', ...lines, '', '[env.other.vars]', 'CHAIN_ID = "1"'].join('\n'))
    const vars = join(chain.ats.home, 'secrets')
    writeFileSync(
      vars,
      Object.entries(secrets)
        .map(([name, value]) => `${name}='${value}'\n`)
        .join(''),
    )
    const args = ['doctor', '--wrangler', toml, '--vars', vars, '--no-service', '-o', 'json']
    const { stdout } = await chain.ats.run([...args, '--env', 'testnet'])
    expect(new Set(sentences(JSON.parse(stdout).findings))).toEqual(known)
    expect(await chain.ats.failure(...args, '--env', 'nowhere')).toMatchObject({ exit: 2, code: 'VARIABLES_MISSING' })
  })

  const withoutBook = () => {
    const { OrderBook: _, ...contracts } = deployed().contracts
    return contracts
  }
  type Fault = {
    name: string
    cause?: () => Promise<unknown>
    changes?: () => Record<string, string>
    found: () => Partial<Finding>
  }
  const faults: Fault[] = [
    {
      name: 'an executor without its role',
      changes: () => ({ EXECUTOR_PRIVATE_KEY: deployed().accounts.agents[0]?.privateKey ?? '' }),
      found: () => ({
        check: 'role',
        verdict: 'wrong',
        sentence: `The executor ${deployed().accounts.agents[0]?.address} lacks EXECUTOR_ROLE of TradeRouter.`,
        fix: `ats admin grant executors ${deployed().accounts.agents[0]?.address}`,
      }),
    },
    {
      name: 'a key with a role that it does not need',
      changes: () => ({ KEEPER_PRIVATE_KEY: deployed().accounts.admin.privateKey }),
      found: () => ({
        check: 'role',
        verdict: 'wrong',
        sentence: `The keeper ${deployed().accounts.admin.address} also has ORACLE_FORCER_ROLE of PriceOracle, which it does not need.`,
        fix: `ats admin revoke oracleForcers ${deployed().accounts.admin.address}`,
      }),
    },
    {
      name: 'a relayer that FeeManager does not name',
      changes: () => ({ RELAYER_PRIVATE_KEY: deployed().accounts.agents[0]?.privateKey ?? '' }),
      found: () => ({
        check: 'role',
        verdict: 'wrong',
        fix: `ats admin grant relayer ${deployed().accounts.agents[0]?.address}`,
      }),
    },
    {
      name: 'wrong wiring',
      changes: () => ({
        CONTRACTS: JSON.stringify({ ...deployed().contracts, OwnerControls: contract('TradePolicy') }),
      }),
      found: () => ({
        check: 'wiring',
        subject: 'AgentRegistry.ownerControls',
        verdict: 'wrong',
        sentence: `AgentRegistry.ownerControls is ${contract('OwnerControls')}, not OwnerControls (${contract('TradePolicy')}).`,
        fix: `ats admin call 'AgentRegistry.setOwnerControls("OwnerControls")'`,
      }),
    },
    {
      name: 'an order book that is none',
      cause: () => chain.asTimelock({ ...registry(), functionName: 'setOrderBook', args: [contract('TradePolicy')] }),
      changes: () => ({ CONTRACTS: JSON.stringify(withoutBook()) }),
      found: () => ({
        check: 'wiring',
        subject: 'OrderBook.agentRegistry',
        verdict: 'wrong',
        sentence: 'OrderBook has no agentRegistry.',
        fix: `ats admin call 'AgentRegistry.setOrderBook("<contract>")'`,
      }),
    },
    {
      name: 'a registry without an order book',
      cause: () => unsetOrderBook(chain.node, contract('AgentRegistry'), contract('OrderBook')),
      changes: () => ({ CONTRACTS: JSON.stringify(withoutBook()) }),
      found: () => ({
        check: 'wiring',
        subject: 'OrderBook',
        verdict: 'warning',
        sentence: 'AgentRegistry names no order book, so agents place no orders.',
        fix: `ats admin call 'AgentRegistry.setOrderBook("<contract>")'`,
      }),
    },
    {
      name: 'an order book without its role',
      cause: () =>
        chain.asTimelock({
          address: contract('TradeRouter'),
          abi: tradeRouterAbi,
          functionName: 'revokeRole',
          args: [roleHash('EXECUTOR_ROLE'), contract('OrderBook')],
        }),
      found: () => ({
        check: 'role',
        subject: contract('OrderBook'),
        verdict: 'wrong',
        sentence: `The order book ${contract('OrderBook')} lacks EXECUTOR_ROLE of TradeRouter, so no order executes.`,
        fix: `ats admin grant executors ${contract('OrderBook')}`,
      }),
    },
    {
      name: 'a contract without code',
      cause: () => chain.node.setCode({ address: contract('SwapAdapter'), bytecode: '0x' }),
      found: () => ({
        check: 'code',
        subject: 'SwapAdapter',
        verdict: 'wrong',
        sentence: `SwapAdapter has no code at ${contract('SwapAdapter')}.`,
      }),
    },
    {
      name: 'a reader of another version',
      changes: () => ({
        CONTRACTS: JSON.stringify({ ...deployed().contracts, ServiceReader: contract('TradePolicy') }),
      }),
      found: () => ({
        check: 'reader',
        subject: 'ServiceReader',
        verdict: 'warning',
        sentence: expect.stringContaining('No ServiceReader of this version is deployed'),
        fix: 'npm run deploy:contracts -- --reader <deployment file>',
      }),
    },
    {
      name: 'a stale price',
      cause: async () => {
        await growOldUntil('regular')
        const fresh = Object.values(deployed().tokens).filter(address => address !== token('COIN'))
        const prices = await Promise.all(
          fresh.map(address =>
            chain.node
              .readContract({ ...oracle(), functionName: 'peekPrice', args: [address] })
              .then(([price]) => price),
          ),
        )
        await chain.sendAs(deployed().accounts.oracleUpdater.address, {
          ...oracle(),
          functionName: 'setPrices',
          args: [fresh, prices],
        })
      },
      found: () => ({
        check: 'oracle',
        subject: 'COIN',
        verdict: 'warning',
        sentence: expect.stringMatching(/^The price of COIN is stale: it is .+ old; at most .+ is accepted\.$/),
        fix: 'ats admin price COIN=<usd>, or POST /prices/refresh',
      }),
    },
    {
      name: 'a START_BLOCK after the deployment',
      changes: () => ({ START_BLOCK: `${chain.head}` }),
      found: () => ({
        check: 'start block',
        verdict: 'wrong',
        sentence: expect.stringContaining('is after the deployment of'),
        fix: expect.stringContaining('deployedAtBlock'),
      }),
    },
    {
      name: 'a START_BLOCK beyond the chain',
      changes: () => ({ START_BLOCK: '99999999' }),
      found: () => ({
        check: 'start block',
        verdict: 'wrong',
        sentence: expect.stringContaining('the newest block is'),
      }),
    },
    {
      name: 'an unbounded price',
      cause: () =>
        chain.asTimelock({
          ...oracle(),
          functionName: 'setAssetConfig',
          args: [token('NVDA'), { maxAge: 3_600, maxDeviationBps: 0, deviationWindow: 0 }],
        }),
      found: () => ({
        check: 'policy',
        subject: 'NVDA',
        verdict: 'wrong',
        sentence: 'The updater may post any price of NVDA.',
      }),
    },
    {
      name: 'a trade policy that compares no pool',
      cause: async () => {
        const policy = { address: contract('TradePolicy'), abi: tradePolicyAbi } as const
        const limits = await chain.node.readContract({ ...policy, functionName: 'limitsOf', args: [vault(), 0n] })
        const off = { ...limits, maxSpotDeviationBps: 0, maxTwapDeviationBps: 0 }
        await chain.asTimelock({ ...policy, functionName: 'setLimits', args: [vault(), 0n, off] })
      },
      found: () => ({
        check: 'policy',
        subject: 'genesis, track 0',
        verdict: 'wrong',
        fix: `ats admin call 'TradePolicy.setLimits("genesis", 0, {…})'`,
      }),
    },
    {
      name: 'a wrong signing domain of USDC',
      changes: () => ({ X402_ASSET_NAME: 'Dollar' }),
      found: () => ({
        check: 'signing domain',
        subject: 'USDC',
        verdict: 'wrong',
        sentence: expect.stringContaining('USDC does not sign as Dollar version 2'),
        fix: expect.stringMatching(/^set X402_ASSET_NAME and X402_ASSET_VERSION to those of 0x/),
      }),
    },
    {
      name: 'a contract without a signing domain',
      changes: () => ({
        CONTRACTS: JSON.stringify({ ...deployed().contracts, TradeRouter: contract('FeeManager') }),
      }),
      found: () => ({ check: 'signing domain', subject: 'TradeRouter', verdict: 'wrong' }),
    },
    {
      name: 'a timelock without a delay',
      cause: () =>
        chain.asTimelock({ address: contract('Timelock'), abi: timelockAbi, functionName: 'updateDelay', args: [60n] }),
      found: () => ({
        check: 'admin',
        subject: 'Timelock',
        verdict: 'wrong',
        fix: `ats admin call 'Timelock.updateDelay(518400)'`,
      }),
    },
    {
      name: 'a vault that names no request queue',
      cause: () => {
        const call = { abi: mandateVaultAbi, functionName: 'setRequestQueue', args: [zeroAddress] } as const
        return chain.asTimelock({ address: vault('frontier'), ...call })
      },
      found: () => ({
        check: 'policy',
        subject: 'frontier',
        verdict: 'warning',
        sentence: 'frontier names no request queue, so its depositors cannot leave requests while markets are shut.',
        fix: `ats admin call 'frontier.setRequestQueue("<contract>")'`,
      }),
    },
    {
      name: 'a vault without idle USDC',
      cause: async () => {
        const frontier = { address: vault('frontier'), abi: mandateVaultAbi } as const
        const idle = await chain.node.readContract({ ...frontier, functionName: 'idleAssets' })
        await chain.sendAs(contract('TradeRouter'), {
          ...frontier,
          functionName: 'pullAssetsForTrade',
          args: [deployed().accounts.payer.address, idle],
        })
      },
      found: () => ({
        check: 'vault',
        subject: 'frontier',
        verdict: 'wrong',
        sentence: 'frontier has no idle USDC, so no agent can buy.',
        fix: 'ats admin deposit frontier <usdc>',
      }),
    },
    {
      name: 'a listed token whose balances change without transfers',
      cause: () => makeRebasing(chain.node, token('TSLA')),
      found: () => ({
        check: 'listing',
        subject: 'TSLA',
        verdict: 'wrong',
        sentence: 'TSLA: its balances change without transfers; list a wrapped form of it.',
        fix: `ats admin call 'TokenRegistry.setTokenActive("TSLA", false)'`,
      }),
    },
    {
      name: 'a token of another issuer than the described one',
      cause: () =>
        chain.asTimelock({
          address: contract('TokenRegistry'),
          abi: tokenRegistryAbi,
          functionName: 'describeToken',
          args: [token('NVDA'), { kind: 1, session: 0, powers: 15, issuer: contract('USDC') }],
        }),
      found: () => ({
        check: 'issuer',
        subject: 'NVDA',
        verdict: 'wrong',
        sentence: `NVDA: ${token('NVDA')} has the beacon ${contract('StockIssuer')}, not the issuer ${contract('USDC')}; it is an impostor.`,
      }),
    },
    {
      name: 'a paused registry',
      cause: () => chain.devnet.pauseRegistry(true),
      found: () => ({ check: 'registry', verdict: 'warning', fix: 'ats admin resume registry' }),
    },
    {
      name: 'an account that soon runs out of ether',
      cause: () => chain.node.setBalance({ address: deployed().accounts.executor.address, value: 10n ** 13n }),
      found: () => ({
        check: 'balance',
        subject: deployed().accounts.executor.address,
        sentence: expect.stringContaining('transactions at the present gas price'),
      }),
    },
    {
      name: 'a price of gas above the ceiling',
      changes: () => ({ GAS_PRICE_GWEI: '0.001,0.01' }),
      found: () => ({
        check: 'gas price',
        verdict: 'wrong',
        sentence: expect.stringContaining('above 0.01 gwei, openings'),
      }),
    },
    {
      name: 'an unusable variable',
      changes: () => ({ GAS_BUDGET_LANE: 'plenty' }),
      found: () => ({ check: 'variables', subject: 'GAS_BUDGET_LANE', verdict: 'wrong' }),
    },
    {
      name: 'a missing key',
      changes: () => ({ EXECUTOR_PRIVATE_KEY: '' }),
      found: () => ({ check: 'variables', subject: 'EXECUTOR_PRIVATE_KEY', verdict: 'wrong' }),
    },
    {
      name: 'a node of another chain',
      changes: () => ({ CHAIN_ID: '42161' }),
      found: () => ({ check: 'node', verdict: 'wrong', sentence: 'The node serves chain 421614, not 42161.' }),
    },
  ]

  it('ats doctor fails if the node serves no quotes, and passes with a deployed reader', async () => {
    const proxy = await startProviderProxy(deployed().rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
    try {
      expect(await newFaults({ RPC_URL: proxy.url })).toEqual([])
      const { ServiceReader: _, ...contracts } = deployed().contracts
      const [fault] = await newFaults({ RPC_URL: proxy.url, CONTRACTS: JSON.stringify(contracts) })
      expect(fault).toMatchObject({
        check: 'reader',
        verdict: 'wrong',
        sentence: 'The nodes return error -32602 to the read of a quote: they accept no state override of its size.',
      })
    } finally {
      await proxy.stop()
    }
  })

  it('ats doctor finds no fault in the old prices of a closed market, and one in those of an open market', async () => {
    const prices = (findings: Finding[]) => findings.filter(({ check }) => check === 'oracle')
    await growOldUntil('closed')
    const closed = await examine()
    expect(closed.filter(({ verdict }) => verdict === 'wrong')).toEqual([])
    for (const { subject, verdict, sentence, fix } of prices(closed))
      expect({ verdict, sentence, fix }).toEqual({
        verdict: 'ok',
        sentence: expect.stringMatching(`^The price of ${subject} is .+ old: its market is closed until 20.+Z\\.$`),
        fix: null,
      })
    await growOldUntil('overnight')
    // Finnhub has no new price before the opening bell.
    expect(prices(await examine()).map(({ verdict }) => verdict)).not.toContain('wrong')
    const open = prices(await examine({ PRICE_PROVIDER: 'coingecko', PRICE_PROVIDER_IDS: '' }))
    expect(open.length).toBeGreaterThan(0)
    for (const { verdict, sentence, fix } of open)
      expect({ verdict, sentence, fix }).toEqual({
        verdict: 'wrong',
        sentence: expect.stringContaining('is stale'),
        fix: expect.stringContaining('ats admin price'),
      })
  })

  it.each(faults)('ats doctor names $name', async ({ cause, changes, found }) => {
    await cause?.()
    const expected = found()
    const findings = await newFaults(changes?.())
    const named = findings.filter(({ check }) => check === expected.check)
    expect(named).toContainEqual(expect.objectContaining(expected))
  })
})

describe('the documentation', () => {
  const textOf = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
  const [group] = createProgram().commands.filter(command => command.name() === 'admin')
  const names = group?.commands.map(command => command.name()) ?? []

  it('the documentation names only commands of ats admin that exist', () => {
    const used = ['docs/operations.md', 'docs/cli.md', 'README.md', 'CONTRIBUTING.md'].flatMap(path =>
      [...textOf(path).matchAll(/\bats admin ([a-z][a-z-]*)/g)].map(([, name]) => name),
    )
    expect(used.length).toBeGreaterThan(30)
    expect(names).toEqual(expect.arrayContaining([...new Set(used)]))
  })

  it('the documentation lists every command of ats admin in docs/cli.md', () => {
    const [, row = ''] = /^\| `admin …` \|(.*)$/m.exec(textOf('docs/cli.md')) ?? []
    for (const name of names) expect(row).toContain(`\`${name}\``)
  })
})

describe('ats admin', () => {
  const options = (key: string) => ['--vars', chain.varsWith(), '--key', key]
  /** Runs a command that changes something. */
  const change = (key: string, ...args: string[]): Promise<Body> =>
    chain.ats.json('admin', ...args, ...options(key), '--yes')
  const refused = (key: string, ...args: string[]): Promise<Body> =>
    chain.ats.failure('admin', ...args, ...options(key), '--yes')
  const read = <Result>(
    address: Address,
    abi: readonly unknown[],
    functionName: string,
    args: readonly unknown[] = [],
  ) =>
    chain.node.readContract({ address, abi, functionName, args } as Parameters<
      typeof chain.node.readContract
    >[0]) as Promise<Result>
  const hasRole = (name: string, role: Parameters<typeof roleHash>[0], account: Address) =>
    read<boolean>(contract(name), agentRegistryAbi, 'hasRole', [roleHash(role), account])
  const nonceOf = (account: { address: Address }) => chain.node.getTransactionCount({ address: account.address })

  it('ats admin shows with --dry-run what would be sent, decoded and simulated, and sends nothing', async () => {
    const { operator } = deployed().accounts
    const nonce = await nonceOf(operator)
    const args = ['pause', 'trading', 'genesis']
    const plan = await chain.ats.json('admin', ...args, ...options('operator'), '--dry-run')
    expect(plan).toMatchObject({ dryRun: true, allowed: true, sender: operator.address })
    expect(plan.plans).toMatchObject([
      {
        route: 'direct',
        calls: [
          {
            call: 'genesis.setTradingPaused(true)',
            changes: [{ value: 'tradingPaused', before: 'false', after: 'true' }],
            now: 'succeeds now',
          },
        ],
        transactions: [{ to: vault(), data: expect.stringMatching(/^0x/), gas: expect.stringMatching(/^\d+$/) }],
      },
    ])
    const { stdout, code } = await chain.ats.run(['admin', ...args, ...options('operator'), '--dry-run'])
    expect(code).toBe(0)
    expect(stdout).toContain('genesis: set trading paused (paused: true): succeeds now')
    expect(stdout).toContain('tradingPaused: false -> true')
    expect(await nonceOf(operator)).toBe(nonce)
    expect(await read(vault(), mandateVaultAbi, 'tradingPaused')).toBe(false)
  })

  it('ats admin sends nothing unless somebody confirms it', async () => {
    expect(await chain.ats.failure('admin', 'pause', 'registry', ...options('operator'))).toMatchObject({
      exit: 2,
      code: 'CONFIRMATION_MISSING',
    })
    expect(await read(contract('AgentRegistry'), agentRegistryAbi, 'paused')).toBe(false)
  })

  it('ats admin pauses and resumes trading, liquidity and the registry', async () => {
    await change('operator', 'pause', 'everything')
    for (const slug of ['genesis', 'frontier']) {
      expect(await read(vault(slug), mandateVaultAbi, 'tradingPaused')).toBe(true)
      expect(await read(vault(slug), mandateVaultAbi, 'liquidityPaused')).toBe(true)
    }
    expect(await read(contract('AgentRegistry'), agentRegistryAbi, 'paused')).toBe(true)
    await change('operator', 'resume', 'trading', 'frontier')
    expect(await read(vault('frontier'), mandateVaultAbi, 'tradingPaused')).toBe(false)
    expect(await read(vault('genesis'), mandateVaultAbi, 'tradingPaused')).toBe(true)
    await change('operator', 'resume', 'everything')
    expect(await read(contract('AgentRegistry'), agentRegistryAbi, 'paused')).toBe(false)
    expect(await refused('operator', 'resume', 'registry')).toMatchObject({ code: 'NOTHING_TO_DO' })
  })

  it('ats admin refuses a key without the role and names who has it', async () => {
    const { operator, keeper } = deployed().accounts
    expect(await refused('keeper', 'pause', 'trading', 'genesis')).toMatchObject({
      exit: 5,
      code: 'ROLE_MISSING',
      error: `${keeper.address} lacks OPERATOR_ROLE of genesis, which ${operator.address} has.`,
      remedy: `Use that key, or grant the role: ats admin grant operators.vaults ${keeper.address}`,
    })
    expect(await refused('operator', 'grant', 'executors', keeper.address)).toMatchObject({
      code: 'ROLE_MISSING',
      error: expect.stringContaining(`lacks PROPOSER_ROLE of Timelock, which ${deployed().accounts.admin.address} has`),
    })
    expect(await nonceOf(keeper)).toBe(0)
  })

  it('ats admin never takes a key as an argument', async () => {
    const key = deployed().accounts.operator.privateKey
    const { code, stderr } = await chain.ats.run(['admin', 'pause', 'registry', ...options(key), '--yes'])
    expect(code).toBe(2)
    expect(stderr).toContain('A private key is never an argument')
    expect(stderr).not.toContain(key.slice(2))
  })

  it('ats admin suspends an agent, closes its position by force, and lets it trade again', async () => {
    const agents = createDevnetAgents(chain.devnet)
    const signer = privateKeyToAccount(deployed().accounts.agents[3]?.privateKey ?? '0x')
    const agentId = await agents.register('frontier', signer)
    const positionId = await agents.open(agentId, signer, { vault: 'frontier', symbol: 'NVDA', amount: 40_000_000n })
    const status = () => read<number>(contract('AgentRegistry'), agentRegistryAbi, 'statusOf', [agentId])
    expect(await refused('operator', 'force-close', `${positionId}`)).toMatchObject({
      code: 'AgentNotSuspended',
      remedy: 'Suspend the agent first: ats admin agent suspend <id>',
    })
    const suspended = await change('operator', 'agent', 'suspend', `${agentId}`)
    expect(suspended.plans[0].calls[0].changes).toEqual([{ value: 'statusOf', before: 'Active', after: 'Suspended' }])
    expect(await status()).toBe(AgentStatus.Suspended)
    // The pool's average reaches back two seconds, to before the purchase.
    await chain.devnet.increaseTime(3)
    await change('operator', 'force-close', `${positionId}`)
    const position = await chain.node.readContract({
      address: contract('PositionManager'),
      abi: positionManagerAbi,
      functionName: 'getPosition',
      args: [positionId],
    })
    expect(position.status).toBe(PositionStatus.Closed)
    await change('operator', 'agent', 'resume', `${agentId}`)
    expect(await status()).toBe(AgentStatus.Active)
  })

  it('ats admin deposits into a vault', async () => {
    const before = await read<bigint>(vault(), mandateVaultAbi, 'totalAssets')
    const { depositor } = deployed().accounts
    await chain.node.setBalance({ address: depositor.address, value: 10n ** 20n })
    const deposit = ['admin', 'deposit', 'genesis', '1000', ...options('depositor'), '--dry-run']
    const { allowed, plans } = await chain.ats.json(...deposit)
    expect({ allowed, plans }).toMatchObject({
      allowed: true,
      plans: [{ calls: [{ now: 'succeeds now' }, { now: 'is checked after the call before it' }] }],
    })
    const { sent } = await change('depositor', 'deposit', 'genesis', '1000')
    expect(sent).toHaveLength(2)
    // It runs in a later block than its estimate, and may need more there.
    const { gas } = await chain.node.getTransaction({ hash: sent[1].transactionHash })
    expect(gas).toBeGreaterThan((BigInt(sent[1].gasUsed) * 5n) / 4n)
    expect(await read<bigint>(vault(), mandateVaultAbi, 'totalAssets')).toBe(before + 1_000_000_000n)
    expect(await refused('keeper', 'deposit', 'genesis', '1000')).toMatchObject({ code: 'USDC_MISSING' })
  })

  it('ats admin posts a price, and one beyond the bound only by the forcer', async () => {
    const price = async () =>
      (await chain.node.readContract({ ...oracle(), functionName: 'peekPrice', args: [token('NVDA')] }))[0]
    await change('oracleUpdater', 'price', 'NVDA=181.5')
    expect(await price()).toBe(18_150_000_000n)
    expect(await refused('oracleUpdater', 'price', 'NVDA=400')).toMatchObject({
      code: 'DeviationTooLarge',
      remedy: expect.stringContaining('--force'),
    })
    await change('admin', 'price', 'NVDA=400', '--force')
    expect(await price()).toBe(40_000_000_000n)
    expect(await refused('oracleUpdater', 'price', 'NOPE=1')).toMatchObject({ exit: 2, code: 'PRICE_INVALID' })
  })

  it('ats admin schedules what only the admin may do, shows it in words, and executes it with the same command', async () => {
    const bounty = ['call', 'TradeRouter.setKeeperBounty(7, "1000000")']
    const router = () => read<bigint>(contract('TradeRouter'), tradeRouterAbi, 'keeperBountyBps')
    const planned = await chain.ats.json('admin', ...bounty, ...options('admin'), '--dry-run')
    expect(planned.plans).toMatchObject([
      {
        route: 'timelock',
        operation: { state: 'not scheduled', delaySeconds: `${TIMELOCK_DELAY}`, timelock: contract('Timelock') },
        calls: [
          {
            sentence: 'TradeRouter: set keeper bounty (bps: 7, max: 1000000)',
            changes: [
              { value: 'keeperBountyBps', before: '10', after: '7' },
              { value: 'maxKeeperBounty', before: '5000000', after: '1000000' },
            ],
            now: 'succeeds now',
          },
        ],
      },
    ])
    const { id } = planned.plans[0].operation
    await change('admin', ...bounty)
    const waiting = await change('admin', ...bounty)
    expect(waiting).toMatchObject({ sent: [], plans: [{ operation: { id, state: 'waiting' } }] })
    const list = await chain.ats.json('admin', 'timelock', 'list', '--vars', chain.varsWith())
    expect(list.operations).toMatchObject([
      {
        id,
        state: 'waiting',
        due: expect.stringMatching(/Z$/),
        calls: [{ changes: [{ before: '10', after: '7' }, {}] }],
      },
    ])
    await chain.devnet.increaseTime(TIMELOCK_DELAY)
    expect(await router()).toBe(10n)
    await change('admin', ...bounty)
    expect(await router()).toBe(7n)
    const done = await change('admin', ...bounty)
    expect(done).toMatchObject({
      sent: [],
      plans: [{ operation: { state: 'done' }, note: expect.stringContaining('--salt') }],
    })
  })

  it('ats admin cancels and executes operations that others scheduled', async () => {
    const admin = deployed().accounts.admin
    const pause = ['Timelock.updateDelay(259200)', 'Timelock.updateDelay(345600)']
    const ids: string[] = []
    for (const call of pause) ids.push((await change('admin', 'call', call)).plans[0].operation.id)
    const [first = '', second = ''] = ids
    await change('admin', 'timelock', 'cancel', first)
    expect(await refused('admin', 'timelock', 'execute', first)).toMatchObject({ code: 'OPERATION_UNKNOWN' })
    await chain.devnet.increaseTime(TIMELOCK_DELAY)
    await change('admin', 'timelock', 'execute', second)
    expect(await read(contract('Timelock'), timelockAbi, 'getMinDelay')).toBe(345_600n)
    expect(admin.address).toMatch(/^0x/)
  })

  it('ats admin plans for a multisig: the calldata to send, and nothing is sent', async () => {
    const multisig = deployed().accounts.admin.address
    const args = ['admin', 'grant', 'guardians', deployed().accounts.keeper.address]
    const plan = await chain.ats.json(...args, '--vars', chain.varsWith(), '--from', multisig)
    expect(plan).toMatchObject({ dryRun: true, allowed: true, sender: multisig })
    const [{ operation, transactions, calls }] = plan.plans
    expect(calls).toHaveLength(4)
    expect(transactions).toEqual([
      expect.objectContaining({ to: contract('Timelock'), data: operation.calldata.schedule }),
    ])
    expect(operation.calldata.execute).toMatch(/^0x/)
  })

  it('ats admin rotates a key with one command, and says which variable to change', async () => {
    const { oracleUpdater, keeper } = deployed().accounts
    const rotation = ['rotate', 'oracleUpdaters', '--from-account', oracleUpdater.address, '--to', keeper.address]
    const { next } = await change('admin', ...rotation)
    expect(next).toContainEqual(expect.stringContaining('npx wrangler secret put ORACLE_UPDATER_PRIVATE_KEY'))
    await chain.devnet.increaseTime(TIMELOCK_DELAY)
    await change('admin', ...rotation)
    expect(await hasRole('PriceOracle', 'ORACLE_UPDATER_ROLE', oracleUpdater.address)).toBe(false)
    expect(await hasRole('PriceOracle', 'ORACLE_UPDATER_ROLE', keeper.address)).toBe(true)
    const { roles } = await chain.ats.json('admin', 'roles', '--vars', chain.varsWith())
    expect(roles).toContainEqual({
      power: 'oracleUpdaters',
      contract: 'PriceOracle',
      role: 'ORACLE_UPDATER_ROLE',
      account: keeper.address,
    })
  })

  it('ats admin revokes a power, and names another relayer', async () => {
    const { executor, keeper } = deployed().accounts
    const commands = [
      ['revoke', 'executors', executor.address],
      ['grant', 'relayer', keeper.address],
    ]
    for (const command of commands) await change('admin', ...command)
    await chain.devnet.increaseTime(TIMELOCK_DELAY)
    for (const command of commands) await change('admin', ...command)
    expect(await hasRole('TradeRouter', 'EXECUTOR_ROLE', executor.address)).toBe(false)
    expect(await newRelayer()).toBe(keeper.address)
    expect(await refused('admin', 'revoke', 'relayer', keeper.address)).toMatchObject({ code: 'RELAYER_NEEDED' })
  })
  const newRelayer = () =>
    read<Address>(
      contract('FeeManager'),
      [
        {
          type: 'function',
          name: 'registrationFeeRelayer',
          inputs: [],
          outputs: [{ type: 'address' }],
          stateMutability: 'view',
        },
      ],
      'registrationFeeRelayer',
    )

  it('ats admin replaces the oracle and the router, each in the order that their contracts need', async () => {
    const sender = stepwiseSender(chain.devnet.client, deployed().accounts.payer.privateKey, {
      journal: { done: new Map(), add() {} },
      log() {},
    })
    const newOracle = getAddress(
      await sender.deploy({ name: 'PriceOracle', abi: priceOracleAbi, args: [sender.address] }),
    )
    const newRouter = getAddress(
      await sender.deploy({
        name: 'TradeRouter',
        abi: tradeRouterAbi,
        args: [
          sender.address,
          contract('USDC'),
          contract('AgentRegistry'),
          contract('AllocationManager'),
          contract('PositionManager'),
          contract('VaultTrackRegistry'),
          contract('TradePolicy'),
        ],
      }),
    )
    expect(await refused('admin', 'migrate-oracle', newOracle)).toMatchObject({ code: 'ADMIN_NOT_OFFERED' })
    for (const [address, abi] of [
      [newOracle, priceOracleAbi],
      [newRouter, tradeRouterAbi],
    ] as const)
      await sender.write({ address, abi, functionName: 'beginDefaultAdminTransfer', args: [contract('Timelock')] })

    await change('admin', 'migrate-oracle', newOracle)
    const granted = async () => {
      const { error, code } = await refused('admin', 'migrate-router', newRouter)
      expect(code).toBe('ROLES_MISSING')
      for (const [, role = '', account] of `${error}`.matchAll(/(\w+_ROLE) of (0x\w{40})/g)) {
        const args = [keccak256(stringToHex(role)), account as Address] as const
        await sender.write({ address: newRouter, abi: tradeRouterAbi, functionName: 'grantRole', args })
      }
      return error
    }
    expect(await granted()).toContain(`EXECUTOR_ROLE of ${contract('OrderBook')}`)
    await change('admin', 'migrate-router', newRouter)
    await chain.devnet.increaseTime(TIMELOCK_DELAY)
    await change('admin', 'migrate-oracle', newOracle)
    expect(await read(vault(), mandateVaultAbi, 'priceOracle')).toBe(newOracle)
    expect(await read(newOracle, priceOracleAbi, 'defaultAdmin')).toBe(contract('Timelock'))
    const inherited = await chain.node.readContract({
      address: newOracle,
      abi: priceOracleAbi,
      functionName: 'peekPrice',
      args: [token('NVDA')],
    })
    expect(inherited[0]).toBe(18_025_000_000n)

    await change('admin', 'migrate-router', newRouter)
    expect(await read(vault(), mandateVaultAbi, 'tradeRouter')).toBe(newRouter)
    expect(await read(contract('PositionManager'), positionManagerAbi, 'tradeRouter')).toBe(newRouter)
    expect(await read(newRouter, tradeRouterAbi, 'defaultAdmin')).toBe(contract('Timelock'))
  })

  it('ats admin explains calls that fit no contract', async () => {
    expect(await refused('admin', 'call', 'TradeRouter.fly()')).toMatchObject({ exit: 2, code: 'CALL_INVALID' })
    expect(await refused('admin', 'call', 'Kitchen.cook()')).toMatchObject({ exit: 2, code: 'CONTRACT_UNKNOWN' })
    const inexact = 'TradeRouter.setKeeperBounty(7, 1000000000000000001)'
    expect(await refused('admin', 'call', inexact)).toMatchObject({
      code: 'CALL_INVALID',
      error: expect.stringContaining('write its digits in quotes'),
    })
    expect(await refused('admin', 'call', 'nothing')).toMatchObject({ exit: 2, code: 'CALL_INVALID' })
    expect(await refused('admin', 'grant', 'kings', zeroHash.slice(0, 42))).toMatchObject({ code: 'POWER_UNKNOWN' })
  })
})
