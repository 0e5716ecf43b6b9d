import { env } from 'cloudflare:workers'
import {
  type Address,
  createTestClient,
  createWalletClient,
  formatUnits,
  type Hex,
  http,
  numberToHex,
  parseUnits,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import bytecodes from '../../contracts/bytecode.json'
import { draftStockTokenAbi } from '../../contracts-abi/draft-stock-token.ts'
import { scaledStockTokenAbi } from '../../contracts-abi/scaled-stock-token.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { connect } from '../../devnet/sender.ts'
import { chain, FRONTIER, newTrader, openPosition, signedIntent, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listen, type StreamListener } from '../support/event-stream.ts'
import { disarmKeeper, runCycle } from '../support/keeper-cycles.ts'
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
      expect((await positionOf(on)).shareAmount).toBe(`${(held * after) / 10n ** 18n}`)
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
  const [before, after] = [one('1'), one('4')]
  const skipped = { updated: [], skipped: [{ symbol: 'META', reason: 'unsettled' }] }

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
    await schedule('META', after, effectiveAt)
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const { data } = await stream.next('corporateAction')
    expect(data).toMatchObject({
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
    expect(await call('submitAddIntent', bought)).toMatchObject({
      status: 400,
      body: { code: 'PRICE_UNSETTLED', retryable: true },
    })
    const { body: readiness } = await call('getReadiness')
    expect((readiness.oracle ?? readiness.details.oracle).unsettled).toContain('META')
    expect((readiness.problems ?? readiness.details.problems).join()).toContain('before a corporate action')
    await runCycle(keeper())
    const { body } = await call('getPositionAutomation', { agentId: trader.agentId, positionId })
    expect(body.lastOutcome).toMatchObject({ outcome: 'deferred', reason: 'priceUnsettled' })
  })

  it('a reduction by choice sells at its floor while the price is unsettled', async () => {
    expect(await priceOf('META')).toMatchObject({ unsettled: true })
    const { status, body } = await submit(trader, 'submitReduceIntent', { positionId, exitBps: 5000 })
    expect({ status, body }).toMatchObject({ status: 201 })
  })

  it('a provider that has split is posted, buying goes on, and the stream has said that the split took effect', async () => {
    expect(await refreshWith('META', tokenUsd, after)).toMatchObject({ updated: ['META'] })
    expect(await priceOf('META')).toMatchObject({ unsettled: false })
    const { status } = await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
    expect(status).toBe(201)
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const { data } = await stream.next('corporateAction')
    expect(data).toMatchObject({
      symbol: 'META',
      state: 'effective',
      newMultiplier: '4',
      effectiveAt: `${effectiveAt}`,
    })
  })
})

describe('a token that is listed later and follows a draft', () => {
  const [SET_AT, TESTNET] = [0, 2]
  const drafts: Record<string, Address> = {}
  const actionsOf = async (symbol: string): Promise<Body> => (await call('listCorporateActions', { symbol })).body

  /** Deploys a token of a draft, which has no issuer's beacon, and lists it. */
  async function list(symbol: string, variant: number) {
    const { privateKey } = deployment.accounts.payer
    const wallet = createWalletClient({ account: privateKeyToAccount(privateKey), transport: http(deployment.rpcUrl) })
    const bytecode = bytecodes.DraftStockToken as Hex
    const hash = await wallet.deployContract({
      abi: draftStockTokenAbi,
      bytecode,
      args: [symbol, symbol, variant],
      chain: null,
    })
    const { contractAddress } = await client.waitForTransactionReceipt({ hash })
    if (!contractAddress) throw new Error('The receipt has no contract.')
    drafts[symbol] = contractAddress
    await chain.administer({
      address: deployment.contracts.TokenRegistry,
      abi: tokenRegistryAbi,
      functionName: 'registerToken',
      args: [contractAddress],
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
