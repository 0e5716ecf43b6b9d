import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import {
  type Address,
  createTestClient,
  encodeFunctionData,
  type Hex,
  http,
  numberToHex,
  publicActions,
  walletActions,
  zeroHash,
} from 'viem'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { timelockAbi } from '../../contracts-abi/timelock.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { checkpointSharePrices } from '../../src/scheduled/checkpoint-share-prices.ts'
import { chain } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, callOverHttp as call, deployment, request } from '../support/surfaces.ts'

// HTTP only: readiness is no tool. http-surface.test.ts has what it says about configuration and pauses.

const { accounts, vaults, contracts, rpcUrl } = deployment
const node = createTestClient({ mode: 'anvil', transport: http(rpcUrl), pollingInterval: 50 })
  .extend(publicActions)
  .extend(walletActions)
afterEach(() => vi.restoreAllMocks())

describe('readiness', () => {
  it('readiness is refused if no executor account has its role', async () => {
    const { status, body } = await call(
      'getReadiness',
      {},
      appWith({ EXECUTOR_PRIVATE_KEY: accounts.relayer.privateKey }),
    )
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 'NOT_READY' } })
    expect(body.details.problem).toContain('no executor account has EXECUTOR_ROLE')
    expect(body.details.executor.lanes).toMatchObject([{ address: accounts.relayer.address, hasRole: false }])
  })

  it('readiness names the relayer and the updater that lack their role', async () => {
    const swapped = {
      RELAYER_PRIVATE_KEY: accounts.oracleUpdater.privateKey,
      ORACLE_UPDATER_PRIVATE_KEY: accounts.executor.privateKey,
    }
    const { status, body } = await call('getReadiness', {}, appWith(swapped))
    expect({ status, body }).toMatchObject({ status: 200 })
    expect(body.problems).toContain(
      `accounts lack their role: ${accounts.executor.address}, ${accounts.oracleUpdater.address}`,
    )
    expect(body.findings).toContainEqual({
      check: 'role',
      subject: accounts.executor.address,
      verdict: 'wrong',
      sentence: `The updater ${accounts.executor.address} lacks ORACLE_UPDATER_ROLE of PriceOracle.`,
      fix: `ats admin grant oracleUpdaters ${accounts.executor.address}`,
    })
    expect((await call('getReadiness')).body.findings).toEqual([])
  })

  it('readiness names a reporter that has nowhere to post to', async () => {
    expect((await call('getReadiness')).body.reporter).toMatchObject({
      configured: true,
      lanes: [{ address: accounts.reporter.address, hasRole: true, paused: false }],
    })
    const { ERC8004ReputationRegistry: _, ...others } = contracts
    const tested = appWith({ CONTRACTS: JSON.stringify(others) })
    const problem = 'the reporter has no reputation registry or no base URL'
    expect((await call('getReadiness', {}, tested)).body.problems).toContain(problem)
    expect((await call('getDiscovery', {}, tested)).body.features.feedback).toBe(false)
  })

  it('readiness names a vault without idle USDC', async () => {
    const vault = vaults.frontier as Address
    const idle = await node.readContract({ address: vault, abi: mandateVaultAbi, functionName: 'idleAssets' })
    const router = contracts.TradeRouter as Address
    const holder = accounts.depositor.address
    await sendAs(router, vault, { functionName: 'pullAssetsForTrade', args: [holder, idle] })
    try {
      const { body } = await call('getReadiness')
      expect((body.details ?? body).vaults).toEqual({ withoutIdle: ['frontier'] })
      expect(body.problems).toContain('vaults have no idle USDC: frontier')
    } finally {
      const usdc = contracts.USDC as Address
      await sendAs(holder, usdc, { functionName: 'transfer', args: [vault, idle] })
      await sendAs(router, vault, { functionName: 'recordReceived', args: [usdc, idle] })
    }
    expect((await call('getReadiness')).body.vaults).toEqual({ withoutIdle: [] })
  })

  it('readiness says that the event streams do not follow the index', async () => {
    const streams = env.EVENT_STREAMS.getByName(`${deployment.chainId}`)
    const renameTable = (from: string, to: string) =>
      runInDurableObject(streams, (_, { storage }) => void storage.sql.exec(`ALTER TABLE ${from} RENAME TO ${to}`))
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    expect(await streams.advance()).toBe(true)
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await renameTable('entry', 'lost')
    await chain.refreshPrices() // so that there are events to log
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    await streams.advance()
    expect((await call('getReadiness')).body).toMatchObject({
      events: { failing: true },
      problems: expect.arrayContaining(['the event streams do not follow the index']),
    })
    await renameTable('lost', 'entry')
    await streams.advance()
    expect((await call('getReadiness')).body.events.failing).toBe(false)
  })

  it('readiness shows balances only with the secret of the operator', async () => {
    const tested = appWith({ OPERATOR_SECRET: 'operator' })
    const balancesFor = async (headers: Record<string, string>) => {
      const body = (await (await request('/health/ready', { headers }, tested)).json()) as Record<string, Lanes>
      return ['executor', 'relayer', 'updater', 'reporter'].flatMap(group =>
        body[group]?.lanes.map(lane => lane.balanceWei),
      )
    }
    expect(await balancesFor({})).toEqual([null, null, null, null])
    expect(await balancesFor({ authorization: 'Bearer other' })).toEqual([null, null, null, null])
    for (const balance of await balancesFor({ authorization: 'Bearer operator' })) expect(balance).toMatch(/^[1-9]\d+$/)
    expect((await call('getReadiness')).body.executor.lanes[0].balanceWei).toBeNull()
  })

  it('readiness names a migration that the database lacks, because its file was renamed', async () => {
    const rename = (from: string, to: string) =>
      env.HISTORY.prepare('UPDATE d1_migrations SET name = ?1 WHERE name = ?2').bind(to, from).run()
    const operated = appWith({ OPERATOR_SECRET: 'operator' })
    const headers = { authorization: 'Bearer operator' }
    const index = async () =>
      ((await (await request('/operator/index', { headers }, operated)).json()) as Body).migrations
    const { applied } = await index()
    await rename(applied[0], 'before.sql')
    expect(await index()).toMatchObject({ pending: [applied[0]], unknown: ['before.sql'] })
    const { body } = await call('getReadiness')
    expect(body.history.pendingMigrations).toEqual([applied[0]])
    expect(body.problems).toContain(`the database of the index lacks migrations: ${applied[0]}`)
    await rename('before.sql', applied[0])
    expect((await call('getReadiness')).body.history.pendingMigrations).toEqual([])
  })

  it('readiness and metrics name an operation of the timelock until it is announced, executed or cancelled', async () => {
    const timelock = { address: contracts.Timelock as Address, abi: timelockAbi }
    const salt = numberToHex(Date.now(), { size: 32 })
    const operation = [contracts.FeeManager as Address, 0n, '0x', zeroHash, salt] as const
    const id = await node.readContract({ ...timelock, functionName: 'hashOperation', args: operation })
    const send = async (functionName: 'schedule' | 'cancel') => {
      const write =
        functionName === 'schedule'
          ? { functionName, args: [...operation, 86_400n] as const }
          : { functionName, args: [id] as const }
      const data = encodeFunctionData({ abi: timelockAbi, ...write } as never)
      await sendData(accounts.admin.address, timelock.address, data)
      await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    }
    const shown = async (changes = {}) => {
      const { body } = await call('getReadiness', {}, appWith(changes))
      return { timelock: body.timelock, problem: body.problems.find((problem: string) => problem.includes(id)) }
    }
    await send('schedule')
    expect(await shown()).toEqual({
      timelock: { pending: 1, unannounced: [id] },
      problem: `the timelock has the operation ${id}, which ANNOUNCED_OPERATIONS does not name: cancel it unless you scheduled it`,
    })
    expect(await shown({ ANNOUNCED_OPERATIONS: id })).toEqual({ timelock: { pending: 1, unannounced: [] } })
    const tested = appWith({ OPERATOR_SECRET: 'operator' })
    const scrape = await request('/metrics', { headers: { authorization: 'Bearer operator' } }, tested)
    expect(new TextDecoder().decode(await scrape.arrayBuffer())).toContain('ats_timelock_operations{announced="no"} 1')
    await send('cancel')
    await send('schedule') // an operation that was cancelled may come again
    expect((await shown()).timelock).toEqual({ pending: 1, unannounced: [id] })
    await send('cancel')
    expect(await shown()).toEqual({ timelock: { pending: 0, unannounced: [] } })
  })

  it('readiness names a watched account that cannot pay for gas', async () => {
    const guardian = '0x00000000000000000000000000000000000A11cE'
    const watching = appWith({
      WATCHED_ACCOUNTS: JSON.stringify({ guardians: guardian, admin: accounts.admin.address }),
    })
    const { body } = await call('getReadiness', {}, watching)
    expect(body.problems).toContain(`guardians ${guardian} has ether for 0 transactions, expected 20 or more`)
    expect(body.problems.filter((problem: string) => problem.startsWith('admin '))).toEqual([])
  })

  it("the updater records each vault's share price once when its anchor is a day old", async () => {
    const context = createContext(parseConfig(workerVars(deployment)), env)
    const tomorrow = ({ timestamp }: { timestamp: bigint }) => timestamp + 86_400n
    const sent = () => node.getTransactionCount({ address: accounts.oracleUpdater.address })
    const before = await sent()
    await checkpointSharePrices(context)
    expect(await sent()).toBe(before)
    await checkpointSharePrices(context, tomorrow)
    const { number } = await node.getBlock()
    const recorded = await sent()
    expect(recorded).toBeGreaterThan(before)
    const { transactions } = await node.getBlock({ blockNumber: number, includeTransactions: true })
    for (const { from, to } of transactions.filter(({ from }) => from === accounts.oracleUpdater.address.toLowerCase()))
      expect(
        Object.values(vaults).map(vault => vault?.toLowerCase()),
        from,
      ).toContain(to)
    await checkpointSharePrices(context, tomorrow)
    expect(await sent()).toBe(recorded)
  })

  it('readiness costs a stranger in a loop nothing', async () => {
    const url = `${rpcUrl}/readiness`
    const requests = vi.fn()
    const original = globalThis.fetch.bind(globalThis)
    vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
      if (!String(input).startsWith(url)) return original(input as RequestInfo, init as RequestInit)
      requests()
      return original(rpcUrl, init as RequestInit)
    })
    const tested = appWith({ RPC_URL: url, READ_LEASE_MS: '100' })
    await call('getReadiness', {}, tested)
    const once = requests.mock.calls.length
    const since = Date.now()
    for (let times = 0; times < 30; times++) await call('getReadiness', {}, tested)
    await Promise.all(Array.from({ length: 30 }, () => call('getReadiness', {}, tested)))
    const readings = 1 + Math.ceil((Date.now() - since) / 2_000)
    expect(requests.mock.calls.length).toBeLessThanOrEqual(once * readings)
  })
})

type Lanes = { lanes: { balanceWei: string | null }[] }

type VaultCall = { functionName: 'pullAssetsForTrade' | 'transfer' | 'recordReceived'; args: [Address, bigint] }

/** Calls a function of the vault, which has those of an ERC-20 token too, from any account. */
async function sendAs(account: Address, to: Address, call: VaultCall) {
  await node.impersonateAccount({ address: account })
  await node.setBalance({ address: account, value: 10n ** 22n })
  await sendData(account, to, encodeFunctionData({ abi: mandateVaultAbi, ...call }))
}

async function sendData(account: Address, to: Address, data: Hex) {
  await node.impersonateAccount({ address: account })
  const hash = await node.sendTransaction({ account, chain: null, to, data })
  await node.waitForTransactionReceipt({ hash })
  await node.stopImpersonatingAccount({ address: account })
}
