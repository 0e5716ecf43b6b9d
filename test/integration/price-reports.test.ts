import { env } from 'cloudflare:workers'
import { carriedPricesProblem } from '@agent-trading-service/protocol/carried-prices'
import {
  type Abi,
  createPublicClient,
  createWalletClient,
  defineChain,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  parseAbiItem,
  parseEventLogs,
  zeroAddress,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import bytecode from '../../contracts/bytecode.json' with { type: 'json' }
import chainlink from '../../contracts/chainlink.json' with { type: 'json' }
import { blockUptimeFeedAbi } from '../../contracts-abi/block-uptime-feed.ts'
import { fluxAggregatorAbi } from '../../contracts-abi/flux-aggregator.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { runSchedule } from '../../src/scheduled/scheduled.ts'
import { chain, FRONTIER, newTrader, openPosition, sign, signedIntent, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper, runCycle } from '../support/keeper-cycles.ts'
import { reports } from '../support/report-control.ts'
import { appWith, callOverHttp, deployment } from '../support/surfaces.ts'

// HTTP only: a report is a second old when the next surface asks.

const node = createPublicClient({ transport: http(deployment.rpcUrl), cacheTime: 0, pollingInterval: 100 })
const localChain = defineChain({
  id: deployment.chainId,
  name: 'embedded',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [deployment.rpcUrl] } },
})
const oracle = { address: deployment.contracts.PriceOracle, abi: priceOracleAbi }
const NVDA = deployment.tokens.NVDA as Hex
const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${deployment.contracts.TradeRouter}`))
const verified = parseAbiItem('event ReportVerified(bytes32 indexed feedId, address requester)')

const stored = async (token = NVDA) => {
  const [price, observedAt, round] = await node.readContract({ ...oracle, functionName: 'peekPrice', args: [token] })
  return { price, observedAt, round }
}
/** Deploys a contract from the admin's account. */
async function create(creation: { abi: Abi; bytecode: Hex; args: readonly unknown[] }): Promise<Hex> {
  const account = privateKeyToAccount(deployment.accounts.admin.privateKey)
  const admin = createWalletClient({ account, chain: localChain, transport: http(deployment.rpcUrl) })
  const { contractAddress } = await node.waitForTransactionReceipt({ hash: await admin.deployContract(creation) })
  return contractAddress ?? '0x'
}
const usd = (price: bigint) => Number(price) / 1e8
const now = async () => Number((await node.getBlock()).timestamp)
/**
 * Waits until a report of now is newer than those of a time and before. The service may use one of the last second
 * again.
 */
const untilAfter = (time: number | bigint) => expect.poll(now, { timeout: 120_000 }).toBeGreaterThan(Number(time) + 1)
const postAs = (payloads: Hex[]) =>
  chain.send(deployment.accounts.payer, { ...oracle, functionName: 'postReports', args: [payloads] })

/** Sells a position in full. */
const close = (trader: Trader, positionId: string) =>
  submit(trader, 'submitReduceIntent', { positionId, exitBps: 10_000 })
const automation = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await callOverHttp('getPositionAutomation', { agentId, positionId })).body

beforeEach(async () => {
  await disarmKeeper(keeper())
  await reports.fail()
  await reports.say('NVDA', { usd: '180.25' })
  await chain.setPrice('NVDA', '180.25') // and the pool follows
  await untilAfter((await stored()).observedAt)
})
afterAll(() => disarmKeeper(keeper()))

describe('a trade at a signed price', () => {
  it('a trade at a signed price brings the newest report along, which nobody has posted before', async () => {
    const trader = await newTrader()
    const before = await stored()
    await untilAfter(before.observedAt)
    await reports.say('NVDA', { usd: '181' })
    const { body: quote } = await callOverHttp('getTradeIntentQuote', {
      agentId: trader.agentId,
      symbol: 'NVDA',
      usdcAmount: '100',
    })
    expect(quote.estimate.priceUsd).toBe('181')
    expect(usd((await stored()).price)).toBe(usd(before.price))

    const { status, body } = await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '100' })
    expect({ status, body }).toMatchObject({ status: 201 })
    const after = await stored()
    expect([usd(after.price), after.round]).toEqual([181, before.round + 1n])
    const { logs, to } = await node.getTransactionReceipt({ hash: body.transactionHash })
    expect(to?.toLowerCase()).toBe(deployment.contracts.TradeRouter.toLowerCase())
    expect(parseEventLogs({ abi: [verified], logs })).toHaveLength(1)

    const { body: prices } = await callOverHttp('getPrices', { symbols: 'NVDA' })
    expect(prices.prices.NVDA).toMatchObject({ source: 'reports', priceUsd: '181', updatedAt: `${after.observedAt}` })
  })

  it('a trade at a signed price shares its report with all others of the moment: the chain verifies it once', async () => {
    const traders = await Promise.all(Array.from({ length: 4 }, () => newTrader()))
    const bodies = await Promise.all(
      traders.map(trader => signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '50' })),
    )
    await untilAfter((await stored()).observedAt)
    const replies = await Promise.all(bodies.map(body => callOverHttp('submitTradeIntent', body)))
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 201])
    const receipts = await Promise.all(
      replies.map(({ body }) => node.getTransactionReceipt({ hash: body.transactionHash })),
    )
    const times = receipts.flatMap(({ logs }) => parseEventLogs({ abi: [verified], logs }))
    expect(times.length).toBeGreaterThan(0)
    expect(times.length).toBeLessThan(receipts.length)
  })

  it('a trade at a signed price is not moved by a stolen updater key', async () => {
    const { price } = await stored()
    const stolen = { ...oracle, functionName: 'setPrice', args: [NVDA, 10n * 10n ** 8n] } as const
    const account = deployment.accounts.oracleUpdater.address
    await expect(node.simulateContract({ ...stolen, account })).rejects.toThrow('NotUpdaterSource')
    await chain.send(deployment.accounts.oracleUpdater, {
      ...oracle,
      functionName: 'post',
      args: [[NVDA], [10n * 10n ** 8n], [BigInt(await now())]],
    })
    expect((await stored()).price).toBe(price)
  })

  it('a trade at a signed price is not moved by a replayed report or an older one', async () => {
    const old = await reports.newest('NVDA')
    await untilAfter((await stored()).observedAt)
    await reports.say('NVDA', { usd: '182' })
    await postAs([await reports.newest('NVDA')])
    const { price, round } = await stored()
    expect(usd(price)).toBe(182)
    await postAs([old])
    await postAs([await reports.newest('NVDA'), old])
    expect(usd((await stored()).price)).toBe(182)
    expect((await stored()).round - round).toBeLessThanOrEqual(1n)
  })

  it('a trade at a signed price says by name what the oracle refuses about the report', async () => {
    const trader = await newTrader()
    const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '50' })
    await untilAfter((await stored()).observedAt)
    await reports.say('NVDA', { usd: '180', expiresAfterSeconds: -1 })
    await expect.poll(async () => (await callOverHttp('submitTradeIntent', body)).body.code).toBe('REPORT_EXPIRED')
    await reports.say('NVDA', { usd: '180' })
    await expect.poll(async () => (await callOverHttp('submitTradeIntent', body)).status).toBe(201)
  })
})

describe('an exit at a signed price', () => {
  it('an exit at a signed price fires from the report that proves it; nothing is posted before', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { usdcAmount: '90', exits: '-800:10000' })
    await runCycle(keeper())
    const { round, observedAt } = await stored()
    await untilAfter(observedAt)
    await runCycle(keeper())
    expect((await stored()).round).toBe(round)

    await reports.say('NVDA', { usd: '160' })
    await expect
      .poll(async () => {
        await runCycle(keeper())
        return (await automation(trader, positionId)).lastOutcome?.outcome
      })
      .toBe('executed')
    const { lastOutcome } = await automation(trader, positionId)
    const { logs } = await node.getTransactionReceipt({ hash: lastOutcome.transactionHash })
    const [posted] = parseEventLogs({ abi: priceOracleAbi, eventName: 'PriceUpdated', logs })
    expect(posted && usd(posted.args.price)).toBe(160)
  })

  it('an exit at a signed price that was reached between two reports is not claimed', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { usdcAmount: '90', exits: '-800:10000' })
    await runCycle(keeper())
    await reports.say('NVDA', { usd: '160' })
    await reports.say('NVDA', { usd: '180' })
    await untilAfter((await stored()).observedAt)
    await runCycle(keeper())
    await runCycle(keeper())
    expect((await automation(trader, positionId)).lastOutcome?.outcome).toBe('notReached')
  })
})

describe('an exit next to a token whose report the oracle refuses', () => {
  afterEach(async () => {
    await reports.say('AAPL', { usd: '271.4' })
    await chain.setPrice('AAPL', '271.4')
  })
  /** Lets the stream of AAPL say a price that the oracle refuses, after a stored one that is due. */
  async function refuseReportsOfApple(usdBefore: string) {
    await reports.say('AAPL', { usd: usdBefore })
    await untilAfter((await stored(deployment.tokens.AAPL as Hex)).observedAt)
    await postAs([await reports.newest('AAPL')])
    await reports.say('AAPL', { usd: '0' })
    await untilAfter((await stored(deployment.tokens.AAPL as Hex)).observedAt)
  }
  const outcomeOf = async (trader: Trader, positionId: string) =>
    (await automation(trader, positionId)).lastOutcome?.outcome
  const untilExecuted = (trader: Trader, positionId: string) =>
    expect
      .poll(async () => {
        await runCycle(keeper())
        return outcomeOf(trader, positionId)
      })
      .toBe('executed')

  it('an exit next to a token whose report the oracle refuses fires at its own report', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { usdcAmount: '90', exits: '-800:10000' })
    const other = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '90', exits: '-800:10000' })
    await runCycle(keeper())
    await refuseReportsOfApple('271.4')
    await reports.say('NVDA', { usd: '160' })
    await untilExecuted(trader, positionId)
    expect(await outcomeOf(trader, other)).not.toBe('executed')
  })

  it('an exit next to a token whose report the oracle refuses is sent together with one at a stored price', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { usdcAmount: '90', exits: '-800:10000' })
    const other = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '90', exits: '-800:10000' })
    await runCycle(keeper())
    await refuseReportsOfApple('240')
    await reports.say('NVDA', { usd: '160' })
    await untilExecuted(trader, positionId)
    await untilExecuted(trader, other)
  })

  it('a depositor next to a token whose report the oracle refuses gets the other reports', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    await openPosition(trader, { usdcAmount: '50', exits: '-800:10000' })
    const other = await openPosition(trader, { symbol: 'TSLA', usdcAmount: '50', exits: '-800:10000' })
    const newest = async () => (await callOverHttp('getPriceReports', { vault: 'frontier' })).body.reports.length
    const before = await newest()
    await reports.say('TSLA', { usd: '0' })
    try {
      await expect.poll(newest).toBe(before - 1)
    } finally {
      await reports.say('TSLA', { usd: '421.3' })
      await expect.poll(async () => (await close(trader, other)).status).toBe(201)
    }
  })
})

describe('an order at a signed price', () => {
  it('an order at a signed price executes at the report that reaches its price', async () => {
    const trader = await newTrader()
    const { agentId, account } = trader
    const asked = { agentId, symbol: 'NVDA', type: 'limit', price: '179.2', usdcAmount: '50' }
    const { status, body: quote } = await callOverHttp('getOrderQuote', asked)
    expect({ status, quote }).toMatchObject({ status: 200, quote: { typedData: {} } })
    const placed = await callOverHttp('submitOrder', {
      agentId,
      ...quote.body,
      signature: await sign(account, quote.typedData),
    })
    expect(placed).toMatchObject({ status: 201 })
    const { orderId } = placed.body
    await keeper().changed()
    await reports.say('NVDA', { usd: '179' })
    const order = async () => (await callOverHttp('getOrder', { agentId, orderId })).body
    await expect
      .poll(async () => {
        await runCycle(keeper())
        return (await order()).executions?.length ?? 0
      })
      .toBe(1)
    expect(usd((await stored()).price)).toBe(179)
  })
})

it('a trade at the price of a push feed copies its answer first', async () => {
  const meta = deployment.tokens.META as Hex
  const { USDC } = deployment.contracts
  const { address: owner } = deployment.accounts.admin
  // Chainlink's own aggregator, which pays its oracles nothing here.
  const aggregator = await create({
    abi: fluxAggregatorAbi,
    bytecode: chainlink.FluxAggregator.bytecode as Hex,
    args: [USDC, 0n, 180, zeroAddress, 0n, 10n ** 15n, 8, 'META / USD'],
  })
  const flux = { address: aggregator, abi: fluxAggregatorAbi }
  await chain.send(deployment.accounts.admin, {
    ...flux,
    functionName: 'changeOracles',
    args: [[], [owner], [owner], 1, 1, 0],
  })
  await untilAfter((await stored(meta)).observedAt)
  await chain.send(deployment.accounts.admin, { ...flux, functionName: 'submit', args: [1n, 642n * 10n ** 8n] })
  await chain.administer({
    ...oracle,
    functionName: 'setSource',
    args: [meta, { kind: 2, feedIds: [], aggregator, maxSpreadBps: 0, isSharePrice: false }],
  })
  const { agentId, account } = await newTrader()
  const quote = async () =>
    (await callOverHttp('getTradeIntentQuote', { agentId, symbol: 'META', usdcAmount: '50' })).body
  await expect.poll(async () => (await quote()).price).toMatchObject({ source: 'feed', priceUsd: '642' })
  const { body, typedData } = await quote()
  const reply = await callOverHttp('submitTradeIntent', { agentId, ...body, signature: await sign(account, typedData) })
  expect(reply).toMatchObject({ status: 201 })
  expect(usd((await stored(meta)).price)).toBe(642)
})

describe('a depositor at signed prices', () => {
  const vault = { address: FRONTIER, abi: mandateVaultAbi } as const
  const { address, privateKey } = deployment.accounts.payer
  const usdc = { address: deployment.contracts.USDC, abi: parseAbi(['function approve(address, uint256)']) }

  it('a depositor at signed prices deposits and redeems with the newest reports when nobody has traded for a day', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    await openPosition(trader, { usdcAmount: '50', exits: '-800:10000' })
    await chain.increaseTime(86_400)
    await chain.send({ address, privateKey }, { ...usdc, functionName: 'approve', args: [FRONTIER, 100_000_000n] })
    const read = async (functionName: 'maxDeposit' | 'maxRedeem') =>
      node.readContract({ ...vault, functionName, args: [address] })
    const { round } = await stored()

    const newest = async () => (await callOverHttp('getPriceReports', { vault: 'frontier' })).body
    // Until the last report is a second old, it is as new as any.
    await expect.poll(async () => carriedPricesProblem(await newest(), await now())).toBe(undefined)
    expect(await newest()).toMatchObject({ reports: [expect.stringMatching(/^0x/)], feeds: [] })
    const send = async (data: Hex) => {
      const { reports, feeds } = await newest()
      const args = [reports, feeds, oracle.address, data] as const
      return chain.send({ address, privateKey }, { ...vault, functionName: 'withPrices', args })
    }
    const before = await node.readContract({ ...vault, functionName: 'balanceOf', args: [address] })
    await send(encodeFunctionData({ ...vault, functionName: 'deposit', args: [100_000_000n, address] }))
    expect((await stored()).round).toBeGreaterThan(round)
    const shares = (await node.readContract({ ...vault, functionName: 'balanceOf', args: [address] })) - before
    expect(shares).toBeGreaterThan(0n)
    await chain.increaseTime(86_400)
    await send(encodeFunctionData({ ...vault, functionName: 'redeem', args: [shares / 2n, address, address] }))
    expect(await read('maxRedeem')).toBeGreaterThan(0n)
  })

  it('a depositor at signed prices gets an error that names an unknown vault or symbol', async () => {
    expect((await callOverHttp('getPriceReports', { vault: 'nowhere' })).body.code).toBe('VAULT_NOT_FOUND')
    expect((await callOverHttp('getPriceReports', { symbols: 'NVDA,WRONG' })).body.code).toBe('UNKNOWN_SYMBOL')
    expect((await callOverHttp('getPriceReports', {})).body).toMatchObject({ reports: [], feeds: [] })
  })
})

describe('a provider of signed prices that is down', () => {
  it('a provider of signed prices that is down stops its tokens with a clear 503, and exits go first once it is back', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader, { usdcAmount: '90', exits: '-800:10000' })
    const sale = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 5_000 })
    await reports.fail('down')
    // Until the last report is a second old, it is as new as any.
    const refused = () => callOverHttp('submitReduceIntent', sale)
    await expect
      .poll(
        async () =>
          (await callOverHttp('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'NVDA', usdcAmount: '50' }))
            .status,
      )
      .toBe(503)
    await untilAfter(await now())
    const { status, body } = await refused()
    expect([status, body.code, body.retryable]).toEqual([503, 'PRICE_REPORTS_UNAVAILABLE', true])
    expect(JSON.stringify(body)).not.toContain(deployment.reports?.secret)
    await runCycle(keeper())
    const { status: ofPrices, body: prices } = await callOverHttp('getPrices', { symbols: 'NVDA' })
    expect([ofPrices, prices.prices.NVDA.source]).toEqual([200, 'reports'])

    await reports.fail()
    expect(await refused()).toMatchObject({ status: 201 })
    expect((await close(trader, positionId)).status).toBe(201)
  })

  it('a provider of signed prices that refuses the credentials is a finding of readiness', async () => {
    const fetch = appWith({ DATA_STREAMS_SECRET: 'another' })
    const { body } = await callOverHttp('getReadiness', {}, fetch)
    const findings: Body[] = body.findings ?? body.details.findings
    expect(findings.filter(({ check }) => check === 'price source').map(({ sentence }) => sentence)).toContainEqual(
      expect.stringContaining('it refuses the credentials'),
    )
  })
})

it('an agent that nobody has traded next to for a day is valued at the newest reports', async () => {
  const trader = await newTrader()
  const positionId = await openPosition(trader, { usdcAmount: '90', exits: '-800:10000' })
  await chain.increaseTime(2 * 86_400)
  await reports.say('NVDA', { usd: '185' })
  const { agentId } = trader
  await expect
    .poll(async () => (await callOverHttp('getRiskState', { agentId })).body)
    .toMatchObject({ priceStale: false, staleSymbols: [], priceSources: { NVDA: 'reports' } })
  expect((await callOverHttp('getCandles', { symbol: 'NVDA' })).body).toMatchObject({ source: 'reports' })
  const { body } = await callOverHttp('listPositions', { agentId })
  expect(body.positions[0]).toMatchObject({ positionId, priceStale: false })
  expect(Number(body.positions[0].unrealizedPnlUsdc)).toBeGreaterThan(0)
  const { body: vault } = await callOverHttp('getVaultStats', { id: 'genesis' })
  expect(
    vault.deployed.filter(({ symbol }: Body) => symbol === 'NVDA').some(({ priceStale }: Body) => priceStale),
  ).toBe(false)
})

it('the end of a gap in the blocks is observed by the cron trigger, so that trading resumes after the grace period', async () => {
  const creation = { abi: blockUptimeFeedAbi, bytecode: bytecode.BlockUptimeFeed as Hex, args: [1_000n, 300n] } as const
  const feed = await create(creation)
  const setFeed = (address: Hex) =>
    chain.administer({ ...oracle, functionName: 'setSequencerFeed', args: [address, 60n] })
  await setFeed(feed)
  try {
    const trader = await newTrader()
    await chain.increaseTime(61)
    await chain.setPrice('NVDA', '180.25')
    await untilAfter((await stored()).observedAt)
    await openPosition(trader, { usdcAmount: '50' })
    await chain.increaseTime(3_600)
    const during = await signedIntent(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '50' })
    const refused = () => callOverHttp('submitTradeIntent', during)
    expect((await refused()).body.code).toBe('SEQUENCER_GRACE_PERIOD')
    await chain.increaseTime(61)
    expect((await refused()).body.code).toBe('SEQUENCER_GRACE_PERIOD')
    await runSchedule(createContext(parseConfig({ ...env }), env))
    await chain.increaseTime(61)
    expect((await submit(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '50' })).status).toBe(201)
  } finally {
    await setFeed(zeroAddress)
  }
})

it('nobody posts a price that proves itself while nobody trades', async () => {
  const before = await Promise.all(Object.values(deployment.tokens).map(token => stored(token)))
  await runSchedule(createContext(parseConfig({ ...env }), env))
  const { body } = await callOverHttp('refreshPrices', {})
  expect(body.skipped).toContainEqual({ symbol: 'NVDA', reason: 'otherSource' })
  expect(await Promise.all(Object.values(deployment.tokens).map(token => stored(token)))).toEqual(before)

  const { body: named } = await callOverHttp('refreshPrices', { symbols: ['NVDA'] })
  expect(named).toMatchObject({ updated: ['NVDA'], skipped: [] })
  expect((await stored()).round).toBeGreaterThan(before[0]?.round ?? 0n)
})
