import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { createPublicClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import {
  chain,
  FRONTIER,
  GENESIS,
  newTrader,
  openPosition,
  quoteOf,
  registrationOf,
  type Submission,
  signedIntent,
  submit,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper, runCycle } from '../support/keeper-cycles.ts'
import { appWith, call, deployment, type Input } from '../support/surfaces.ts'

// The chain of these tests has contracts without trade policy, capital modes and promotion criteria.

const { accounts, contracts } = deployment
const router = { address: contracts.TradeRouter, abi: tradeRouterAbi } as const
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const EXTENSION_RULES = [
  'entrySlippage',
  'minTradeSize',
  'deadline',
  'spotPrice',
  'twapPrice',
  'maxDrawdown',
  'capitalMode',
  'noExitInProgress',
  'noPendingRuleMet',
  'agentNotOver',
]
/**
 * Quotes and submits an intent. Expects the outcome that the quote's checks predict, and none of the extension's rules.
 */
async function expectAgreement(trader: Trader, submission: Submission, input: Input) {
  const { body: quote } = await call(quoteOf[submission], { agentId: trader.agentId, ...input })
  expect(quote.tradePolicy).toBeNull()
  const rules = quote.checks.map(({ rule }: Body) => rule)
  for (const rule of EXTENSION_RULES) expect(rules).not.toContain(rule)
  const failing = quote.checks.find(({ pass }: Body) => !pass)
  const { status, body } = await call(submission, await signedIntent(trader, submission, input))
  expect({ input, status, code: body.code, remedy: body.remedy }).toMatchObject(
    failing ? { status: 400, code: failing.code, remedy: failing.remedy } : { status: 201 },
  )
  return { quote, body, code: body.code ?? 'accepted' }
}

const toUsdc = (value: bigint) => `${value / 1_000_000n}.${`${value % 1_000_000n}`.padStart(6, '0')}`
const positionOf = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await call('getPosition', { agentId, positionId })).body.position
const tradesOf = async ({ agentId }: Trader, input: Input = {}): Promise<Body[]> =>
  (await call('getTradeHistory', { agentId, ...input })).body.trades
const sum = (trades: Body[], field: string) => trades.reduce((total, trade) => total + BigInt(trade[field] ?? 0), 0n)

