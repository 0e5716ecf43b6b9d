import type { Browser } from 'playwright-core'
import { decodeFunctionData, type Hex, parseUnits } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceCarrierAbi } from '../../contracts-abi/price-carrier.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { startProxy } from '../client/proxy.ts'
import { type Ats, createAts } from '../support/ats.ts'
import { createScene } from '../support/scene.ts'
import { launchBrowser } from './browser.ts'
import { injectWallet, WALLET_NAME } from './test-wallet.ts'
import { closeContext, openPage } from './watched-page.ts'

// Depositors of a vault whose prices are signed reports, as on the demo's chain, after a day on which nobody traded.

let devnet: Devnet
let worker: Worker
let ats: Ats
let browser: Browser

beforeAll(async () => {
  const port = await freePort()
  devnet = await startDevnet({ baseUrl: `http://127.0.0.1:${port}`, priceSource: 'reports' })
  worker = await startWorker({ port, vars: { ...workerVars(devnet.deployment), KEEPER_ENABLED: 'false' } })
  ats = createAts({ ATS_URL: worker.url, ATS_KEY: 'payer', ATS_RPC: devnet.rpcUrl })
  await ats.importKey('payer', devnet.deployment.accounts.payer.privateKey)
  const { register, trade } = createScene(worker.url, devnet.deployment)
  const agent = await register(1, 'Holder', 'frontier')
  await trade(agent, 'open', { symbol: 'NVDA', usdcAmount: '200', exits: '-2000:10000' })
  browser = await launchBrowser()
})
afterAll(async () => {
  ats?.remove()
  await browser?.close()
  await worker?.stop()
  await devnet?.stop()
})
beforeEach(async () => {
  await devnet.increaseTime(86_400)
  const { contracts, tokens } = devnet.deployment
  const args = [tokens.NVDA ?? '0x', 3_600n] as const
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
  expect(await devnet.client.readContract({ ...oracle, functionName: 'isStale', args })).toBe(true)
})

/** Returns the call inside a transaction that brings prices along, with the reports that it brings. */
async function carriedBy(hash: Hex) {
  const { to, input, value } = await devnet.client.getTransaction({ hash })
  const { args } = decodeFunctionData({ abi: priceCarrierAbi, data: input })
  const [reports, feeds, oracle, call] = args
  return { to, value, reports, feeds, oracle, call: decodeFunctionData({ abi: mandateVaultAbi, data: call }) }
}
const vault = () => devnet.deployment.vaults.frontier?.toLowerCase()
const payer = () => devnet.deployment.accounts.payer.address

it('depositors with ats bring the newest reports along and send exactly what they asked for', async () => {
  const deposit = await ats.json(['vault', 'deposit', 'frontier', '100', '--yes'])
  const carried = await carriedBy(deposit.transactionHash)
  expect(carried).toMatchObject({
    to: vault(),
    value: 0n,
    oracle: devnet.deployment.contracts.PriceOracle,
    call: { functionName: 'deposit', args: [parseUnits('100', 6), payer()] },
  })
  expect(carried.reports).toHaveLength(1)

  await devnet.increaseTime(86_400)
  const redeem = await ats.json(['vault', 'redeem', 'frontier', '10', '--yes'])
  expect(await carriedBy(redeem.transactionHash)).toMatchObject({
    to: vault(),
    call: { functionName: 'redeem', args: [parseUnits('10', 12), payer(), payer()] },
  })
})

it('depositors with ats send nothing when a lying service chooses the prices', async () => {
  const service = await startProxy(worker.url)
  const response = await fetch(`${worker.url}/prices/reports?vault=frontier`)
  const { reports: old } = (await response.json()) as { reports: Hex[] }
  await devnet.increaseTime(86_400)
  let lie: Record<string, unknown> = {}
  service.set({
    onResponse({ path }, response) {
      if (path.startsWith('/prices/reports')) Object.assign(response.body, lie)
      return response
    },
  })
  const deposit = ['vault', 'deposit', 'frontier', '10', '--yes']
  const env = { ATS_URL: service.url }
  for (const [reports, problem] of [
    [old, 'seconds old'],
    [['0x1234'], 'cannot be decoded'],
    [Array.from({ length: 65 }, () => '0x12'), '65 prices'],
    [[`0x${'00'.repeat(5_000)}`], '5000 bytes'],
  ] as const) {
    lie = { reports }
    const failure = await ats.failure(deposit, { env })
    expect(failure).toMatchObject({ code: 'PRICES_MISMATCH', error: expect.stringContaining(problem) })
  }
  lie = { reports: [], oracle: payer(), call: '0x12345678' }
  const { transactionHash } = await ats.json(deposit, { env })
  const { to, input } = await devnet.client.getTransaction({ hash: transactionHash })
  const sent = decodeFunctionData({ abi: mandateVaultAbi, data: input })
  expect({ to, ...sent }).toMatchObject({ to: vault(), functionName: 'deposit', args: [parseUnits('10', 6), payer()] })
  await service.stop()
})

it('depositors at the desk see their worth at the newest reports, and the wallet sends them along', async () => {
  const { page, problems } = await openPage(browser)
  await injectWallet(page, devnet.deployment.accounts.payer, devnet.deployment)
  await page.goto(`${worker.url}/app/depositor?vault=frontier`)
  await page.getByRole('button', { name: `Connect ${WALLET_NAME}` }).click()
  await page.getByLabel('Amount, USDC', { exact: true }).fill('25')
  await page.getByText(/You receive about/).waitFor()
  await page.getByRole('button', { name: 'Deposit', exact: true }).click()
  await page.getByText('Deposited 25.00 USDC.').waitFor()
  const deposits = await devnet.client.getContractEvents({
    address: devnet.deployment.vaults.frontier ?? '0x',
    abi: mandateVaultAbi,
    eventName: 'Deposit',
    fromBlock: (await devnet.client.getBlockNumber()) - 20n,
  })
  expect(await carriedBy(deposits.at(-1)?.transactionHash ?? '0x')).toMatchObject({
    to: vault(),
    call: { functionName: 'deposit', args: [parseUnits('25', 6), payer()] },
  })
  expect(problems).toEqual([])
  await closeContext(page)
})
