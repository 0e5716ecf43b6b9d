import { AgentStatus, MandateMode } from '@agent-trading-service/protocol/enums'
import fc from 'fast-check'
import {
  type Address,
  createPublicClient,
  createTestClient,
  erc20Abi,
  type Hex,
  hexToBigInt,
  http,
  numberToHex,
} from 'viem'
import { afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import {
  chain,
  FRONTIER,
  GENESIS,
  newTrader,
  openPosition,
  quoteOf,
  type Submission,
  signedIntent,
  submit,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { type MandateChanges, ownerOf, setMandate } from '../support/owner-calls.ts'
import { whilePoolsStay } from '../support/still-pools.ts'
import { call, callOverHttp, callOverMcp, deployment, type Input } from '../support/surfaces.ts'

// The router accepts an intent exactly if every check of its quote passes. If not, it fails with the code of the first
// failing check.

const NVDA = '180.25'
const META = '641.75'
const CASES = inject('isLong') ? 40 : 4
/** Where a Uniswap v3 pool keeps its observations. */
const OBSERVATIONS_SLOT = 8
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
/** Submits the intent of a quote, and expects the outcome that the quote's checks predict. */
async function expectAgreement(trader: Trader, submission: Submission, input: Input) {
  const { body: quote } = await call(quoteOf[submission], { agentId: trader.agentId, ...input })
  const failing = quote.checks.find(({ pass }: Body) => !pass)
  const { status, body } = await call(submission, await signedIntent(trader, submission, input))
  const expected =
    failing === undefined ? 201 : ['REGISTRY_PAUSED', 'TRADING_PAUSED'].includes(failing.code) ? 503 : 400
  expect({ input, status, code: body.code, remedy: body.remedy, checks: quote.checks }).toMatchObject({
    status: expected,
    ...(failing && { code: failing.code, remedy: failing.remedy }),
  })
  return { quote, status, body }
}

const toUsdc = (value: bigint) => `${value / 1_000_000n}.${`${value % 1_000_000n}`.padStart(6, '0')}`

const amount = fc.oneof(
  fc.integer({ min: 1, max: 60_000_000 }).map(cents => `${cents / 10_000}`),
  fc.constantFrom('0.000001', '4000', '4000.000001', '5000', '5000.000001', '9999.999999', '10000', '10000.000001'),
)
const slippage = fc.constantFrom(0, 5, 100, 100, 100, 2_000, 10_000)
const trigger = fc.integer({ min: -9_000, max: 60_000 }).filter(value => value !== 0)
const ladder = fc
  .array(fc.tuple(trigger, fc.integer({ min: 1, max: 10_000 })), { minLength: 1, maxLength: 5 })
  .map(rules => {
    const sorted = [...rules].sort(([a], [b]) => Math.abs(a) - Math.abs(b))
    return sorted.map(([bps, share], index) => `${bps}:${index === sorted.length - 1 ? 10_000 : share}`).join(',')
  })
const tokenOf = (listed: string) => deployment.tokens[listed] as Hex
const symbol = fc.constantFrom('NVDA', 'META', 'TSLA', 'COIN', 'PLTR', 'HOOD', 'AAPL')
const usdcLimit = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0n) },
  { weight: 2, arbitrary: fc.bigInt(1_000_000n, 6_000_000_000n) },
)
/** Draws a mandate around the time `at`, in Unix seconds. */
const mandate = (at: bigint): fc.Arbitrary<MandateChanges> =>
  fc.record({
    mode: fc.constantFrom(MandateMode.Trade, MandateMode.Trade, MandateMode.Trade, MandateMode.ReduceOnly),
    maxTradeUsdc: usdcLimit,
    maxDailyTurnoverUsdc: usdcLimit,
    maxExposureUsdc: usdcLimit,
    allowedTokens: fc.oneof(
      fc.constant<Hex[]>([]),
      fc.subarray(['NVDA', 'META', 'TSLA', 'PLTR'], { minLength: 1 }).map(listed => listed.map(tokenOf)),
    ),
    validUntil: fc.constantFrom(0n, 0n, at - 1n, at + 1_000_000n),
  })
const seeded = { numRuns: CASES, seed: 20_261_121 }