describe('a deployment with the functions of the protocol alone', () => {
  it('a deployment with the functions of the protocol alone registers agents, and finds them', async () => {
    const account = privateKeyToAccount(`0x${'a7'.repeat(32)}`)
    const registration = await registrationOf(account, { vault: FRONTIER, name: 'first' })
    const { status, body } = await call('registerAgent', registration)
    expect({ status, body }).toMatchObject({ status: 201, body: { agentId: expect.stringMatching(/^[1-9]\d*$/) } })
    expect(await call('registerAgent', registration)).toMatchObject({ status: 200, body: { agentId: body.agentId } })
    const { agentId } = body
    const { body: found } = await call('getAgent', { agentId })
    expect(found.agent).toMatchObject({
      owner: account.address,
      signer: account.address,
      vault: FRONTIER,
      track: 0,
      status: AgentStatus.Active,
      name: 'first',
    })
    const { body: owned } = await call('listAgentsByOwner', { owner: account.address })
    expect(owned).toMatchObject({ count: 1, agents: [{ agentId }] })
    expect(await call('getAgentByErc8004', { erc8004AgentId: '999999' })).toMatchObject({ status: 404 })
  })

  it('a deployment with the functions of the protocol alone quotes without a trade policy', async () => {
    const { agentId } = await newTrader()
    const input = { agentId, symbol: 'NVDA', usdcAmount: '0.5', maxSlippageBps: '5000' }
    const { body } = await call('getTradeIntentQuote', input)
    expect(body).toMatchObject({
      tradePolicy: null,
      allocation: { cap: '10000000000', effectiveCap: '10000000000', capitalMode: null },
    })
    expect(body.checks.filter(({ pass }: Body) => !pass)).toEqual([])
    const rules = body.checks.map(({ rule }: Body) => rule)
    for (const rule of EXTENSION_RULES) expect(rules).not.toContain(rule)
  })

  it('a deployment with the functions of the protocol alone accepts exactly what its quotes say', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const quote = async (symbol: string): Promise<Body> =>
      (await call('getTradeIntentQuote', { agentId: trader.agentId, symbol })).body
    const far = `${BigInt((await quote('META')).serverTime) + 365n * 86_400n}`
    const open = { symbol: 'META', usdcAmount: '0.5', maxSlippageBps: '10000', exits: '-700:10000,900:5000,1200:10000' }
    const opened = await expectAgreement(trader, 'submitTradeIntent', { ...open, deadline: far })
    const { positionId } = opened.body
    const max = BigInt((await quote('NVDA')).maxUsdcAmount)
    expect(max).toBeGreaterThan(1_000_000_000n)
    for (const [submission, input, expected] of [
      ['submitTradeIntent', open, 'POSITION_ALREADY_OPEN'],
      ['submitTradeIntent', { ...open, symbol: 'NVDA', usdcAmount: toUsdc(max + 1n) }, 'EXCEEDS_MAX_TRADE_SIZE'],
      ['submitTradeIntent', { ...open, symbol: 'NVDA', usdcAmount: toUsdc(max) }, 'accepted'],
      ['submitTradeIntent', { ...open, symbol: 'TSLA', exits: '900:10000' }, 'EXIT_RULES_OUT_OF_BOUNDS'],
      ['submitTradeIntent', { ...open, symbol: 'TSLA', exits: '-700:5000,900:10000' }, 'accepted'],
      ['submitTradeIntent', { ...open, symbol: 'AAPL' }, 'TOKEN_NOT_ALLOWED'],
      ['submitAddIntent', { positionId, usdcAmount: toUsdc(max) }, 'EXCEEDS_ALLOCATION_CAP'],
      ['submitAddIntent', { positionId, usdcAmount: '10', maxSlippageBps: '0' }, 'SLIPPAGE_EXCEEDED'],
      ['submitAddIntent', { positionId, usdcAmount: '0.000001', maxSlippageBps: '10000' }, 'SLIPPAGE_EXCEEDED'], // all fee
      ['submitAddIntent', { positionId, usdcAmount: '0.0001', maxSlippageBps: '10000' }, 'accepted'],
      ['submitExitLadderIntent', { positionId, exits: '-1:10000' }, 'PENDING_RULE_ALREADY_TRIGGERED'],
      ['submitExitLadderIntent', { positionId, exits: '-800:10000', deadline: far }, 'accepted'],
      ['submitReduceIntent', { positionId, exitBps: '5000', deadline: far }, 'accepted'],
      ['submitReduceIntent', { positionId, exitBps: '10000' }, 'accepted'],
    ] as const)
      expect([submission, input, (await expectAgreement(trader, submission, input)).code]).toEqual([
        submission,
        input,
        expected,
      ])
  })

  it('a deployment with the functions of the protocol alone trades, and its reads have no capital mode', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '100', maxSlippageBps: '5000' })
    for (const [submission, input] of [
      ['submitAddIntent', { usdcAmount: '0.5' }],
      ['submitExitLadderIntent', { exits: '-900:10000' }],
      ['submitReduceIntent', { exitBps: '5000' }],
    ] as const)
      expect(await submit(trader, submission, { positionId, ...input })).toMatchObject({ status: 201 })

    const { body: listed } = await call('listPositions', { agentId })
    expect(listed.positions).toMatchObject([{ positionId, capitalMode: null, priceStale: false }])
    const { body: risk } = await call('getRiskState', { agentId })
    expect(risk).toMatchObject({
      capitalMode: null,
      tradePolicy: null,
      promotionReadiness: { tradesCompleted: 3, alphaScore: null, meetsAlphaScore: null, eligible: false },
    })
    expect(await tradesOf(trader)).toHaveLength(4)
    for (const trade of await tradesOf(trader)) expect(trade.capitalMode).toBeNull()
  })

  it('a deployment with the functions of the protocol alone records what was bought, sold and force-closed, with amounts that add up', async () => {
    const trader = await newTrader({ vault: FRONTIER })
    const { agentId } = trader
    const reduced = await openPosition(trader, { symbol: 'PLTR', usdcAmount: '100' })
    await submit(trader, 'submitReduceIntent', { positionId: reduced, exitBps: '2500' })
    await submit(trader, 'submitReduceIntent', { positionId: reduced, exitBps: '10000' })
    const forced = await openPosition(trader, { symbol: 'META', usdcAmount: '50' })
    await chain.setAgentStatus(BigInt(agentId), AgentStatus.Suspended)
    await chain.send(accounts.operator, { ...router, functionName: 'forceClose', args: [BigInt(forced)] })

    const trades = await tradesOf(trader)
    expect(trades.map(({ type, source }: Body) => [type, source])).toEqual([
      ['PositionForceClosed', 'operator'],
      ['PositionOpened', 'intent'],
      ['PositionReduced', 'intent'],
      ['PositionReduced', 'intent'],
      ['PositionOpened', 'intent'],
    ])
    for (const positionId of [reduced, forced]) {
      const sales = trades.filter(trade => trade.positionId === positionId && /Reduced|Force/.test(trade.type))
      const [opened] = trades.filter(trade => trade.positionId === positionId && trade.type === 'PositionOpened')
      const { realizedPnlUsdc } = await positionOf(trader, positionId)
      expect(`${sum(sales, 'realizedPnlUsdc')}`).toBe(realizedPnlUsdc)
      expect(`${sum(sales, 'tokenAmount')}`).toBe(opened?.tokenAmount)
    }
    const { body: closed } = await call('listClosedPositions', { agentId })
    expect(closed.positions.map(({ positionId, capitalMode }: Body) => [positionId, capitalMode])).toEqual([
      [forced, null],
      [reduced, null],
    ])
  })

  it('a deployment with the functions of the protocol alone shows the triggers of exits at the prices at which its router fires, and its keeper fires them', async () => {
    const withKeeper = appWith({ KEEPER_ENABLED: 'true' })
    const keeper = env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${contracts.TradeRouter}`))
    await runInDurableObject(keeper, instance => {
      Object.assign(instance, { env: { ...env, KEEPER_ENABLED: 'true' } })
    })
    const trader = await newTrader({ vault: FRONTIER })
    const { agentId } = trader
    const positionId = await openPosition(trader, {
      symbol: 'HOOD',
      usdcAmount: '100',
      exits: '-500:2500,-900:10000,2000:10000',
    })
    const automation = async (): Promise<Body> =>
      (await call('getPositionAutomation', { agentId, positionId }, withKeeper)).body
    const isTriggerMet = () =>
      client.readContract({
        address: contracts.TradeRouterLens,
        abi: tradeRouterLensAbi,
        functionName: 'isTriggerMet',
        args: [BigInt(positionId)],
      })
    await runCycle(keeper) // may join a cycle that has read the positions before this one was opened
    await runCycle(keeper)
    const before = await automation()
    expect(before).toMatchObject({ keeperEnabled: true, lastOutcome: { outcome: 'notReached' } })
    // The slippage that was signed.
    expect(Number(before.pendingRules[1].minUsdcOut)).toBeCloseTo(91_000_000 * 0.99, -5)
    const trigger = BigInt(Math.round(Number(before.pendingRules[0].triggerPriceUsd) * 1e8))
    for (const [price, isMet] of [
      [trigger + 1n, false],
      [trigger, true],
    ] as const) {
      await chain.setPrice('HOOD', `${price / 10n ** 8n}.${`${price % 10n ** 8n}`.padStart(8, '0')}`)
      expect((await automation()).pendingRules[0].distanceBps === 0).toBe(isMet)
      expect(await isTriggerMet()).toBe(isMet)
    }
    await runCycle(keeper)
    await runCycle(keeper)
    expect(await automation()).toMatchObject({
      status: 'Open',
      pendingRules: [{ ruleIndex: 1, triggerBps: -900 }, { ruleIndex: 2 }],
      lastOutcome: { outcome: 'executed', firedBy: 'keeper', ruleIndex: 0 },
    })
    await chain.setPrice('HOOD', '120')
    await runCycle(keeper)
    await runCycle(keeper)
    expect(await automation()).toMatchObject({
      status: 'Closed',
      lastOutcome: { outcome: 'executed', firedBy: 'keeper', ruleIndex: 1 },
    })
    await chain.setPrice('HOOD', '138.6')
    const exits = await tradesOf(trader, { type: 'ExitExecuted' })
    expect(exits).toMatchObject([
      { ruleIndex: 1, triggerBps: -900, exitBps: 10_000, capitalMode: null },
      { ruleIndex: 0, triggerBps: -500, exitBps: 2_500, capitalMode: null },
    ])
    await disarmKeeper(keeper)
  })

  it('a deployment with the functions of the protocol alone defers an exit while the price is stale, and reads positions and risk without it', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'MSFT', usdcAmount: '100' })
    await chain.increaseTime(86_401)
    try {
      expect(await positionOf(trader, positionId)).toMatchObject({ priceStale: true, derived: { returnBps: null } })
      const { body: risk } = await call('getRiskState', { agentId })
      expect(risk.staleSymbols).toEqual(['MSFT'])
      const { code } = await expectAgreement(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
      expect(code).toBe('STALE_PRICE')
    } finally {
      await chain.refreshPrices()
    }
    expect(await positionOf(trader, positionId)).toMatchObject({ priceStale: false })
  })

  it('a deployment with the functions of the protocol alone has no messages of owners, and names what is missing', async () => {
    const { agentId } = await newTrader()
    const missing = {
      status: 503,
      body: { code: 'OWNER_CONTROLS_NOT_SET', error: expect.stringContaining('OwnerControls') },
    }
    const signed = { agentId, deadline: '9999999999', nonce: '0', signature: `0x${'11'.repeat(65)}` }
    const owner = '0x00000000000000000000000000000000000000A1'
    const signer = '0x00000000000000000000000000000000000000b2'
    for (const result of [
      await call('getMandate', { agentId }),
      await call('getMandateQuote', { agentId, mode: 'trade' }),
      await call('setMandate', { ...signed, mode: 'trade' }),
      await call('getStopQuote', { agentId, action: 'flatten' }),
      await call('stopAgent', { ...signed, action: 'flatten' }),
      await call('getOwnershipQuote', { agentId, newOwner: owner }),
      await call('offerOwnership', { ...signed, newOwner: owner }),
      await call('getAcceptanceQuote', { agentId, newSigner: signer }),
      await call('acceptOwnership', { ...signed, newSigner: signer }),
      await call('getSignerQuote', { agentId, newSigner: signer }),
      await call('setSigner', { ...signed, newSigner: signer }),
      await call('getCancelQuote', { agentId }),
      await call('cancelIntents', { ...signed, untilNonce: '1' }),
      await call('getRegistrationQuote', { signer, owner }),
    ])
      expect(result).toMatchObject(missing)
    const { body } = await call('getSigningVectors')
    expect(body.vectors.map(({ primaryType }: Body) => primaryType)).toEqual([
      'SelfRegister',
      'LinkERC8004',
      'OpenPosition',
      'AddToPosition',
      'ReducePosition',
      'UpdateExitLadder',
      'CreateWebhook',
      'ListWebhooks',
      'ManageWebhook',
    ])
  })

  it('a deployment with the functions of the protocol alone has no orders, and names what is missing', async () => {
    const { agentId } = await newTrader()
    const quoted = await call('getOrderQuote', {
      agentId,
      type: 'limit',
      symbol: 'NVDA',
      usdcAmount: '10',
      price: '50',
    })
    expect(quoted).toMatchObject({ status: 503, body: { code: 'ORDER_BOOK_NOT_SET' } })
    expect(await call('listOrders', { agentId })).toMatchObject({ status: 503, body: { code: 'ORDER_BOOK_NOT_SET' } })
  })

  it('a deployment with the functions of the protocol alone has no what-if, because its contracts name no admin', async () => {
    const { agentId } = await newTrader()
    expect(await call('whatIf', { agentId, prices: { NVDA: '110' } })).toMatchObject({
      status: 503,
      body: { code: 'WHAT_IF_UNAVAILABLE', remedy: expect.any(String) },
    })
  })

  it('a deployment with the functions of the protocol alone is read completely', async () => {
    const { body: vaults } = await call('listVaults')
    expect(vaults.vaults).toMatchObject([{ contractAddress: GENESIS }, { contractAddress: FRONTIER }])
    for (const { vaultTrackConfigs } of vaults.vaults)
      for (const track of vaultTrackConfigs) expect(track).toMatchObject({ vault: expect.any(String), active: true })
    const { body: tokens } = await call('listVaultTokens', { id: 'frontier' })
    for (const token of tokens.tokens) expect(token).toMatchObject({ allowedInVault: true, price: { stale: false } })
    const { body: stats } = await call('getVaultStats', { id: 'frontier' })
    expect(BigInt(stats.totalAssets)).toBeGreaterThan(0n)
    const { agentId } = await newTrader()
    expect(await call('getEquityHistory', { agentId })).toMatchObject({ status: 200 })
    expect(await call('getPrices', {})).toMatchObject({ status: 200 })
    expect(await call('getReadiness', {})).toMatchObject({ status: 200, body: { status: 'ready' } })
  })
})
