import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  concat,
  encodeAbiParameters,
  type Hex,
  keccak256,
  numberToHex,
  padHex,
  parseAbiParameters,
  parseUnits,
} from 'viem'
import { sign } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { reportFeeManagerAbi } from '../contracts-abi/report-fee-manager.ts'
import { rewardManagerAbi } from '../contracts-abi/reward-manager.ts'
import { verifierProxyAbi } from '../contracts-abi/verifier-proxy.ts'
import { createChain } from '../src/chain/configured-chain.ts'
import { call, readTree } from '../src/chain/read-tree.ts'
import { parseConfig } from '../src/config/config.ts'
import { type Devnet, startDevnet } from './index.ts'
import { reportConfig, reportSignerKeys } from './report-signers.ts'
import { stepwiseSender } from './sender.ts'
import { workerVars } from './worker-vars.ts'

let devnet: Devnet
beforeAll(async () => {
  devnet = await startDevnet({ priceSource: 'reports' })
})
afterAll(() => devnet?.stop())

test('on signed reports a node whose newest block is old shows what a transaction of now would find', async () => {
  const { contracts, tokens } = devnet.deployment
  const NVDA = tokens.NVDA ?? '0x'
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
  const { feedIds } = await devnet.client.readContract({ ...oracle, functionName: 'sourceOf', args: [NVDA] })
  const payload = await signedReport(feedIds[0] ?? '0x', '191.5', reportConfig.faults + 1)
  const quiet = await startQuietNode(devnet.rpcUrl)
  await devnet.setMining(false)
  try {
    const { chain: config } = parseConfig({ ...workerVars(devnet.deployment), RPC_URL: quiet.url })
    if (config === undefined) return expect.unreachable()
    const chain = { ...createChain(config, undefined), carried: { reports: [payload], feeds: [] } }
    const { values, carried } = await readTree(chain, call(oracle, 'peekPrice', [NVDA]))
    expect(values[0]).toBe(parseUnits('191.5', 8))
    expect(carried?.reports).toEqual([payload])
  } finally {
    await devnet.setMining(true)
    await quiet.stop()
  }
})

/** Starts a node in front of another one, whose newest block is 20 seconds old for calls. */
async function startQuietNode(rpcUrl: string) {
  const server = createServer(async (request, response) => {
    const body: unknown = JSON.parse(await text(request))
    const time = numberToHex((await devnet.client.getBlock()).timestamp - 20n)
    const aged = [body].flat().map(each => {
      const { method, params } = each as { method: string; params: unknown[] }
      const [call, tag, override = {}, others] = params
      return method === 'eth_call' && others === undefined
        ? { ...(each as object), params: [call, tag, override, { time }] }
        : each
    })
    const headers = { 'content-type': 'application/json' }
    const sent = JSON.stringify(Array.isArray(body) ? aged : aged[0])
    const answered = await fetch(rpcUrl, { method: 'POST', headers, body: sent })
    response.writeHead(200, headers).end(await answered.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => new Promise(resolve => server.close(resolve)),
  }
}

test('on signed reports the updater posts no price, and any account posts what enough signers signed', async () => {
  const { accounts, contracts, tokens } = devnet.deployment
  const NVDA = tokens.NVDA ?? '0x'
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
  const byUpdater = { ...oracle, functionName: 'setPrice', args: [NVDA, 190n * 10n ** 8n] } as const
  await expect(devnet.send(accounts.oracleUpdater, byUpdater)).rejects.toThrow('NotUpdaterSource')

  const { feedIds } = await devnet.client.readContract({ ...oracle, functionName: 'sourceOf', args: [NVDA] })
  const [regular = '0x'] = feedIds
  const post = (payload: Hex) =>
    devnet.send(accounts.payer, { ...oracle, functionName: 'postReports', args: [[payload]] })
  const unsigned = await signedReport(regular, '190.5', reportConfig.faults)
  await expect(post(unsigned)).rejects.toThrow('ReportNotVerified')
  await post(await signedReport(regular, '190.5', reportConfig.faults + 1))
  const [price] = await devnet.client.readContract({ ...oracle, functionName: 'freshPrice', args: [NVDA, 60n] })
  expect(price).toBe(parseUnits('190.5', 8))
})

test('on signed reports a fee manager that comes later refuses what is not subscribed, and takes what is', async () => {
  const { accounts, contracts, tokens } = devnet.deployment
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
  const source = await devnet.client.readContract({ ...oracle, functionName: 'sourceOf', args: [tokens.AAPL ?? '0x'] })
  const [regular = '0x'] = source.feedIds
  const journal = { done: new Map(), add() {} }
  const chainlink = stepwiseSender(devnet.client, accounts.admin.privateKey, { journal, log() {} })
  const link = contracts.USDC
  const proxy = contracts.VerifierProxy ?? '0x'
  const rewards = await chainlink.deploy({ name: 'RewardManager', abi: rewardManagerAbi, args: [link] })
  const feeManager = await chainlink.deploy({
    name: 'ReportFeeManager',
    abi: reportFeeManagerAbi,
    args: [link, contracts.WETH9, proxy, rewards],
  })
  await chainlink.write({ address: proxy, abi: verifierProxyAbi, functionName: 'setFeeManager', args: [feeManager] })

  const post = async () => {
    const payload = await signedReport(regular, '272', reportConfig.faults + 1, 10n ** 18n)
    await devnet.send(accounts.payer, { ...oracle, functionName: 'postReports', args: [[payload]] })
  }
  await expect(post()).rejects.toThrow('ReportNotVerified')
  await chainlink.write({
    address: feeManager,
    abi: reportFeeManagerAbi,
    functionName: 'updateSubscriberGlobalDiscount',
    args: [contracts.PriceOracle, link, 10n ** 18n],
  })
  await post()
})

test('on signed reports the controls move and refresh prices as the forcer', async () => {
  const { contracts, tokens } = devnet.deployment
  expect(await devnet.setPrice('TSLA', '420')).toMatchObject({ by: 'forcer', to: parseUnits('420', 8) })
  await devnet.increaseTime(60)
  await devnet.refreshPrices()
  for (const token of Object.values(tokens)) {
    const args = [token, 30n] as const
    const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
    expect(await devnet.client.readContract({ ...oracle, functionName: 'isStale', args })).toBe(false)
  }
})

/** Returns a report of now and of regular hours in schema 11, signed with that many of the signers' keys. */
async function signedReport(feedId: Hex, usd: string, signatures: number, fee = 0n): Promise<Hex> {
  const timestamp = BigInt(await devnet.increaseTime(1)) // newer than the price of the block before
  const price = parseUnits(usd, 18)
  const fields = [timestamp, timestamp, fee, fee, timestamp + 3_600n, price, timestamp * 10n ** 9n]
  const words = [...fields, price, 1n, price, 1n, price, 2n].map(value => numberToHex(value, { size: 32 }))
  const report = concat([feedId, ...words])
  const context = [reportConfig.digest, padHex('0x1', { size: 32 }), padHex('0x', { size: 32 })] as const
  const hash = keccak256(concat([keccak256(report), ...context]))
  const signed = await Promise.all(reportSignerKeys.slice(0, signatures).map(privateKey => sign({ hash, privateKey })))
  const recoveryIds = concat(signed.map(({ yParity }) => numberToHex(yParity ?? 0, { size: 1 })))
  return encodeAbiParameters(parseAbiParameters('bytes32[3], bytes, bytes32[], bytes32[], bytes32'), [
    context,
    report,
    signed.map(({ r }) => r),
    signed.map(({ s }) => s),
    padHex(recoveryIds, { size: 32, dir: 'right' }),
  ])
}
