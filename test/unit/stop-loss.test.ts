import type { TradingTerms } from '@agent-trading-service/protocol/check'
import { TriggerType } from '@agent-trading-service/protocol/enums'
import {
  lossAtStop,
  lossAtStopUsdc,
  stopDistanceChecks,
  usdcAmountForLoss,
} from '@agent-trading-service/protocol/stop-loss'
import fc from 'fast-check'
import { expect, it } from 'vitest'

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
  expect(lossAtStop(terms, { ...purchase, exits: [take(2n)] })).toBeUndefined()
})

it('the loss at the stop is what each stop-loss sells, at its trigger and with the cost of selling', () => {
  expect(lossAtStopUsdc({ usdcAmount: 1_000_000_000n, exits: [stop(-800n)] }, 0n)).toBe(80_000_000n)
  // 9.2 % of 1,000 USDC are sold for 920, of which 0.06 % are lost.
  expect(lossAtStopUsdc({ usdcAmount: 1_000_000_000n, exits: [stop(-800n)] }, 6n)).toBe(80_552_000n)
  expect(lossAtStopUsdc({ usdcAmount: 1_000_000_000n, exits: [stop(-400n, 5_000), stop(-800n)] }, 0n)).toBe(60_000_000n)
})

it('a stop that alone reaches the limit of daily losses is named with what that limit leaves', () => {
  const usdcAmount = 9_000_000_000n
  const exits = [stop(-800n)]
  const bought = { ...purchase, usdcAmount, exits }
  expect(lossAtStop(termsWith(usdcAmount, 0n), bought)).toEqual({
    usdc: 720_000_000n,
    shareOfEquityBps: 720n,
    shareOfDailyLimitBps: 14_400n,
    breaks: [{ limit: 'dailyLoss', leftUsdc: 500_000_000n }],
  })
  const afterLosses = termsWith(usdcAmount, 0n, { dailyRealizedPnlUsdc: -600_000_000n })
  expect(lossAtStop(afterLosses, bought)?.breaks).toEqual([{ limit: 'dailyLoss', leftUsdc: 0n }])
  const small = { ...bought, usdcAmount: 1_000_000_000n }
  expect(lossAtStop(termsWith(small.usdcAmount, 0n), small)?.breaks).toEqual([])
})

it('the amount for a loss is the largest whose stop-losses lose no more', () => {
  const distances = fc.uniqueArray(fc.bigInt(1n, 9_999n), { minLength: 1, maxLength: 3 })
  const shares = fc.array(fc.integer({ min: 1, max: 9_999 }), { minLength: 3, maxLength: 3 })
  fc.assert(
    fc.property(
      distances,
      shares,
      fc.bigInt(1n, 10n ** 13n),
      fc.bigInt(0n, 400n),
      (given, share, maxLoss, roundTrip) => {
        const sorted = given.toSorted((a, b) => Number(a - b))
        const exits = sorted.map((distance, index) =>
          stop(-distance, index === sorted.length - 1 ? 10_000 : share[index]),
        )
        const usdcAmount = usdcAmountForLoss(maxLoss, exits, roundTrip) ?? -1n
        const lossOf = (amount: bigint) => lossAtStopUsdc({ usdcAmount: amount, exits }, (roundTrip + 1n) / 2n) ?? -1n
        expect(lossOf(usdcAmount)).toBeLessThanOrEqual(maxLoss)
        // Nothing much larger fits: 0.1 % and the units that the rules round by.
        expect(lossOf(usdcAmount + usdcAmount / 1_000n + 100_000n)).toBeGreaterThan(maxLoss)
      },
    ),
  )
})
