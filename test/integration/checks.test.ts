import fc from 'fast-check'
import { createPublicClient, http } from 'viem'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { AgentStatus } from '../../src/protocol/enums.ts'
import {
  chain,
  FRONTIER,
  GENESIS,
  newTrader,
  openPosition,
  type Submission,
  signedIntent,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, deployment, type Input } from '../support/surfaces.ts'

// The router accepts an intent exactly if every check of its quote passes. If not, it fails with the code of the first
// failing check.

const CASES = inject('isFull') ? 40 : 12
const client = createPublicClient({ transport: http(deployment.rpcUrl) })
const quoteOf = {
  submitTradeIntent: 'getTradeIntentQuote',
  submitAddIntent: 'getAddIntentQuote',
  submitReduceIntent: 'getReduceIntentQuote',
  submitExitLadderIntent: 'getExitLadderIntentQuote',
} as const

/** Submits the intent of a quote, and expects the outcome that the quote's checks predict. */
async function expectAgreement(trader: Trader, submission: Submission, input: Input) {
  const { body: quote } = await call(quoteOf[submission], { agentId: trader.agentId, ...input })
  const failing = quote.checks.find(({ pass }: Body) => !pass)
  const { status, body } = await call(submission, await signedIntent(trader, submission, input))
  const expected =
    failing === undefined ? 201 : ['REGISTRY_PAUSED', 'TRADING_PAUSED'].includes(failing.code) ? 503 : 400
  expect({ input, status, code: body.code, checks: quote.checks }).toMatchObject({
    status: expected,
    ...(failing && { code: failing.code }),
  })
  return { quote, status, body }
}

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
const symbol = fc.constantFrom('NVDA', 'META', 'TSLA', 'COIN', 'PLTR', 'HOOD', 'AAPL')
const seeded = { numRuns: CASES, seed: 20_261_121 }

describe('the checks of a quote', () => {
  let trader: Trader
  beforeAll(async () => {
    trader = await newTrader({ vault: FRONTIER })
  })

  it('agree with the router on random opens', async () => {
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

  it('agree with the router on random adds, reduces and ladder updates', async () => {
    const mover = await newTrader({ vault: FRONTIER })
    const positionId = await openPosition(mover, { symbol: 'PLTR', usdcAmount: '100' })
    const cases = fc.sample(fc.tuple(amount, slippage, ladder, fc.integer({ min: 1, max: 3_000 })), seeded)
    for (const [usdcAmount, maxSlippageBps, exits, exitBps] of cases.slice(0, CASES / 2)) {
      await expectAgreement(mover, 'submitAddIntent', { positionId, usdcAmount, maxSlippageBps })
      await expectAgreement(mover, 'submitReduceIntent', { positionId, exitBps })
      await expectAgreement(mover, 'submitExitLadderIntent', { positionId, exits })
    }
  }, 300_000)

  it('give a maxUsdcAmount that is accepted, while one base unit more is rejected', async () => {
    for (const vault of [FRONTIER, undefined]) {
      const fresh = await newTrader(vault ? { vault } : {})
      const { body } = await call('getTradeIntentQuote', { agentId: fresh.agentId, symbol: 'NVDA' })
      const max = BigInt(body.maxUsdcAmount)
      const toUsdc = (value: bigint) => `${value / 1_000_000n}.${`${value % 1_000_000n}`.padStart(6, '0')}`
      const above = await expectAgreement(fresh, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: toUsdc(max + 1n) })
      expect(above.quote.bindingRule).toBe(body.bindingRule)
      expect(
        (await expectAgreement(fresh, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: toUsdc(max) })).status,
      ).toBe(201)
    }
  })

  it('limit maxUsdcAmount to the depth of a thin pool', async () => {
    const fresh = await newTrader()
    const { body } = await call('getTradeIntentQuote', { agentId: fresh.agentId, symbol: 'COST' })
    const max = Number(body.maxUsdcAmount) / 1e6
    expect(max).toBeGreaterThan(1)
    expect(max).toBeLessThan(1_000)
    expect((await expectAgreement(fresh, 'submitTradeIntent', { symbol: 'COST', usdcAmount: `${max}` })).status).toBe(
      201,
    )
  })

  it('agree with the router while something is paused or the agent is suspended', async () => {
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

  it('agree with the router while a pending rule of the position is met', async () => {
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

  it('agree with the router under another trade policy', async () => {
    const fresh = await newTrader()
    const { agentId } = fresh
    const policy = { address: deployment.contracts.TradePolicy as `0x${string}`, abi: tradePolicyAbi } as const
    const limits = await client.readContract({ ...policy, functionName: 'limitsOf', args: [GENESIS, 0n] })
    const setLimits = (changes: Partial<typeof limits>) =>
      chain.administer({ ...policy, functionName: 'setLimits', args: [GENESIS, 0n, { ...limits, ...changes }] })
    const open = { symbol: 'GOOGL', usdcAmount: '60', maxSlippageBps: '40' }
    const positionId = await openPosition(fresh, open)
    await setLimits({ maxEntrySlippageBps: 40, minTradeUsdc: 50_000_000n, maxDeadlineSeconds: 300 })
    try {
      const { body: quote } = await call('getTradeIntentQuote', { agentId })
      expect(BigInt(quote.suggestedDeadline) - BigInt(quote.serverTime)).toBe(300n)
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
        outcomes.push((await expectAgreement(fresh, submission, input)).body.code ?? 'accepted')
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
    } finally {
      await setLimits({})
    }
  })
})
