import type { TradingTerms } from '@agent-trading-service/protocol/check'
import { TriggerType } from '@agent-trading-service/protocol/enums'
import {
  addStopDistanceChecks,
  costBasisForLoss,
  ladderStopDistanceChecks,
  lossAtStop,
  lossAtStopUsdc,
  saleAtStops,
  stopDistanceChecks,
} from '@agent-trading-service/protocol/stop-loss'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Position } from '../../packages/protocol/src/position.ts'

const BPS = 10_000n
const stop = (triggerBps: bigint, exitBps = 10_000) => ({ triggerType: TriggerType.StopLoss, triggerBps, exitBps })
const take = (triggerBps: bigint) => ({ triggerType: TriggerType.TakeProfit, triggerBps, exitBps: 10_000 })

/** A token at 100 USDC with 6 decimals, of which the venue returns `costBps` less than the oracle's value. */
const termsWith = (usdcAmount: bigint, costBps: bigint, changes: Partial<TradingTerms> = {}) =>
  ({
    token: {
      decimals: 6,
      quote: { price: 10_000_000_000n },
      fills: new Map([[usdcAmount, (usdcAmount * (BPS - costBps)) / (100n * BPS)]]),
    },
    allocation: { cap: 10_000_000_000n },
    trackConfig: { maxDailyLossBps: 500n, maxDrawdownBps: 1_000n, maxTradeSizeBps: 0n, maxDailyTurnoverBps: 0n },
    vault: { totalAssets: 0n, idleAssets: 0n },
    dailyTurnoverUsdc: 0n,
    dailyRealizedPnlUsdc: 0n,
    extension: undefined,
    ...changes,
  }) as unknown as TradingTerms

const purchase = { usdcAmount: 1_000_000_000n, maxSlippageBps: 100 }

it('a stop-loss within what buying and selling costs fails, with the nearest distance that passes', () => {
  const terms = termsWith(purchase.usdcAmount, 6n)
  const checkOf = (triggerBps: bigint) =>
    stopDistanceChecks(terms, { ...purchase, exits: [stop(triggerBps), take(100n)] })
  expect(checkOf(-2n)).toEqual([{ rule: 'stopDistance', code: 'STOP_WITHIN_COSTS', pass: false, limit: 13n, used: 2n }])
  expect(checkOf(-12n)).toMatchObject([{ pass: false }])
  expect(checkOf(-13n)).toMatchObject([{ pass: true }])
})

it('a stop-loss further away than twice the signed slippage always passes', () => {
  const terms = termsWith(purchase.usdcAmount, 900n)
  expect(stopDistanceChecks(terms, { ...purchase, exits: [stop(-201n)] })).toMatchObject([{ pass: true }])
})

it('a ladder without a stop-loss has no distance to check and no loss at it', () => {
  const terms = termsWith(purchase.usdcAmount, 6n)
  expect(stopDistanceChecks(terms, { ...purchase, exits: [take(2n)] })).toEqual([])
  expect(lossAtStop(terms, { usdcCostBasis: 1_000_000_000n, maxSlippageBps: 100, exits: [take(2n)] })).toBeUndefined()
})

/**
 * A position that cost 1,000 USDC, at a PnL in basis points; the first of its rules has fired. The venue's cost is 6
 * bps.
 */
const heldAt = (pnlBps: bigint, ...pending: ReturnType<typeof stop>[]) => {
  const tokenAmount = (1_000_000_000n * (BPS + pnlBps)) / (100n * BPS)
  const { token } = termsWith(purchase.usdcAmount, 6n)
  if (token === undefined) throw new Error('The terms have no token')
  const usdcOut = (tokenAmount * 100n * (BPS - 6n)) / BPS
  return {
    token: { ...token, sale: { tokenIn: tokenAmount, usdcOut } },
    position: {
      tokenAmount,
      usdcCostBasis: 1_000_000_000n,
      capitalMode: undefined,
      exitRules: [take(1n), ...pending],
      nextRuleIndex: 1,
    },
  } as unknown as Parameters<typeof ladderStopDistanceChecks>[0]
}

it('a new stop-loss of a position is further below the present price than what selling costs, wherever the entry is', () => {
  const checkOf = (pnlBps: bigint, triggerBps: bigint) =>
    ladderStopDistanceChecks(heldAt(pnlBps), [stop(triggerBps)])[0]
  expect(checkOf(0n, -2n)).toMatchObject({ pass: false, limit: 7n, used: 2n })
  expect(checkOf(0n, -7n)).toMatchObject({ pass: true })
  // In profit, the nearest stop-loss that there is protects the gain.
  expect(checkOf(1_900n, -1n)).toMatchObject({ pass: true, limit: 1n })
  expect(checkOf(-300n, -302n)).toMatchObject({ pass: false, limit: 307n })
  expect(checkOf(-300n, -307n)).toMatchObject({ pass: true })
})

