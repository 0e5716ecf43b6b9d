import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, createPublicClient, http, parseEventLogs, parseUnits, type TransactionReceipt } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { erc8004IdentityRegistryAbi } from '../contracts-abi/erc8004-identity-registry.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { ownerControlsAbi } from '../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../contracts-abi/position-manager.ts'
import { promotionCriteriaAbi } from '../contracts-abi/promotion-criteria.ts'
import { quoterV2Abi } from '../contracts-abi/quoter-v2.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import { vaultTrackRegistryAbi } from '../contracts-abi/vault-track-registry.ts'
import { createDevnetAgents, type DevnetAgents } from '../test/support/devnet-agents.ts'
import { type Account, devnetAccounts } from './accounts.ts'
import { startAnvil } from './anvil.ts'
import { type Devnet, startDevnet } from './index.ts'

const CHAIN_ID = 421614
const SIMULATED = 0
const REAL = 1
const usdc = (amount: string) => parseUnits(amount, 6)

let devnet: Devnet
let agents: DevnetAgents
beforeAll(async () => {
  devnet = await startDevnet({ chainId: CHAIN_ID })
  agents = createDevnetAgents(devnet)
})
afterAll(() => devnet?.stop())

test('an agent of the frontier vault trades its capital on the real pool and is stopped out after a price drop', async () => {
  const { accounts, contracts, vaults, tokens } = devnet.deployment
  const agentId = await agents.register('frontier', account(1))
  const positionId = await agents.open(agentId, account(1), { vault: 'frontier', symbol: 'NVDA', amount: usdc('1000') })
  const position = { address: contracts.PositionManager, abi: positionManagerAbi, args: [positionId] } as const

  const opened = await devnet.client.readContract({ ...position, functionName: 'getPosition' })
  expect(await devnet.client.readContract({ ...position, functionName: 'capitalModeOf' })).toBe(REAL)
  expect(opened).toMatchObject({ agentId, vault: vaults.frontier, token: tokens.NVDA, usdcCostBasis: usdc('1000') })
  // the oracle's 180.25 plus the 0.05 % pool fee and some price impact
  expect(Number(opened.entryPriceUsdc)).toBeGreaterThan(180.25e6)
  expect(Number(opened.entryPriceUsdc)).toBeLessThan(180.25e6 * 1.001)

  const exit = { address: contracts.TradeRouter, abi: tradeRouterAbi, functionName: 'executeExit' } as const
  await expect(devnet.send(accounts.keeper, { ...exit, args: [positionId] })).rejects.toThrow('TriggerNotMet')
  await devnet.setPrice('NVDA', 150)
  const { logs } = await devnet.send(accounts.keeper, { ...exit, args: [positionId] })
  const [executed] = parseEventLogs({ abi: tradeRouterAbi, logs, eventName: 'ExitExecuted' })
  expect(executed?.args).toMatchObject({ positionId, agentId, ruleIndex: 0, keeper: accounts.keeper.address })

  const closed = await devnet.client.readContract({ ...position, functionName: 'getPosition' })
  expect(closed.status).toBe(1)
  const loss = Number(closed.realizedPnlUsdc) / 1e6
  expect(loss).toBeLessThan(-160)
  expect(loss).toBeGreaterThan(-172)
})