describe('the checks of a quote', () => {
  let trader: Trader
  beforeAll(async () => {
    trader = await newTrader({ vault: FRONTIER })
  })

  it('the checks of a quote agree with the router on random opens', async () => {
    for (const [usdcAmount, maxSlippageBps, exits, token] of fc.sample(
      fc.tuple(amount, slippage, ladder, symbol),
      seeded,
    )) {
      const { status, body } = await expectAgreement(trader, 'submitTradeIntent', {
        symbol: token,
        usdcAmount,
        maxSlippageBps,
        exits: fc.sample(fc.constantFrom(exits, exits, '-800:10000'), { numRuns: 1, seed: usdcAmount.length })[0],
      })
      // Closes every second position, which makes room for the next ones.
      if (status === 201 && Number(body.positionId) % 2 === 0)
        await expectAgreement(trader, 'submitReduceIntent', { positionId: body.positionId, exitBps: 10_000 })
    }
  }, 300_000)

  it('the checks of a quote refuse a stop within what buying and selling costs, and so does the submission', async () => {
    const trader = await newTrader()
    const input = { symbol: 'NVDA', usdcAmount: '100', exits: '-2:10000,1500:10000' }
    const { quote, body } = await expectAgreement(trader, 'submitTradeIntent', input)
    expect(body.code).toBe('STOP_WITHIN_COSTS')
    const { limit } = quote.checks.find(({ rule }: Body) => rule === 'stopDistance')
    expect(body.details).toEqual({ stopLossBps: '2', atLeastBps: limit })
    const passing = `-${limit}:10000,1500:10000`
    expect((await expectAgreement(trader, 'submitTradeIntent', { ...input, exits: passing })).status).toBe(201)
  })

  it('the checks of a quote judge a new stop by the present price, and so the stop behind an add', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
    const ladderQuote = async (exits: string) =>
      (await call('getExitLadderIntentQuote', { agentId, positionId, exits })).body
    const checkOf = ({ checks }: Body) => checks.find(({ rule }: Body) => rule === 'stopDistance')
    const { limit } = checkOf(await ladderQuote('-800:10000'))
    expect(checkOf(await ladderQuote(`-${limit}:10000`))).toMatchObject({ pass: true, used: limit })

    // The service relays what is signed anyway: a stop that is too near protects better than none.
    const near = { positionId, exits: `${1 - Number(limit)}:10000` }
    const { checks, bindingRule } = await ladderQuote(near.exits)
    expect(checks.filter(({ pass }: Body) => !pass)).toMatchObject([
      { code: 'STOP_WITHIN_COSTS', limit, remedy: expect.stringContaining('-200 is 2 %') },
    ])
    expect(bindingRule).toBe('stopDistance')
    expect((await submit(trader, 'submitExitLadderIntent', near)).status).toBe(201)
    const { body: add } = await call('getAddIntentQuote', { agentId, positionId, usdcAmount: '10' })
    expect(add).toMatchObject({ bindingRule: 'stopDistance', maxUsdcAmount: '0' })

    await chain.setPrice('NVDA', 200)
    expect(checkOf(await ladderQuote('-1:10000'))).toMatchObject({ pass: true, limit: '1' })
    await chain.setPrice('NVDA', NVDA)
  })

  it('the checks of a quote pass a trade whose stop alone breaks the limit of the day, with a warning that says so', async () => {
    const { agentId } = await newTrader()
    const quoted = async (input: Input) =>
      (await call('getTradeIntentQuote', { agentId, symbol: 'NVDA', ...input })).body
    const large = await quoted({ usdcAmount: '9000', stopLossPercent: 8, takeProfitPercent: '15' })
    expect(large.body.exits).toEqual([
      { triggerType: 'StopLoss', triggerBps: -800, exitBps: 10_000 },
      { triggerType: 'TakeProfit', triggerBps: 1500, exitBps: 10_000 },
    ])
    expect(large.checks.filter(({ pass }: Body) => !pass)).toEqual([])
    // 8,280 USDC at the stop, of which the lowest floor gives up 3 %: of a cap of 10,000 and a daily limit of 500.
    expect(large).toMatchObject({
      lossAtStopUsdc: '968400000',
      lossAtStopOfEquityBps: 969,
      lossAtStopOfDailyLimitBps: 19_368,
      warnings: [
        'If the stop fires, the agent can lose 968.4 USDC; the limit of daily losses leaves 500 USDC, after which it buys nothing more.',
      ],
    })
    const small = await quoted({ usdcAmount: '90', stopLossPercent: '8' })
    expect(small.warnings ?? []).toEqual([])
  })

  it('the checks of a quote size a trade by the most that its stop may lose', async () => {
    const { agentId } = await newTrader()
    const quoted = (input: Input) => call('getTradeIntentQuote', { agentId, symbol: 'NVDA', ...input })
    const { body } = await quoted({ maxLossUsdc: '50', stopLossPercent: '8' })
    expect(body).toMatchObject({
      lossAtStopUsdc: '50000000',
      typedData: { message: { usdcAmount: '464684014' } },
      body: { usdcAmount: '464.684014' },
    })
    expect((await quoted({ usdcAmount: '464.684015', stopLossPercent: '8' })).body.lossAtStopUsdc).toBe('50000001')
    for (const [input, problem] of [
      [{ maxLossUsdc: '50', usdcAmount: '100' }, 'send one of them'],
      [{ maxLossUsdc: '50', exits: '1500:10000' }, 'needs a stop-loss'],
      [{ usdcAmount: '100', exits: '-800:10000', stopLossPercent: '8' }, 'send one of them'],
      [{ usdcAmount: '100', stopLossPercent: '8.125' }, 'stopLossPercent: must be percent above zero'],
      [{ usdcAmount: '100', stopLossPercent: '-8' }, 'stopLossPercent: must be percent above zero'],
      [{ usdcAmount: '100', stopLossPercent: '800' }, 'stopLossPercent: must be percent above zero and below 100'],
    ] as const)
      expect(await quoted(input)).toMatchObject({
        status: 400,
        body: {
          code: 'INVALID_REQUEST',
          details: { problems: [{ problem: expect.stringContaining(problem.replace(/^\w+: /, '')) }] },
        },
      })
    const huge = `1${'0'.repeat(70)}`
    expect((await quoted({ usdcAmount: huge })).body.lossAtStopOfEquityBps).toBe(Number.MAX_SAFE_INTEGER)
    for (const maxLossUsdc of ['0.0000001', `9${huge}`])
      expect(await quoted({ maxLossUsdc, stopLossPercent: '8' })).toMatchObject({
        status: 400,
        body: { code: 'INVALID_AMOUNT', details: { field: 'maxLossUsdc' } },
      })
  })

  it('the checks of a quote have no stop and no loss of zero: HTTP refuses it, and a tool takes it for absent', async () => {
    const { agentId } = await newTrader()
    for (const [zero, code] of [
      [{ stopLossPercent: '0' }, 'INVALID_REQUEST'],
      [{ maxLossUsdc: '0' }, 'INVALID_AMOUNT'],
    ] as const) {
      const input = { agentId, symbol: 'NVDA', ...('maxLossUsdc' in zero ? {} : { usdcAmount: '100' }) }
      expect(await callOverHttp('getTradeIntentQuote', { ...input, ...zero })).toMatchObject({
        status: 400,
        body: { code },
      })
      const [filled, bare] = [
        await callOverMcp('getTradeIntentQuote', { ...input, ...zero }),
        await callOverMcp('getTradeIntentQuote', input),
      ]
      expect(filled.body.typedData?.message.exitsHash).toEqual(bare.body.typedData?.message.exitsHash)
      expect(filled.status).toBe(200)
    }
  })

  it('the checks of a quote count the whole position at its stop, also after an add and with another ladder', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100', exits: '-800:10000' })
    const addQuote = (input: Input) => call('getAddIntentQuote', { agentId, positionId, ...input })
    expect((await addQuote({ usdcAmount: '364.684014' })).body.lossAtStopUsdc).toBe('50000000')
    const { body: sized } = await addQuote({ maxLossUsdc: '50' })
    expect(sized).toMatchObject({ lossAtStopUsdc: '50000000', body: { usdcAmount: '364.684014' } })
    expect((await submit(trader, 'submitAddIntent', { positionId, maxLossUsdc: '50' })).status).toBe(201)
    expect(await addQuote({ maxLossUsdc: '50' })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_AMOUNT', details: { problem: expect.stringContaining('lose as much already') } },
    })
    const { body: ladder } = await call('getExitLadderIntentQuote', { agentId, positionId, stopLossPercent: '50' })
    expect(ladder.lossAtStopUsdc).toBe('239312268')
    expect((ladder.warnings ?? []).join()).not.toContain('ends')
    const { body: profit } = await call('getExitLadderIntentQuote', { agentId, positionId, takeProfitPercent: '15' })
    expect(profit.warnings.join()).toContain('no stop-loss: the pending one at -8 % ends')
    const { body: present } = await call('getExitLadderIntentQuote', { agentId, positionId })
    expect(present.lossAtStopUsdc).toBe('50000000')
  })

  it.each([GENESIS, FRONTIER])(
    'the checks of a quote say the most that the stop then loses, in the vault %s',
    async vault => {
      const trader = await newTrader({ vault })
      const { agentId } = trader
      const input = { symbol: 'META', usdcAmount: '500', stopLossPercent: '8' }
      const { body: quote } = await call('getTradeIntentQuote', { agentId, ...input })
      const positionId = await openPosition(trader, input)
      const { body: held } = await call('getPosition', { agentId, positionId })
      const entryPrice = BigInt(held.position.entryPriceUsdc)
      await chain.setPrice('META', toUsdc((entryPrice * 92n) / 100n))
      await chain.increaseTime(3)
      await chain.send(deployment.accounts.depositor, {
        address: deployment.contracts.TradeRouter,
        abi: tradeRouterAbi,
        functionName: 'executeExit',
        args: [BigInt(positionId)],
      })
      const { body: closed } = await call('getPosition', { agentId, positionId })
      const loss = -BigInt(closed.position.realizedPnlUsdc)
      expect(loss).toBeGreaterThan(40_000_000n)
      expect(loss).toBeLessThanOrEqual(BigInt(quote.lossAtStopUsdc))
      await chain.setPrice('META', META)
    },
  )

  it('the checks of a quote agree with the router on random adds, reduces and ladder updates', async () => {
    const mover = await newTrader({ vault: FRONTIER })
    const positionId = await openPosition(mover, { symbol: 'PLTR', usdcAmount: '100' })
    const cases = fc.sample(fc.tuple(amount, slippage, ladder, fc.integer({ min: 1, max: 3_000 })), seeded)
    for (const [usdcAmount, maxSlippageBps, exits, exitBps] of cases.slice(0, CASES / 2)) {
      await expectAgreement(mover, 'submitAddIntent', { positionId, usdcAmount, maxSlippageBps })
      await expectAgreement(mover, 'submitReduceIntent', { positionId, exitBps })
      await expectAgreement(mover, 'submitExitLadderIntent', { positionId, exits })
    }
  }, 300_000)

  // Pools take their fee in whole units: one of 24 of TSLA, one of 4 of COIN, or the only one.
  it.each([
    ['TSLA', '1.02'],
    ['COIN', '10'],
    ['COIN', '1.5'],
  ])(
    'the checks of a quote agree with the router on the close of a few base units of %s, left from %s USDC',
    async (symbol, usdcAmount) => {
      const closer = await newTrader({ vault: FRONTIER })
      const positionId = await openPosition(closer, { symbol, usdcAmount })
      for (const exitBps of [9_999, 10_000])
        expect((await expectAgreement(closer, 'submitReduceIntent', { positionId, exitBps })).status).toBe(201)
    },
  )

  it('the checks of a quote give a maxUsdcAmount that is accepted, while one base unit more is rejected', async () => {
    for (const vault of [FRONTIER, undefined]) {
      const fresh = await newTrader(vault ? { vault } : {})
      const { body } = await call('getTradeIntentQuote', { agentId: fresh.agentId, symbol: 'NVDA' })
      const max = BigInt(body.maxUsdcAmount)
      const above = await expectAgreement(fresh, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: toUsdc(max + 1n) })
      expect(above.quote.bindingRule).toBe(body.bindingRule)
      expect(
        (await expectAgreement(fresh, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: toUsdc(max) })).status,
      ).toBe(201)
    }
  })

  it('the checks of a quote agree with the router on random opens and adds under random mandates', async () => {
    const owned = await newTrader({ vault: FRONTIER })
    const owner = await ownerOf(owned)
    const positionId = await openPosition(owned, { symbol: 'PLTR', usdcAmount: '10' })
    const { timestamp } = await client.getBlock()
    for (const [changes, usdcAmount, token] of fc.sample(fc.tuple(mandate(timestamp), amount, symbol), seeded)) {
      await setMandate(owner, owned.agentId, changes)
      const { status, body } = await expectAgreement(owned, 'submitTradeIntent', {
        symbol: token,
        usdcAmount,
        maxSlippageBps: 100,
        exits: '-800:10000',
      })
      await expectAgreement(owned, 'submitAddIntent', { positionId, usdcAmount, maxSlippageBps: 100 })
      if (status === 201)
        await expectAgreement(owned, 'submitReduceIntent', { positionId: body.positionId, exitBps: 9_000 })
    }
  }, 300_000)

  it('the checks of a quote give a maxUsdcAmount that a mandate limits', async () => {
    const owned = await newTrader({ vault: FRONTIER })
    const owner = await ownerOf(owned)
    await openPosition(owned, { symbol: 'META', usdcAmount: '20', exits: '-800:10000' })
    const limits = {
      mandateTrade: { maxTradeUsdc: 12_345_678n },
      mandateTurnover: { maxDailyTurnoverUsdc: 51_000_001n },
      mandateExposure: { maxExposureUsdc: 40_000_003n },
    }
    for (const [bindingRule, changes] of Object.entries(limits)) {
      await setMandate(owner, owned.agentId, changes)
      const open = { symbol: 'NVDA', exits: '-800:10000' }
      const { body } = await call('getTradeIntentQuote', { agentId: owned.agentId, ...open })
      expect(body.bindingRule).toBe(bindingRule)
      const max = BigInt(body.maxUsdcAmount)
      const above = await expectAgreement(owned, 'submitTradeIntent', { ...open, usdcAmount: toUsdc(max + 1n) })
      expect(above.quote.bindingRule).toBe(bindingRule)
      const most = await expectAgreement(owned, 'submitTradeIntent', { ...open, usdcAmount: toUsdc(max) })
      expect(most.status).toBe(201)
      await expectAgreement(owned, 'submitReduceIntent', { positionId: most.body.positionId, exitBps: 10_000 })
    }
  })

  it('the checks of a quote count the day before in whole USDC, rounded up, as the ledger does', async () => {
    const owned = await newTrader({ vault: FRONTIER })
    await openPosition(owned, { symbol: 'META', usdcAmount: '20.000001', exits: '-800:10000' })
    const { timestamp } = await client.getBlock()
    await chain.increaseTime(Number(86_400n - (timestamp % 86_400n)))
    await chain.refreshPrices()
    await setMandate(await ownerOf(owned), owned.agentId, { maxDailyTurnoverUsdc: 30_000_000n })
    const { body } = await call('getTradeIntentQuote', {
      agentId: owned.agentId,
      symbol: 'NVDA',
      usdcAmount: '9.000001',
    })
    const turnover = body.checks.find(({ rule }: Body) => rule === 'mandateTurnover')
    expect(BigInt(turnover.used)).toBeGreaterThan(20_900_000n)
  })

  it('the checks of a quote let a stopped agent only tighten its ladders, at random', async () => {
    const stopped = await newTrader({ vault: FRONTIER })
    const owner = await ownerOf(stopped)
    const positionId = await openPosition(stopped, {
      symbol: 'PLTR',
      usdcAmount: '100',
      exits: '-3000:5000,-5000:10000',
    })
    await setMandate(owner, stopped.agentId, { mode: MandateMode.Stopped })
    const codes = new Set<string>()
    for (const exits of [
      '-4000:10000',
      '-3000:4999,-5000:10000',
      '-3001:5000,-5000:10000',
      '-3000:5000,-5000:10000',
      '-2500:3000,-2900:3000,-5000:10000',
      ...fc.sample(ladder, { numRuns: CASES / 2, seed: 7 }),
      '-1000:10000',
      '-1001:10000',
    ]) {
      const { body } = await expectAgreement(stopped, 'submitExitLadderIntent', { positionId, exits })
      codes.add(body.code ?? 'accepted')
    }
    expect([...codes]).toEqual(expect.arrayContaining(['accepted', 'MANDATE_FORBIDS_LOOSER_LADDER']))
    expect(
      (await expectAgreement(stopped, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })).body,
    ).toMatchObject({ code: 'MANDATE_STOPS_BUYING' })
  }, 300_000)

  it('the checks of a quote limit maxUsdcAmount to the depth of a thin pool', async () => {
    const fresh = await newTrader()
    const { body } = await call('getTradeIntentQuote', { agentId: fresh.agentId, symbol: 'COST' })
    const max = Number(body.maxUsdcAmount) / 1e6
    expect(max).toBeGreaterThan(1)
    expect(max).toBeLessThan(1_000)
    expect((await expectAgreement(fresh, 'submitTradeIntent', { symbol: 'COST', usdcAmount: `${max}` })).status).toBe(
      201,
    )
  })

  it('the checks of a quote agree with the router while something is paused or the agent is suspended', async () => {
    const fresh = await newTrader()
    const intent = { symbol: 'NVDA', usdcAmount: '10' }
    const whilePaused = async (pause: (paused: boolean) => Promise<void>) => {
      await pause(true)
      try {
        await expectAgreement(fresh, 'submitTradeIntent', intent)
      } finally {
        await pause(false)
      }
    }
    await whilePaused(chain.pauseRegistry)
    await whilePaused(value => chain.pauseTrading('genesis', value))
    await chain.setAgentStatus(BigInt(fresh.agentId), AgentStatus.Suspended)
    const { quote } = await expectAgreement(fresh, 'submitTradeIntent', intent)
    expect(quote).toMatchObject({ bindingRule: 'agentActive', maxUsdcAmount: '0' })
  })

  it('the checks of a quote agree with the router while a pending rule of the position is met', async () => {
    const fresh = await newTrader()
    const positionId = await openPosition(fresh, { symbol: 'AMZN', usdcAmount: '100' })
    await chain.setPrice('AMZN', 220)
    try {
      const add = await expectAgreement(fresh, 'submitAddIntent', { positionId, usdcAmount: '10' })
      expect(add.quote).toMatchObject({ bindingRule: 'noPendingRuleMet', maxUsdcAmount: '0' })
      const update = await expectAgreement(fresh, 'submitExitLadderIntent', { positionId, exits: '-2000:10000' })
      expect(update.body.code).toBe('PENDING_RULE_ALREADY_TRIGGERED')
    } finally {
      await chain.setPrice('AMZN', '244.2')
    }
  })
})

