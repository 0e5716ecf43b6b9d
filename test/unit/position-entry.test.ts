import { PositionStatus, TriggerType } from '@agent-trading-service/protocol/enums'
import type { WatchedPosition } from '@agent-trading-service/protocol/position'
import { asTokenPrice } from '@agent-trading-service/protocol/price-basis'
import { expect, it, vi } from 'vitest'
import { decideExit } from '../../src/keeper/exit-decision.ts'
import {
  deferredEntry,
  failedEntry,
  newEntry,
  type PositionEntry,
  waitingEntry,
} from '../../src/keeper/position-entry.ts'
import { randomOf } from '../support/seeded-random.ts'

it('selects every position with a due exit by the prices of its entry', () => {
  const random = randomOf('price triggers')
  let due = 0
  for (let round = 0; round < 20_000; round++) {
    const cost = BigInt(random.integer(0, 3) === 0 ? random.integer(1, 2_000) : random.integer(1, 1e9))
    const price = BigInt(random.integer(1, 1e9)) * BigInt(10 ** random.integer(0, 6))
    const decimals = random.integer(6, 18)
    const position: WatchedPosition = {
      positionId: 1n,
      agentId: 1n,
      vault: '0x01',
      token: '0x02',
      // A price near what was paid, so that triggers on both sides are met.
      tokenAmount:
        (cost * 100n * 10n ** BigInt(decimals) * BigInt(random.integer(8_000, 12_000))) / 10_000n / price + 1n,
      maxSlippageBps: 100,
      entryPriceUsdc: price / 100n + 1n,
      usdcCostBasis: cost,
      status: PositionStatus.Open,
      nextRuleIndex: random.integer(0, 1),
      exitRules: [
        { triggerType: TriggerType.StopLoss, triggerBps: BigInt(-random.integer(1, 3_000)), exitBps: 10_000 },
        { triggerType: TriggerType.TakeProfit, triggerBps: BigInt(random.integer(1, 3_000)), exitBps: 10_000 },
      ],
      closingSince: 0n,
      dueExit: random.integer(0, 1) === 0 ? undefined : { since: 0, seenAt: 0, ruleIndex: 0, tokensLeft: 0n },
    }
    const quote = {
      price: asTokenPrice(price),
      updatedAt: 0n,
      roundId: 1n,
      source: 'updater' as const,
      quoted: true,
      stale: false,
      unsettled: false,
      at: 0n,
    }
    const market = { quote, calendar: 'continuous', decimals, tradingPaused: false, restriction: undefined } as const
    if (decideExit(position, market, { respectSessions: false }) !== 'due') continue
    due++
    const { below, above } = newEntry(position, decimals, { number: 1n, timestamp: 1n }).triggers
    expect((below !== undefined && price <= below) || (above !== undefined && price >= above)).toBe(true)
  }
  expect(due).toBeGreaterThan(1_000)
})

it('a refused exit waits in the time of the chain, whatever the clock of the machine says', () => {
  const position: WatchedPosition = {
    positionId: 1n,
    agentId: 1n,
    vault: '0x01',
    token: '0x02',
    tokenAmount: 1n,
    maxSlippageBps: 100,
    entryPriceUsdc: 1n,
    usdcCostBasis: 1n,
    status: PositionStatus.Open,
    nextRuleIndex: 0,
    exitRules: [],
    closingSince: 0n,
    dueExit: undefined,
  }
  const refused = { code: 'SLIPPAGE_EXCEEDED', error: 'too little', remedy: 'sell less' } as const
  const now = 4_000_000_000n
  const time = { at: now - 10n, now }
  const runAt = (clock: number) => {
    vi.setSystemTime(clock)
    const entry: PositionEntry = newEntry(position, 18, { number: 1n, timestamp: 1n })
    const first = failedEntry(entry, refused, time)
    const second = failedEntry(first, refused, time)
    return [first, second, deferredEntry(entry, 'priceStale', time)].map(({ nextTryAt }) => nextTryAt)
  }
  try {
    const seconds = runAt(0).map(ms => BigInt(ms / 1_000) - now)
    expect(seconds).toEqual([2n, 4n, 5n])
    expect(runAt(5_000_000_000_000)).toEqual(runAt(0))
    const waiting = deferredEntry(newEntry(position, 18, { number: 1n, timestamp: 1n }), 'priceStale', time)
    expect(waitingEntry(waiting, 'notReached', { at: now, now: now + 5n }).nextTryAt).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