test('an agent of the genesis vault proves itself on paper, is promoted once its owner locks shares, and trades its capital', async () => {
  const { accounts, contracts, vaults, tokens } = devnet.deployment
  const assets = { address: vaults.genesis ?? '0x', abi: mandateVaultAbi } as const
  const held = async () =>
    Promise.all([
      devnet.client.readContract({ ...assets, functionName: 'totalAssets' }),
      devnet.client.readContract({ ...assets, functionName: 'tokenLedger', args: [tokens.AAPL ?? '0x'] }),
    ])
  const before = await held()
  const registry = {
    address: contracts.AgentRegistry,
    abi: [...agentRegistryAbi, ...promotionCriteriaAbi], // the criteria's errors come through
  } as const
  const agentId = await agents.register('genesis', account(3))
  const promote = { ...registry, functionName: 'promoteAgent', args: [agentId, 1] } as const
  await expect(devnet.send(accounts.keeper, promote)).rejects.toThrow('TooFewTrades')
  // The embedded chain's own period is a minute, which may pass during the trades.
  const tracks = { address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
  const track = [assets.address, 0n] as const
  const policy = await devnet.client.readContract({ ...tracks, functionName: 'getVaultTrackConfig', args: track })
  const longer = [...track, { ...policy, evaluationPeriod: 3_600n }] as const
  await devnet.administer({ ...tracks, functionName: 'setVaultTrackConfig', args: longer })

  for (let nonce = 0n; nonce < 2n; nonce++) {
    const positionId = await agents.open(agentId, account(3), { symbol: 'AAPL', amount: usdc('2000'), nonce })
    const position = { address: contracts.PositionManager, abi: positionManagerAbi, args: [positionId] } as const
    expect(await devnet.client.readContract({ ...position, functionName: 'capitalModeOf' })).toBe(SIMULATED)
    await devnet.setPrice('AAPL', nonce === 0n ? 320 : 380)
    const exit = { address: contracts.TradeRouter, abi: tradeRouterAbi, functionName: 'executeExit' } as const
    await devnet.send(accounts.keeper, { ...exit, args: [positionId] })
  }
  expect(await held()).toEqual(before)
  await devnet.setPrice('AAPL', 271.4)

  await expect(devnet.send(accounts.keeper, promote)).rejects.toThrow('EvaluationPeriodNotOver')
  await devnet.increaseTime(3_600)
  await expect(devnet.send(accounts.keeper, promote)).rejects.toThrow('FirstLossMissing')
  const owner = accounts.agents[3] as Account
  const amount = usdc('6001')
  await devnet.fund(owner.address, amount)
  const token = { address: contracts.USDC, abi: usdcTokenAbi } as const
  await devnet.send(owner, { ...token, functionName: 'approve', args: [assets.address, amount] })
  await devnet.send(owner, { ...assets, functionName: 'deposit', args: [amount, owner.address] })
  const shares = await devnet.client.readContract({ ...assets, functionName: 'balanceOf', args: [owner.address] })
  await devnet.send(owner, {
    address: contracts.OwnerControls as Address,
    abi: ownerControlsAbi,
    functionName: 'lockFirstLoss',
    args: [agentId, shares, 0n, 4_102_444_800n, '0x'], // its own call needs no signature
  })
  await devnet.send(accounts.keeper, promote)
  const positionId = await agents.open(agentId, account(3), { symbol: 'AAPL', amount: usdc('2000'), nonce: 2n })
  const position = { address: contracts.PositionManager, abi: positionManagerAbi, args: [positionId] } as const
  expect(await devnet.client.readContract({ ...position, functionName: 'capitalModeOf' })).toBe(REAL)
  const [, ledger] = await held()
  expect(ledger).toBeGreaterThan(0n)
})

test('shares redeem after the holding time, and the admin acts through the timelock', async () => {
  const { accounts, contracts, vaults } = devnet.deployment
  const address = vaults.frontier ?? '0x'
  const vault = { address, abi: mandateVaultAbi } as const
  const [payer, amount] = [accounts.payer, usdc('100')]
  const token = { address: contracts.USDC, abi: usdcTokenAbi } as const
  // The embedded chain's own holding time is a few seconds, which may pass before the first attempt.
  const policy = await devnet.client.readContract({ ...vault, functionName: 'liquidityPolicy' })
  const longer = [{ ...policy, holdingTime: 3_600 }] as const
  await devnet.administer({ ...vault, functionName: 'setLiquidityPolicy', args: longer })
  await devnet.send(payer, { ...token, functionName: 'approve', args: [address, amount] })
  await devnet.send(payer, { ...vault, functionName: 'deposit', args: [amount, payer.address] })
  const shares = await devnet.client.readContract({ ...vault, functionName: 'balanceOf', args: [payer.address] })
  const redeem = { ...vault, functionName: 'redeem', args: [shares, payer.address, payer.address] } as const
  await expect(devnet.send(payer, redeem)).rejects.toThrow('ERC4626ExceededMaxRedeem')
  await devnet.increaseTime(4_050) // an eighth of the holding time may be added
  await devnet.send(payer, redeem)

  const change = { ...vault, functionName: 'setMaxPriceAge', args: [3600n] } as const
  await expect(devnet.send(accounts.admin, change)).rejects.toThrow('AccessControlUnauthorizedAccount')
  await devnet.administer(change)
  expect(await devnet.client.readContract({ ...vault, functionName: 'maxPriceAge' })).toBe(3600n)
})

test('a chain can be deployed with the functions of the protocol alone', async () => {
  const other = await startDevnet({ protocolOnly: true })
  try {
    const { contracts, vaults, accounts } = other.deployment
    expect(contracts).not.toHaveProperty('TradePolicy')
    const vault = { address: vaults.genesis ?? '0x', abi: mandateVaultAbi } as const
    expect(await other.client.readContract({ ...vault, functionName: 'totalAssets' })).toBe(usdc('1000000'))
    await expect(other.client.readContract({ ...vault, functionName: 'liquidityPolicy' })).rejects.toThrow()
    await other.administer({ ...vault, functionName: 'setMaxPriceAge', args: [3600n] })
    await other.send(accounts.operator, { ...vault, functionName: 'setTradingPaused', args: [true] })
    expect(await other.setPrice('NVDA', 150)).toMatchObject({ by: 'updater' })
  } finally {
    await other.stop()
  }
})

test("each vault holds its deposits, and every pool trades at its token's oracle price", async () => {
  const { contracts, vaults, tokens } = devnet.deployment
  const assets = async (vault: Address | undefined) =>
    devnet.client.readContract({ address: vault ?? '0x', abi: mandateVaultAbi, functionName: 'totalAssets' })
  expect(Number(await assets(vaults.genesis))).toBeGreaterThan(999_000e6)
  expect(Number(await assets(vaults.frontier))).toBeGreaterThan(399_000e6)
  expect(Object.keys(tokens)).toHaveLength(11)
  for (const [symbol, price] of [
    ['TSLA', 421.3],
    ['COIN', 332.87],
    ['HOOD', 138.6],
  ] as const) {
    const { result } = await devnet.client.simulateContract({
      address: contracts.QuoterV2,
      abi: quoterV2Abi,
      functionName: 'quoteExactInputSingle',
      args: [
        {
          tokenIn: contracts.USDC,
          tokenOut: tokens[symbol] ?? '0x',
          amountIn: usdc('1000'),
          fee: symbol === 'TSLA' ? 500 : 3000,
          sqrtPriceLimitX96: 0n,
        },
      ],
    })
    const decimals = { TSLA: 8, COIN: 6, HOOD: 18 }[symbol]
    expect((1000 / Number(result[0])) * 10 ** decimals).toBeCloseTo(price * (symbol === 'TSLA' ? 1.0005 : 1.003), 0)
  }
})

test('a thin pool rejects a trade whose slippage is too high, and no agent signs more slippage than the policy allows', async () => {
  const agentId = await agents.register('genesis', account(2))
  const trade = { symbol: 'COST', amount: usdc('1000') }
  await expect(agents.open(agentId, account(2), trade)).rejects.toThrow('SlippageExceeded')
  await expect(agents.open(agentId, account(2), { ...trade, maxSlippageBps: 1_500 })).rejects.toThrow(
    'SlippageAboveLimit',
  )
  await agents.open(agentId, account(2), { ...trade, amount: usdc('20') })
})

test('the pool follows a price far beyond the deviation bound', async () => {
  const up = await devnet.setPrice('HOOD', 1386)
  expect(up).toMatchObject({ by: 'forcer', from: 13_860_000_000n, to: 138_600_000_000n })
  expect(await devnet.setPrice('HOOD', '1400.5')).toMatchObject({ by: 'updater' })
  await expect(devnet.setPrice('NONE', 1)).rejects.toThrow('There is no token NONE')
  await expect(devnet.setPrice('HOOD', 0)).rejects.toThrow('is not a price')
})

test('a transaction is mined within a quarter of a second, and blocks follow without one', async () => {
  const { client } = devnet
  const head = Number(await client.getBlockNumber())
  const numbers = Array.from({ length: head }, (_, index) => BigInt(head - index))
  const blocks = await Promise.all(numbers.map(blockNumber => client.getBlock({ blockNumber })))
  const { full = [], empty = [] } = Object.groupBy(blocks, ({ transactions }) =>
    transactions.length > 0 ? 'full' : 'empty',
  )
  // While the machine is busy, blocks come later. Of the blocks so far, some came in time: three in one second.
  const inOneSecond = [...Map.groupBy(full, ({ timestamp }) => timestamp).values()].map(({ length }) => length)
  expect(Math.max(...inOneSecond)).toBeGreaterThanOrEqual(3)
  expect(empty.length).toBeGreaterThan(0)
})

test('a transaction stays pending while mining is paused', async () => {
  const anvil = await startAnvil()
  try {
    const client = createPublicClient({ transport: http(anvil.rpcUrl), pollingInterval: 100 })
    await anvil.setMining(false)
    const { address, privateKey } = devnetAccounts().payer
    const still = await client.getBlockNumber()
    const hash = await client.sendRawTransaction({
      serializedTransaction: await privateKeyToAccount(privateKey).signTransaction({
        chainId: anvil.chainId,
        type: 'eip1559',
        to: address,
        gas: 21_000n,
        nonce: 0,
        maxFeePerGas: 100_000_000_000n,
      }),
    })
    await expect(client.waitForTransactionReceipt({ hash, timeout: 800 })).rejects.toThrow('Timed out')
    expect(await client.getTransaction({ hash })).toMatchObject({ blockNumber: null })
    expect(await client.getBlockNumber()).toBe(still)

    await anvil.setMining(true)
    expect(await client.waitForTransactionReceipt({ hash, timeout: 30_000 })).toMatchObject({ status: 'success' })
  } finally {
    await anvil.stop()
  }
})

test('a reorg removes what the chain has done, and the chain goes on', async () => {
  const { client, deployment, reorg } = devnet
  const { address, privateKey } = deployment.accounts.agents[2] as { address: Address; privateKey: `0x${string}` }
  const nonce = await client.getTransactionCount({ address })
  const serializedTransaction = await privateKeyToAccount(privateKey).signTransaction({
    chainId: CHAIN_ID,
    type: 'eip1559',
    to: address,
    gas: 21_000n,
    nonce,
    maxFeePerGas: 100_000_000_000n,
  })
  const send = async () => {
    const hash = await client.sendRawTransaction({ serializedTransaction })
    return client.waitForTransactionReceipt({ hash, pollingInterval: 50 })
  }
  const mined: TransactionReceipt[] = []
  expect(await reorg(async () => mined.push(await send()))).toBeGreaterThan(0)
  const { transactionHash: hash, blockNumber, blockHash } = mined[0] as TransactionReceipt
  await expect(client.getTransactionReceipt({ hash })).rejects.toThrow('could not be found')
  expect(await client.getTransactionCount({ address })).toBe(nonce)
  await send()
  while ((await client.getBlockNumber({ cacheTime: 0 })) <= blockNumber) await sleep(50)
  expect((await client.getBlock({ blockNumber })).hash).not.toBe(blockHash)
})

test('concurrent transactions of many accounts are all mined', async () => {
  const { client, deployment } = devnet
  const hashes = await Promise.all(
    deployment.accounts.agents.slice(4, 12).map(async ({ address, privateKey }) => {
      const nonce = await client.getTransactionCount({ address })
      const raws = Array.from({ length: 50 }, (_, index) =>
        privateKeyToAccount(privateKey).signTransaction({
          chainId: CHAIN_ID,
          type: 'eip1559',
          to: address,
          gas: 21_000n,
          nonce: nonce + index,
          maxFeePerGas: 100_000_000_000n,
        }),
      )
      return Promise.all(raws.map(async raw => client.sendRawTransaction({ serializedTransaction: await raw })))
    }),
  )
  const receipts = await Promise.all(hashes.flat().map(hash => client.waitForTransactionReceipt({ hash, timeout: 0 })))
  expect(receipts.every(({ status }) => status === 'success')).toBe(true)
})

test('the first agent account holds identity 0', async () => {
  const { contracts, accounts } = devnet.deployment
  const owner = await devnet.client.readContract({
    address: contracts.ERC8004IdentityRegistry,
    abi: erc8004IdentityRegistryAbi,
    functionName: 'ownerOf',
    args: [0n],
  })
  expect(owner).toBe(accounts.agents[0]?.address)
})

test('two devnets run side by side, with the same addresses', async () => {
  const other = await startDevnet()
  expect(other.rpcUrl).not.toBe(devnet.rpcUrl)
  expect(other.deployment.contracts).toEqual(devnet.deployment.contracts)
  await other.stop()
  expect(await other.exited).toBeUndefined()
  await expect(fetch(other.rpcUrl)).rejects.toThrow()
})

test.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)('the node exits with its parent after %s', async signal => {
  const script = join(import.meta.dirname, 'anvil.ts')
  const child = spawn(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `const { rpcUrl } = await (await import(${JSON.stringify(script)})).startAnvil(); console.log(rpcUrl)`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [line] = await once(child.stdout, 'data')
  const rpcUrl = String(line).trim()
  await expect(fetch(rpcUrl, { method: 'POST', body: '{}' })).resolves.toBeDefined()

  child.kill(signal)
  await once(child, 'exit')
  await expect
    .poll(
      () =>
        fetch(rpcUrl).then(
          () => 'running',
          () => 'exited',
        ),
      { timeout: 240_000 },
    )
    .toBe('exited')
})

test('the committed bytecode includes the contracts of the deployment', () => {
  const bytecode = JSON.parse(readFileSync(join(import.meta.dirname, '../contracts/bytecode.json'), 'utf8'))
  expect(Object.keys(bytecode)).toEqual(expect.arrayContaining(['TradeRouter', 'MandateVault', 'UsdcToken', 'WETH9']))
})

function account(index: number) {
  const { privateKey } = devnet.deployment.accounts.agents[index] ?? {}
  if (!privateKey) throw new Error(`There is no agent account ${index}.`)
  return privateKeyToAccount(privateKey)
}