describe('the checks of the trade policy', () => {
  const { accounts, contracts, tokens } = deployment
  const policy = { address: contracts.TradePolicy as Hex, abi: tradePolicyAbi } as const
  const tracks = { address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
  const testClient = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) })
  const track = [GENESIS, 0n] as const
  const open = { symbol: 'GOOGL', usdcAmount: '60', maxSlippageBps: '40' }

  const initial = async () => ({
    limits: await client.readContract({ ...policy, functionName: 'limitsOf', args: track }),
    config: await client.readContract({ ...tracks, functionName: 'getVaultTrackConfig', args: track }),
  })
  let seeded: Awaited<ReturnType<typeof initial>>
  let trader: Trader
  type Limits = typeof seeded.limits
  const setLimits = (changes: Partial<Limits>) =>
    chain.administer({ ...policy, functionName: 'setLimits', args: [...track, { ...seeded.limits, ...changes }] })
  const setTrackConfig = (changes: Partial<typeof seeded.config>) =>
    chain.administer({
      ...tracks,
      functionName: 'setVaultTrackConfig',
      args: [...track, { ...seeded.config, ...changes }],
    })

  beforeAll(async () => {
    seeded = await initial()
  })
  beforeEach(async () => {
    trader = await newTrader()
  })
  afterEach(() => setLimits({}))

  /** Submits what the quote says is refused, and returns the code and the quote. */
  async function expectRefusal(submission: Submission, input: Input) {
    const { quote, body } = await expectAgreement(trader, submission, input)
    return { code: body.code, bindingRule: quote.bindingRule, maxUsdcAmount: quote.maxUsdcAmount }
  }

  it('the checks of the trade policy agree with the router on slippage, size and deadline', async () => {
    const positionId = await openPosition(trader, open)
    await setLimits({ maxEntrySlippageBps: 40, minTradeUsdc: 50_000_000n, maxDeadlineSeconds: 600 })
    const { body: quote } = await call('getTradeIntentQuote', { agentId: trader.agentId })
    expect(BigInt(quote.suggestedDeadline) - BigInt(quote.serverTime)).toBe(600n)
    const far = `${BigInt(quote.serverTime) + 3_600n}`
    const outcomes = []
    for (const [submission, input] of [
      ['submitTradeIntent', { ...open, symbol: 'NVDA', maxSlippageBps: '41' }],
      ['submitTradeIntent', { ...open, symbol: 'NVDA', usdcAmount: '49.999999' }],
      ['submitTradeIntent', { ...open, symbol: 'NVDA', deadline: far }],
      ['submitAddIntent', { positionId, usdcAmount: '49', maxSlippageBps: '40' }],
      ['submitReduceIntent', { positionId, exitBps: '5000' }],
      ['submitReduceIntent', { positionId, exitBps: '5000', deadline: far }],
      ['submitExitLadderIntent', { positionId, exits: '-900:10000', deadline: far }],
      ['submitReduceIntent', { positionId, exitBps: '10000' }],
    ] as const)
      outcomes.push((await expectAgreement(trader, submission, input)).body.code ?? 'accepted')
    expect(outcomes).toEqual([
      'SLIPPAGE_ABOVE_LIMIT',
      'TRADE_TOO_SMALL',
      'DEADLINE_TOO_FAR',
      'TRADE_TOO_SMALL',
      'TRADE_TOO_SMALL',
      'DEADLINE_TOO_FAR',
      'DEADLINE_TOO_FAR',
      'accepted',
    ])
  })

  it('the checks of the trade policy leave no maxUsdcAmount above the slippage limit, or below the smallest trade', async () => {
    expect(await expectRefusal('submitTradeIntent', { ...open, maxSlippageBps: '101' })).toEqual({
      code: 'SLIPPAGE_ABOVE_LIMIT',
      bindingRule: 'entrySlippage',
      maxUsdcAmount: '0',
    })
    const { body: quote } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'GOOGL' })
    const room = BigInt(quote.maxUsdcAmount)
    await setLimits({ minTradeUsdc: room })
    const { body: smallest } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'GOOGL' })
    expect(smallest.maxUsdcAmount).toBe(`${room}`)
    await setLimits({ minTradeUsdc: room + 1n })
    expect(await expectRefusal('submitTradeIntent', open)).toEqual({
      code: 'TRADE_TOO_SMALL',
      bindingRule: 'minTradeSize',
      maxUsdcAmount: '0',
    })
  })

  it("the checks of the trade policy agree with the router while the pool's price is too far from the oracle's", async () => {
    const positionId = await openPosition(trader, open)
    await whilePoolsStay(async () => {
      await post('GOOGL', 289.1 * 1.04)
      const refused = { code: 'SPOT_PRICE_DEVIATION', bindingRule: 'spotPrice' }
      expect(await expectRefusal('submitAddIntent', { positionId, usdcAmount: '60' })).toEqual({
        ...refused,
        maxUsdcAmount: '0',
      })
      expect(await expectRefusal('submitReduceIntent', { positionId, exitBps: '5000' })).toMatchObject(refused)
      await post('GOOGL', 289.1 * 0.96)
      expect(await expectRefusal('submitAddIntent', { positionId, usdcAmount: '60' })).toEqual({
        ...refused,
        maxUsdcAmount: '0',
      })
      // The pool pays more than the oracle's price.
      const sale = await expectAgreement(trader, 'submitReduceIntent', { positionId, exitBps: '5000' })
      expect(sale.status).toBe(201)
      await post('GOOGL', 289.1 * 0.997)
      const add = await expectAgreement(trader, 'submitAddIntent', { positionId, usdcAmount: '60' })
      expect(add.status).toBe(201)
    })
    await chain.setPrice('GOOGL', '289.1')
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
  })

  const post = (symbol: string, usd: number) =>
    chain.send(accounts.admin, {
      address: contracts.PriceOracle,
      abi: priceOracleAbi,
      functionName: 'forcePrice',
      args: [tokens[symbol] as Hex, BigInt(Math.round(usd * 1e8))],
    })

  it('the checks of the trade policy agree with the router on a token that needs an average which its pool does not have', async () => {
    const positionId = await openPosition(trader, open)
    const token = tokens.GOOGL as Hex
    const setTwapRequired = (isRequired: boolean) =>
      chain.administer({ ...policy, functionName: 'setTwapRequired', args: [token, isRequired] })
    const address = await client.readContract({
      address: contracts.SwapAdapter,
      abi: uniswapV3SwapAdapterAbi,
      functionName: 'poolOf',
      args: [token],
    })
    await setLimits({ twapWindow: 3_600 })
    await chain.setPrice('GOOGL', '290') // a trade within the window
    const forgotten = await forgetObservations(address)
    await setTwapRequired(true)
    try {
      const refused = { code: 'TWAP_UNAVAILABLE', bindingRule: 'twapPrice' }
      expect(await expectRefusal('submitAddIntent', { positionId, usdcAmount: '60' })).toEqual({
        ...refused,
        maxUsdcAmount: '0',
      })
      expect(await expectRefusal('submitReduceIntent', { positionId, exitBps: '5000' })).toMatchObject(refused)
    } finally {
      await forgotten.restore()
      await setTwapRequired(false)
    }
    await setLimits({})
    await chain.setPrice('GOOGL', '289.1')
    await chain.increaseTime(3)
    const sale = await expectAgreement(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
    expect(sale.status).toBe(201)
  })

  /** Leaves a Uniswap v3 pool only its newest observation, at the first place: it has no average. */
  async function forgetObservations(address: Address) {
    const readSlot = async (slot: number) =>
      hexToBigInt((await client.getStorageAt({ address, slot: numberToHex(slot) })) as Hex)
    const setSlot = (index: number, value: bigint) =>
      testClient.setStorageAt({ address, index, value: numberToHex(value, { size: 32 }) })
    const slot0 = await readSlot(0)
    const newest = await readSlot(OBSERVATIONS_SLOT + Number((slot0 >> 184n) & 0xffffn))
    const first = await readSlot(OBSERVATIONS_SLOT)
    const indexAndCardinality = 0xffffffffn << 184n
    await setSlot(0, (slot0 & ~indexAndCardinality) | (1n << 200n))
    await setSlot(OBSERVATIONS_SLOT, newest)
    return {
      async restore() {
        await setSlot(0, slot0)
        await setSlot(OBSERVATIONS_SLOT, first)
      },
    }
  }

  it('the checks of the trade policy agree with the router while an exit has sold a part', async () => {
    const positionId = await openPosition(trader, { symbol: 'COST', usdcAmount: '90', exits: '-500:10000' })
    await chain.setPrice('COST', '829')
    const fire = () =>
      chain.send(accounts.depositor, {
        address: contracts.TradeRouter,
        abi: tradeRouterAbi,
        functionName: 'executeExit',
        args: [BigInt(positionId)],
      })
    await fire()
    const refused = { code: 'EXIT_IN_PROGRESS', bindingRule: 'noExitInProgress' }
    expect(await expectRefusal('submitAddIntent', { positionId, usdcAmount: '10' })).toMatchObject(refused)
    const update = await expectAgreement(trader, 'submitExitLadderIntent', { positionId, exits: '-900:10000' })
    expect(update.body.code).toBe('EXIT_IN_PROGRESS')
    const sale = await expectAgreement(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
    expect(sale.status).toBe(201)
    await chain.setPrice('COST', '921.5')
  })

  it("the checks of the trade policy agree with the router while the pool's average is too far from the oracle's price", async () => {
    const positionId = await openPosition(trader, open)
    await setLimits({ twapWindow: 600, maxTwapDeviationBps: 200 })
    await chain.increaseTime(900)
    await chain.setPrice('GOOGL', '298') // resolves once the pool is there; its average is not
    const refused = { code: 'TWAP_DEVIATION', bindingRule: 'twapPrice' }
    expect(await expectRefusal('submitAddIntent', { positionId, usdcAmount: '60' })).toEqual({
      ...refused,
      maxUsdcAmount: '0',
    })
    expect(await expectRefusal('submitReduceIntent', { positionId, exitBps: '5000' })).toMatchObject(refused)
    await chain.increaseTime(600)
    const add = await expectAgreement(trader, 'submitAddIntent', { positionId, usdcAmount: '60' })
    expect(add.status).toBe(201)
    await setLimits({})
    await chain.setPrice('GOOGL', '289.1')
    await chain.increaseTime(3)
    await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
  })

  it('the checks of the trade policy agree with the router on the cap that losses shrink, and on the drawdown that suspends buying', async () => {
    const { agentId } = trader
    const losing = await openPosition(trader, { ...open, usdcAmount: '300' })
    await chain.setPrice('GOOGL', '260')
    await chain.increaseTime(3)
    await submit(trader, 'submitReduceIntent', { positionId: losing, exitBps: '10000' })
    await chain.setPrice('GOOGL', '289.1')
    await chain.increaseTime(3)

    const { body: quote } = await call('getTradeIntentQuote', { agentId, symbol: 'NVDA' })
    const { body: risk } = await call('getRiskState', { agentId })
    const effectiveCap = BigInt(quote.allocation.effectiveCap)
    expect(effectiveCap).toBe(BigInt(quote.allocation.cap) + BigInt(risk.pnl.lifetimeRealizedUsdc))
    expect(quote).toMatchObject({ maxUsdcAmount: `${effectiveCap}`, bindingRule: 'allocationCap' })
    const over = { symbol: 'NVDA', usdcAmount: toUsdc(effectiveCap + 1n) }
    expect(await expectRefusal('submitTradeIntent', over)).toEqual({
      code: 'EXCEEDS_ALLOCATION_CAP',
      bindingRule: 'allocationCap',
      maxUsdcAmount: `${effectiveCap}`,
    })

    // The loss is about 0.3 % of the allocation.
    await setTrackConfig({ maxDrawdownBps: 20n })
    try {
      expect(await expectRefusal('submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })).toEqual({
        code: 'EXCEEDS_MAX_DRAWDOWN',
        bindingRule: 'maxDrawdown',
        maxUsdcAmount: '0',
      })
    } finally {
      await setTrackConfig({})
    }
    const most = await expectAgreement(trader, 'submitTradeIntent', {
      symbol: 'NVDA',
      usdcAmount: toUsdc(effectiveCap),
    })
    expect(most.status).toBe(201)
  })

  it('the checks of the trade policy agree with the router on the cap of an agent where all caps together exceed the assets', async () => {
    const { depositor } = accounts
    const vault = { address: FRONTIER, abi: mandateVaultAbi } as const
    const config = await client.readContract({ ...tracks, functionName: 'getVaultTrackConfig', args: [FRONTIER, 0n] })
    const setFrontier = (changes: Partial<typeof config>) =>
      chain.administer({
        ...tracks,
        functionName: 'setVaultTrackConfig',
        args: [FRONTIER, 0n, { ...config, ...changes }],
      })
    await setFrontier({ maxTradeSizeBps: 10_000n, maxDailyTurnoverBps: 0n })
    trader = await newTrader({ vault: FRONTIER })
    await newTrader({ vault: FRONTIER })
    const idle = await client.readContract({ ...vault, functionName: 'maxWithdraw', args: [depositor.address] })
    const taken = idle - 3_000_000_000n
    await chain.send(depositor, {
      ...vault,
      functionName: 'withdraw',
      args: [taken, depositor.address, depositor.address],
    })
    try {
      const { body: quote } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'NVDA' })
      const effectiveCap = BigInt(quote.allocation.effectiveCap)
      expect(effectiveCap).toBeLessThan(3_000_000_000n)
      expect(
        await expectRefusal('submitTradeIntent', { symbol: 'NVDA', usdcAmount: toUsdc(effectiveCap + 1n) }),
      ).toEqual({
        code: 'EXCEEDS_ALLOCATION_CAP',
        bindingRule: 'allocationCap',
        maxUsdcAmount: `${effectiveCap}`,
      })
      const most = { symbol: 'NVDA', usdcAmount: toUsdc(effectiveCap) }
      const opened = await expectAgreement(trader, 'submitTradeIntent', most)
      expect(opened.status).toBe(201)
    } finally {
      const approval = { functionName: 'approve', args: [FRONTIER, taken] } as const
      await chain.send(depositor, { address: contracts.USDC, abi: erc20Abi, ...approval })
      await chain.send(depositor, { ...vault, functionName: 'deposit', args: [taken, depositor.address] })
      await setFrontier({})
    }
  })
})
