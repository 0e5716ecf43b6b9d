import { PositionStatus, TriggerType } from '@agent-trading-service/protocol/enums'
import type { WatchedPosition } from '@agent-trading-service/protocol/position'
import { expect, it } from 'vitest'
import { decideExit } from '../../src/keeper/exit-decision.ts'
import { newEntry } from '../../src/keeper/position-entry.ts'
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
    const quote = { price, updatedAt: 0n, roundId: 1n, quoted: true, stale: false, at: 0n }
    const session = { symbol: 'WETH', at: 0n, respectSessions: false }
    if (decideExit(position, { quote, decimals, tradingPaused: false }, session) !== 'due') continue
    due++
    const { below, above } = newEntry(position, decimals, { number: 1n, timestamp: 1n }).triggers
    expect((below !== undefined && price <= below) || (above !== undefined && price >= above)).toBe(true)
  }
  expect(due).toBeGreaterThan(1_000)
})