it('an add fails while the first pending stop-loss would be within the cost of selling the whole position', () => {
  const checkOf = (pnlBps: bigint, triggerBps: bigint) =>
    addStopDistanceChecks(heldAt(pnlBps, stop(triggerBps)), purchase.usdcAmount)[0]
  // Half of the cost is 8 % below its price, the other half 0.06 %.
  expect(checkOf(-800n, -410n)).toMatchObject({ pass: true, limit: 410n })
  expect(checkOf(-800n, -409n)).toMatchObject({ pass: false, used: 409n })
  expect(checkOf(1_900n, -1n)).toMatchObject({ pass: true })
})

it('the loss at the stop is what each stop-loss sells, at its trigger and a slippage below it', () => {
  const lossOf = (slippageBps: bigint, ...exits: ReturnType<typeof stop>[]) =>
    lossAtStopUsdc({ usdcCostBasis: 1_000_000_000n, exits }, slippageBps)
  expect(lossOf(0n, stop(-800n))).toBe(80_000_000n)
  // What cost 1,000 USDC is worth 920, and sells for 3 % less.
  expect(lossOf(300n, stop(-800n))).toBe(107_600_000n)
  expect(lossOf(0n, stop(-400n, 5_000), stop(-800n))).toBe(60_000_000n)
})

it('a stop that alone reaches the limit of daily losses is named with what that limit leaves', () => {
  const held = { usdcCostBasis: 9_000_000_000n, maxSlippageBps: 100, exits: [stop(-800n)] }
  const terms = (changes: Partial<TradingTerms> = {}) => termsWith(0n, 0n, changes)
  // Without a trade policy, the floor is the signed slippage below the oracle.
  expect(lossAtStop(terms(), held)).toEqual({
    usdc: 802_800_000n,
    shareOfEquityBps: 803n,
    shareOfDailyLimitBps: 16_056n,
    breaks: [{ limit: 'dailyLoss', leftUsdc: 500_000_000n }],
  })
  const afterLosses = terms({ dailyRealizedPnlUsdc: -600_000_000n })
  expect(lossAtStop(afterLosses, held)?.breaks).toEqual([{ limit: 'dailyLoss', leftUsdc: 0n }])
  expect(lossAtStop(terms(), { ...held, usdcCostBasis: 1_000_000_000n })?.breaks).toEqual([])
})

it('a stop that alone breaks the limit of drawdown is named with what that limit leaves', () => {
  const extension = {
    realizedPnlUsdc: 100_000_000n,
    peakRealizedPnlUsdc: 600_000_000n,
    tradePolicy: { maxExitSlippageBps: 0n },
  }
  const terms = termsWith(0n, 0n, { extension: extension as unknown as TradingTerms['extension'] })
  const breaksOf = (usdcCostBasis: bigint) =>
    lossAtStop(terms, { usdcCostBasis, maxSlippageBps: 100, exits: [stop(-1_000n)] })?.breaks
  // 10 % of 10,600 USDC, of which 500 are lost already.
  expect(breaksOf(5_600_000_010n)).toContainEqual({ limit: 'maxDrawdown', leftUsdc: 560_000_000n })
  expect(breaksOf(5_600_000_000n)).toEqual([{ limit: 'dailyLoss', leftUsdc: 500_000_000n }])
})

it('the cost for a loss is the largest whose stop-losses lose no more', () => {
  const distances = fc.uniqueArray(fc.bigInt(1n, 9_999n), { minLength: 1, maxLength: 3 })
  const shares = fc.array(fc.integer({ min: 1, max: 10_000 }), { minLength: 3, maxLength: 3 })
  fc.assert(
    fc.property(
      distances,
      shares,
      fc.bigInt(0n, 10n ** 13n),
      fc.bigInt(0n, 2_000n),
      (given, share, maxLoss, slippageBps) => {
        const sorted = given.toSorted((a, b) => Number(a - b))
        const exits = sorted.map((distance, index) => stop(-distance, share[index]))
        const lossOf = (usdcCostBasis: bigint) => lossAtStopUsdc({ usdcCostBasis, exits }, slippageBps) ?? -1n
        const usdcCostBasis = costBasisForLoss(maxLoss, exits, slippageBps) ?? -1n
        expect(lossOf(usdcCostBasis)).toBeLessThanOrEqual(maxLoss)
        expect(lossOf(usdcCostBasis + 1n)).toBeGreaterThan(maxLoss)
      },
    ),
  )
})

it('the pending stop-losses of a position each fill at their floor, and leave what none of them sells', () => {
  // Ten tokens with 6 decimals, bought at 100 USDC.
  const position = {
    tokenAmount: 10_000_000n,
    entryPriceUsdc: 100_000_000n,
    usdcCostBasis: 1_000_000_000n,
    maxSlippageBps: 100,
    nextRuleIndex: 1,
    exitRules: [stop(-300n), stop(-500n, 5_000), take(1_500n), stop(-1_000n, 5_000)],
  } as unknown as Position
  // 5 at 95 and 2.5 at 90 USDC, each 1 % below.
  expect(saleAtStops(position, 6, undefined)).toEqual({ usdcOut: 693_000_000n, tokensLeft: 2_500_000n })
  expect(saleAtStops({ ...position, exitRules: [stop(-300n), take(1_500n)] }, 6, undefined)).toEqual({
    usdcOut: 0n,
    tokensLeft: 10_000_000n,
  })
})
