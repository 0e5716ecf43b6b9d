import { env } from 'cloudflare:workers'
import { OrderCondition } from '@agent-trading-service/protocol/order-typed-data'
import {
  type Address,
  concatHex,
  createTestClient,
  createWalletClient,
  encodeDeployData,
  formatUnits,
  getAddress,
  type Hex,
  http,
  numberToHex,
  pad,
  parseUnits,
  toFunctionSelector,
  zeroAddress,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import bytecodes from '../../contracts/bytecode.json'
import { draftStockTokenAbi } from '../../contracts-abi/draft-stock-token.ts'
import { scaledStockTokenAbi } from '../../contracts-abi/scaled-stock-token.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { wrappedRebasingTokenAbi } from '../../contracts-abi/wrapped-rebasing-token.ts'
import { connect } from '../../devnet/sender.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { createHttpSurface } from '../../src/http/app.ts'
import { chain, FRONTIER, newTrader, openPosition, signedIntent, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listen, type StreamListener } from '../support/event-stream.ts'
import { disarmKeeper, runCycle } from '../support/keeper-cycles.ts'
import { type Placed, placeOrder } from '../support/orders.ts'
import { appWith, call, callOverHttp, deployment, request } from '../support/surfaces.ts'

const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${deployment.contracts.TradeRouter}`))
const client = connect(deployment.rpcUrl, deployment.chainId)
const node = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) })
const PROVIDER = 'http://provider.test/prices'
const app = appWith({ PRICE_PROVIDER: 'http', PRICE_PROVIDER_URL: PROVIDER })

const one = (text: string) => parseUnits(text, 18)
const tokenOf = (symbol: string) => deployment.tokens[symbol] ?? '0x'
const now = async () => Number((await call('getPrices')).body.asOf.blockTimestamp)
const shown = async (symbol: string): Promise<Body> =>
  (await call('listTokens')).body.tokens.find((token: Body) => token.symbol === symbol)
const priceOf = async (symbol: string): Promise<Body> => (await call('getPrices')).body.prices[symbol]

/** Schedules a multiplier as the token's issuer, which emits its event as often as it is asked. */
const schedule = (symbol: string, multiplier: bigint, at: number) =>
  chain.send(deployment.accounts.admin, {
    address: tokenOf(symbol),
    abi: scaledStockTokenAbi,
    functionName: 'updateMultiplier',
    args: [multiplier, BigInt(at)],
  })

/** Makes the next block the first one at or after a time. */
async function advanceTo(time: number) {
  await node.setNextBlockTimestamp({ timestamp: BigInt(time) })
  await node.mine({ blocks: 1 })
}

/** Lets the provider quote one share, observed at a time, until the mocks are restored. */
function quoteShare(symbol: string, usd: string, time: number) {
  const outside = globalThis.fetch.bind(globalThis)
  vi.restoreAllMocks()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const url = new Request(input as RequestInfo, init as RequestInit).url
    return url.startsWith(PROVIDER) ? Response.json({ [symbol]: { price: usd, time } }) : outside(input, init)
  })
}
async function refresh(symbol: string): Promise<Body> {
  const { status, body } = await callOverHttp('refreshPrices', { symbols: [symbol] }, app)
  expect(status).toBe(200)
  return body
}
/** Posts what the provider quotes for one share now: that of a token, over a multiplier. */
async function refreshWith(symbol: string, tokenUsd: number, multiplier: bigint, time?: number): Promise<Body> {
  const share = (parseUnits(tokenUsd.toFixed(8), 8) * 10n ** 18n) / multiplier
  quoteShare(symbol, formatUnits(share, 8), time ?? (await now()))
  return refresh(symbol)
}

afterEach(() => vi.restoreAllMocks())

// Four tokens of the embedded chain take the part of the twelve: each change is applied to what its token stands for by
// then. Of seven changes only the range was recorded, 0.64 to 22.1 basis points: theirs are spread over it.
const observed = [
  { of: 'CRWD', on: 'HOOD', from: '1', to: '4' },
  { of: 'SGOV in July', on: 'PLTR', from: '1', to: '1.000957519890990718' },
  { of: 'MU', on: 'META', from: '1', to: '1.000064' },
  { of: 'ORCL', on: 'META', from: '1', to: '1.0004' },
  { of: 'SGOV in August', on: 'PLTR', from: '1.000957519890990718', to: '1.002981519346766532' },
  { of: 'DELL', on: 'HOOD', from: '1', to: '1.0008' },
  { of: 'ASML', on: 'NVDA', from: '1', to: '1.0011' },
  { of: 'COST', on: 'META', from: '1', to: '1.0015' },
  { of: 'AAPL', on: 'HOOD', from: '1', to: '1.0018' },
  { of: 'CCL', on: 'META', from: '1', to: '1.021486444855206408' },
  { of: 'SGOV in September', on: 'PLTR', from: '1.002981519346766532', to: '1.005101770003214918' },
  { of: 'F', on: 'PLTR', from: '1', to: '1.00221' },
  { of: 'NVDA', on: 'NVDA', from: '1', to: '1.000775159164630595' },
  { of: 'SPY', on: 'NVDA', from: '1', to: '1.001717991187472003' },
  { of: 'a reverse split, which was not observed', on: 'HOOD', from: '4', to: '1' },
]

describe('the observed corporate actions', () => {
  const symbols = ['HOOD', 'PLTR', 'META', 'NVDA']
  const positions: Record<string, string> = {}
  let trader: Trader
  const prices: Record<string, number> = {}
  let startedAt: number

  const riskOf = async () => (await call('getRiskState', { agentId: trader.agentId })).body
  const equity = async () => BigInt((await riskOf()).equity.currentUsdc)
  const positionOf = async (symbol: string): Promise<Body> =>
    (await call('getPosition', { agentId: trader.agentId, positionId: positions[symbol] })).body.position
  const expectNothingFired = async () => {
    await runCycle(keeper())
    for (const symbol of symbols) expect(await positionOf(symbol)).toMatchObject({ status: 'Open', nextRuleIndex: 0 })
  }
  const expectSameEquity = async (before: bigint) => {
    const difference = (await equity()) - before
    expect((difference < 0n ? -difference : difference) * 10_000n).toBeLessThanOrEqual(before)
  }

  beforeAll(async () => {
    trader = await newTrader({ vault: FRONTIER })
    for (const symbol of symbols) {
      const exits = '-300:10000,300:10000'
      positions[symbol] = await openPosition(trader, { symbol, usdcAmount: '50', exits })
      prices[symbol] = Number((await priceOf(symbol)).priceUsd)
    }
    await disarmKeeper(keeper())
    startedAt = await now()
  })

  it.each(observed)(
    'the change of $of replays without a trigger, and with the same equity',
    async ({ on, from, to }) => {
      const tokenUsd = prices[on] ?? 0
      const before = BigInt(parseUnits((await shown(on)).multiplier, 18))
      const after = (before * one(to)) / one(from)
      const equityBefore = await equity()
      const held = BigInt((await positionOf(on)).tokenAmount)
      const announcedAt = await now()
      const effectiveAt = announcedAt + 600

      await schedule(on, after, effectiveAt)
      await schedule(on, after, effectiveAt)
      expect(await shown(on)).toMatchObject({
        kind: 'scaledUI',
        multiplier: formatUnits(before, 18),
        pendingMultiplier: formatUnits(after, 18),
        effectiveAt: `${effectiveAt}`,
      })
      const announced = (await call('listCorporateActions', { symbol: on })).body
      expect(announced.actions[0]).toMatchObject({ state: 'announced', effectiveAt: `${effectiveAt}` })
      expect(announced.actions.filter((action: Body) => action.effectiveAt === `${effectiveAt}`)).toHaveLength(1)
      const { body: quote } = await call('getAddIntentQuote', {
        agentId: trader.agentId,
        positionId: positions[on],
        usdcAmount: '10',
        deadline: `${effectiveAt + 60}`,
      })
      expect(quote.warnings).toContainEqual(expect.stringContaining(`due at ${effectiveAt}`))

      await advanceTo(effectiveAt - 60)
      expect(await refreshWith(on, tokenUsd, before)).toMatchObject({ updated: [on] })
      expect(await priceOf(on)).toMatchObject({ unsettled: false })

      // The first block at the effective time: no log, no transaction.
      await advanceTo(effectiveAt)
      expect(await shown(on)).toMatchObject({
        multiplier: formatUnits(after, 18),
        pendingMultiplier: null,
        effectiveAt: `${effectiveAt}`,
      })
      const shares = `${(held * after) / 10n ** 18n}`
      expect((await positionOf(on)).shareAmount).toBe(shares)
      const sale = { agentId: trader.agentId, positionId: positions[on], exitBps: 10_000 }
      expect((await call('getReduceIntentQuote', sale)).body.estimate.shareIn).toBe(shares)
      expect(await priceOf(on)).toMatchObject({ unsettled: true })
      await expectNothingFired()
      await expectSameEquity(equityBefore)
      expect(await refreshWith(on, tokenUsd, before, effectiveAt - 1)).toMatchObject({ updated: [] })

      expect(await refreshWith(on, tokenUsd, after)).toMatchObject({ updated: [on] })
      const { priceUsd, unsettled } = await priceOf(on)
      expect(unsettled).toBe(false)
      expect(Math.abs(Number(priceUsd) / tokenUsd - 1)).toBeLessThan(0.000_01)
      await expectNothingFired()
      await expectSameEquity(equityBefore)
      const { body } = await call('listCorporateActions', { symbol: on })
      expect(body).toMatchObject({ isExplained: true, multiplier: formatUnits(after, 18) })
      expect(body.actions[0]).toMatchObject({ state: 'effective', newMultiplier: formatUnits(after, 18) })
    },
  )

  it('the candles of the tokens have no step, and every sale was a choice', async () => {
    for (const symbol of symbols) {
      const from = `${startedAt + 60}` // other tests may have moved the price in the minute before
      const { candles } = (await call('getCandles', { symbol, interval: '1m', from, limit: 500 })).body
      const tokenUsd = prices[symbol] ?? 0
      expect(candles.h.length).toBeGreaterThan(1)
      for (const price of [...candles.h, ...candles.l])
        expect(Math.abs(Number(price) / tokenUsd - 1)).toBeLessThan(0.000_1)
    }
    const { trades } = (await call('getTradeHistory', { agentId: trader.agentId })).body
    expect(trades).toHaveLength(symbols.length)
  })
})

describe('a split whose share price does not agree with the multiplier', () => {
  let trader: Trader
  let positionId: string
  let stream: StreamListener
  let tokenUsd: number
  let effectiveAt: number
  let placed: Placed
  const orderReports = () => keeper().findOrders([placed.orderId])
  const [before, after] = [one('1'), one('4')]
  const skipped = { updated: [], skipped: [{ symbol: 'META', reason: 'unsettled' }] }
  /** Returns the next event of the split. The multiplier from before it may be told after the stream has opened. */
  async function nextOfSplit() {
    for (;;) {
      const { data } = await stream.next('corporateAction')
      if (data.newMultiplier === '4') return data
    }
  }

  beforeAll(async () => {
    trader = await newTrader({ vault: FRONTIER })
    positionId = await openPosition(trader, { symbol: 'META', usdcAmount: '50', exits: '-300:10000,300:10000' })
    tokenUsd = Number((await priceOf('META')).priceUsd)
    await chain.send(deployment.accounts.admin, {
      address: tokenOf('META'),
      abi: scaledStockTokenAbi,
      functionName: 'updateMultiplier',
      args: [before],
    })
    await advanceTo((await now()) + 5) // what is observed then is newer than the last post
    expect(await refreshWith('META', tokenUsd, before)).toMatchObject({ updated: ['META'] })
    await disarmKeeper(keeper())
    stream = listen(await request(`/agents/${trader.agentId}/events`))
    await stream.open()
    effectiveAt = (await now()) + 600
    // An order that is due with the split, at any price.
    placed = await placeOrder(await newTrader({ vault: FRONTIER }), {
      symbol: 'META',
      usdcAmount: 20_000_000n,
      condition: OrderCondition.AtOrAbove,
      price: 1n,
      validAfter: BigInt(effectiveAt),
    })
    await schedule('META', after, effectiveAt)
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    expect(await nextOfSplit()).toMatchObject({
      symbol: 'META',
      state: 'announced',
      newMultiplier: '4',
      effectiveAt: `${effectiveAt}`,
    })
  })
  afterAll(() => stream.leave())

  it('a provider that splits early is not posted', async () => {
    await advanceTo((await now()) + 5)
    expect(await refreshWith('META', tokenUsd, after)).toMatchObject(skipped)
    expect(await priceOf('META')).toMatchObject({ unsettled: false })
  })

  it('a provider that has not split is not posted, nothing is bought or fires, and quotes and readiness say why', async () => {
    const bought = await signedIntent(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
    await advanceTo(effectiveAt)
    expect(await refreshWith('META', tokenUsd, before, effectiveAt + 1)).toMatchObject(skipped)
    const { body: quote } = await call('getTradeIntentQuote', {
      agentId: (await newTrader({ vault: FRONTIER })).agentId,
      symbol: 'META',
      usdcAmount: '10',
    })
    expect(quote.bindingRule).toBe('settledPrice')
    expect(quote.checks).toContainEqual(expect.objectContaining({ code: 'PRICE_UNSETTLED', pass: false }))
    expect(quote.warnings).toContainEqual(expect.stringContaining('A corporate action has changed what one META'))
    const refusal = { status: 400, body: { code: 'PRICE_UNSETTLED', retryable: true } }
    expect(await call('submitAddIntent', bought)).toMatchObject(refusal)
    // A reorg may give a position's id to one in another token.
    const context = createContext(parseConfig(workerVars(deployment)), env)
    context.trading.memory.tradedTokens.set(BigInt(positionId), tokenOf('NVDA'))
    const surface = createHttpSurface(context, env.ASSETS)
    expect(await callOverHttp('submitAddIntent', bought, async request => surface(request))).toMatchObject(refusal)
    const { body: readiness } = await call('getReadiness')
    expect((readiness.oracle ?? readiness.details.oracle).unsettled).toContain('META')
    expect((readiness.problems ?? readiness.details.problems).join()).toContain('before a corporate action')
    await vi.waitFor(async () => expect(await orderReports()).not.toEqual([undefined]), 120_000)
    await runCycle(keeper())
    const { body } = await call('getPositionAutomation', { agentId: trader.agentId, positionId })
    expect(body.lastOutcome).toMatchObject({ outcome: 'deferred', reason: 'priceUnsettled' })
    expect(await orderReports()).not.toEqual([undefined])
  })

  it('a reduction by choice sells at its floor while the price is unsettled', async () => {
    expect(await priceOf('META')).toMatchObject({ unsettled: true })
    const { status, body } = await submit(trader, 'submitReduceIntent', { positionId, exitBps: 5000 })
    expect({ status, body }).toMatchObject({ status: 201 })
  })

  it('a provider that has split is posted, buying goes on, and the stream has said that the split took effect', async () => {
    expect(await refreshWith('META', tokenUsd, after)).toMatchObject({ updated: ['META'] })
    expect(await priceOf('META')).toMatchObject({ unsettled: false })
    await runCycle(keeper())
    expect(await orderReports()).toEqual([undefined])
    const { status } = await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
    expect(status).toBe(201)
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const data = await nextOfSplit()
    expect(data).toMatchObject({
      symbol: 'META',
      state: 'effective',
      newMultiplier: '4',
      effectiveAt: `${effectiveAt}`,
    })
  })
})

/** Deploys a token of a draft, which has no issuer's beacon and mints for anybody. */
async function deployDraft(symbol: string, variant: number): Promise<Address> {
  const { privateKey } = deployment.accounts.payer
  const wallet = createWalletClient({ account: privateKeyToAccount(privateKey), transport: http(deployment.rpcUrl) })
  const bytecode = bytecodes.DraftStockToken as Hex
  const args = [symbol, symbol, variant] as const
  const hash = await wallet.deployContract({ abi: draftStockTokenAbi, bytecode, args, chain: null })
  const { contractAddress } = await client.waitForTransactionReceipt({ hash })
  if (!contractAddress) throw new Error('The receipt has no contract.')
  return getAddress(contractAddress)
}

describe('a wrapper', () => {
  it('a wrapper shows the shares of what it converts to, times the multiplier of its asset, in every read', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const positionId = await openPosition(trader, { symbol: 'PLTR', usdcAmount: '50' })
    const wrapper = tokenOf('PLTR')
    const registry = { address: deployment.contracts.TokenRegistry, abi: tokenRegistryAbi } as const
    const token = { address: wrapper, abi: scaledStockTokenAbi } as const
    const described = await client.readContract({ ...registry, functionName: 'descriptionOf', args: [wrapper] })
    const supply = await client.readContract({ ...token, functionName: 'totalSupply' })
    const asset = { address: await deployDraft('PLTRx', 0), abi: draftStockTokenAbi } as const
    const mint = { ...asset, functionName: 'mint', args: [wrapper, 2n * supply + 1n] } as const
    await chain.send(deployment.accounts.payer, mint)
    const change = { ...asset, functionName: 'updateMultiplier', args: [one('3'), 0n] } as const
    await chain.send(deployment.accounts.payer, change)

    const own = (await client.getCode({ address: wrapper })) ?? '0x'
    const data = encodeDeployData({
      abi: wrappedRebasingTokenAbi,
      bytecode: bytecodes.WrappedRebasingToken as Hex,
      args: [asset.address],
    })
    const { data: code = '0x' } = await client.call({ data })
    await node.setCode({ address: wrapper, bytecode: code })
    const describeAs = (kind: number) =>
      chain.administer({ ...registry, functionName: 'describeToken', args: [wrapper, { ...described, kind }] })
    await describeAs(2)
    try {
      expect(await client.readContract({ ...registry, functionName: 'multiplierOf', args: [wrapper] })).toEqual([
        one('6'),
        0n,
      ])
      const { agentId } = trader
      const { body: listed } = await call('listTokens')
      expect(listed.tokens.find(({ address }: Body) => address === wrapper)).toMatchObject({
        kind: 'wrapper',
        multiplier: '6',
      })
      const isSixfold = ({ tokenAmount, shareAmount }: Body) => expect(shareAmount).toBe(`${BigInt(tokenAmount) * 6n}`)
      const { position: held } = (await call('getPosition', { agentId, positionId })).body
      isSixfold(held)
      for (const position of (await call('listPositions', { agentId })).body.positions) isSixfold(position)
      const { body: quote } = await call('getReduceIntentQuote', { agentId, positionId, exitBps: 10_000 })
      expect(quote.estimate.shareIn).toBe(held.shareAmount)
    } finally {
      await node.setCode({ address: wrapper, bytecode: own })
      await describeAs(described.kind)
    }
  })
})

describe('a token that is listed later and follows a draft', () => {
  const [SET_AT, TRANSFER_WITH_UI, TESTNET] = [0, 1, 2]
  const drafts: Record<string, Address> = {}
  const actionsOf = async (symbol: string): Promise<Body> => (await call('listCorporateActions', { symbol })).body

  async function list(symbol: string, variant: number) {
    const token = await deployDraft(symbol, variant)
    drafts[symbol] = token
    await chain.administer({
      address: deployment.contracts.TokenRegistry,
      abi: tokenRegistryAbi,
      functionName: 'registerToken',
      args: [token],
    })
  }
  const change = (symbol: string, multiplier: string) =>
    chain.send(deployment.accounts.payer, {
      address: drafts[symbol] ?? '0x',
      abi: draftStockTokenAbi,
      functionName: 'updateMultiplier',
      args: [one(multiplier), 0n],
    })

  it('has its changes indexed from then on, of 3 and of 4 values, under a symbol with a dot and one of a letter', async () => {
    await list('BRK.B', SET_AT)
    await list('F', TESTNET)
    expect(await actionsOf('F')).toMatchObject({ multiplier: '1', actions: [], isExplained: true })
    await change('BRK.B', '2')
    await change('F', '1.001')
    expect(await actionsOf('BRK.B')).toMatchObject({
      symbol: 'BRK.B',
      multiplier: '2',
      isExplained: true,
      actions: [{ state: 'effective', oldMultiplier: '1', newMultiplier: '2', effectiveAt: '0' }],
    })
    expect(await actionsOf('F')).toMatchObject({ multiplier: '1.001', isExplained: true })
    expect(await shown('F')).toMatchObject({ kind: 'scaledUI', multiplier: '1.001', issuer: null })
  })

  it('is read although it lacks version(), eip712Domain(), ERC-165 and an oraclePaused() that answers', async () => {
    for (const signature of [
      'version()',
      'eip712Domain()',
      'supportsInterface(bytes4)',
      'oraclePaused()',
      'toUIAmount(uint256)',
    ]) {
      const data = concatHex([toFunctionSelector(signature), pad('0xa60bf13d', { dir: 'right', size: 32 })])
      await expect(client.call({ to: drafts.F, data })).rejects.toThrow()
    }
    expect(await shown('F')).toMatchObject({ symbol: 'F', kind: 'scaledUI', multiplier: '1.001', listed: true })
    expect(await priceOf('F')).toMatchObject({ stale: true, unsettled: false })
    const { body } = await call('getReadiness')
    expect((body.restricted ?? body.details.restricted).map(({ symbol }: Body) => symbol)).not.toContain('F')
  })

  it('has its transfers of either form left alone, by index, trades and history', async () => {
    const topicsSince = async (token: Address, fromBlock: bigint) =>
      (await client.getLogs({ address: token, fromBlock })).map(({ topics }) => topics[0]?.slice(0, 10))
    const fromBlock = await client.getBlockNumber()
    await list('NET', TRANSFER_WITH_UI)
    const token = drafts.NET ?? '0x'
    const mint = { address: token, abi: draftStockTokenAbi, functionName: 'mint', args: [token, one('1')] } as const
    await chain.send(deployment.accounts.payer, mint)
    expect(await topicsSince(token, fromBlock)).toContain('0x0226a2f5') // TransferWithUIAmount, of a draft
    const trader = await newTrader({ vault: FRONTIER })
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '50' })
    expect(await topicsSince(tokenOf('NVDA'), fromBlock)).toContain('0x37e7f0db') // TransferWithScaledUI, as deployed
    const { trades } = (await call('getTradeHistory', { agentId: trader.agentId })).body
    const { position } = (await call('getPosition', { agentId: trader.agentId, positionId })).body
    expect(trades).toMatchObject([{ type: 'PositionOpened', tokenAmount: position.tokenAmount }])
    expect(await actionsOf('NET')).toMatchObject({ actions: [], isExplained: true, multiplier: '1' })
  })

  it('may say 0, 2^255 or less than before: nothing is posted by the first two, and no read fails', async () => {
    await list('BULL', SET_AT)
    const token = drafts.BULL ?? '0x'
    await chain.administer({
      address: deployment.contracts.TokenRegistry,
      abi: tokenRegistryAbi,
      functionName: 'describeToken',
      args: [token, { kind: 1, session: 2, powers: 0, issuer: zeroAddress }],
    })
    for (const multiplier of [1n << 255n, 0n, one('0.5')]) {
      await chain.send(deployment.accounts.payer, {
        address: token,
        abi: draftStockTokenAbi,
        functionName: 'updateMultiplier',
        args: [multiplier, 0n],
      })
      expect(await shown('BULL')).toMatchObject({ multiplier: formatUnits(multiplier || one('1'), 18) })
      expect((await actionsOf('BULL')).actions[0]).toMatchObject({ newMultiplier: formatUnits(multiplier, 18) })
      expect((await call('getReadiness')).status).toBeLessThan(504)
      const isPosted = multiplier === one('0.5')
      await advanceTo((await now()) + 5)
      quoteShare('BULL', '10', await now())
      const { updated, skipped } = await refresh('BULL')
      expect({ updated, skipped }).toEqual({
        updated: isPosted ? ['BULL'] : [],
        skipped: isPosted ? [] : [{ symbol: 'BULL', reason: multiplier === 0n ? 'unsettled' : 'invalidPrice' }],
      })
    }
    expect(await priceOf('BULL')).toMatchObject({ priceUsd: '5' })
  })

  it('tells the subscribers of its symbol of a change, though nobody holds it, and those who resume', async () => {
    await list('P', TESTNET)
    const symbols = '/events?symbols=P'
    const [stream, all] = [listen(await request(symbols)), listen(await request('/events'))]
    await Promise.all([stream.open(), all.open()])
    const start = stream.lastEventId()
    const effectiveAt = (await now()) + 600
    await chain.send(deployment.accounts.payer, {
      address: drafts.P ?? '0x',
      abi: draftStockTokenAbi,
      functionName: 'updateMultiplier',
      args: [one('3'), BigInt(effectiveAt)],
    })
    const catchUp = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    await catchUp()
    const announced = await stream.next('corporateAction')
    expect(announced.data).toEqual({
      symbol: 'P',
      token: drafts.P,
      state: 'announced',
      newMultiplier: '3',
      effectiveAt: `${effectiveAt}`,
      asOf: expect.anything(),
    })
    await advanceTo(effectiveAt)
    await chain.refreshPrices() // so that the log does not wait for its next look at the clock
    await catchUp()
    const effective = await stream.next('corporateAction')
    expect(effective.data).toMatchObject({ symbol: 'P', state: 'effective', newMultiplier: '3' })
    await stream.leave()
    const resumed = listen(await request(`${symbols}&after=${start}`))
    expect(await resumed.next('corporateAction')).toEqual(announced)
    expect(await resumed.next('corporateAction')).toEqual(effective)
    await resumed.leave()
    // A stream of all agents has what they hold, and nothing twice.
    expect(all.events.filter(({ data }) => data.symbol === 'P')).toEqual([])
    await all.leave()
  })

  it('says that no known event explains its multiplier after an unknown one', async () => {
    const NEW_MULTIPLIER_SLOT = numberToHex(6, { size: 32 })
    await node.setStorageAt({
      address: drafts.F ?? '0x',
      index: NEW_MULTIPLIER_SLOT,
      value: numberToHex(one('5'), { size: 32 }),
    })
    await node.mine({ blocks: 1 })
    expect(await actionsOf('F')).toMatchObject({ multiplier: '5', isExplained: false })
  })
})
