import { PositionStatus, TriggerType } from '@agent-trading-service/protocol/enums'
import type { ExitMarket, WatchedPosition } from '@agent-trading-service/protocol/position'
import { asTokenPrice } from '@agent-trading-service/protocol/price-basis'
import type { ListingSession } from '@agent-trading-service/protocol/token-description'
import { describe, expect, it } from 'vitest'
import { decideExit } from '../../src/keeper/exit-decision.ts'

const at = (time: string) => Date.parse(time) / 1000

describe('the decision about an exit', () => {
  const position: WatchedPosition = {
    positionId: 1n,
    agentId: 1n,
    vault: '0x01',
    token: '0x02',
    tokenAmount: 10n ** 18n,
    maxSlippageBps: 100,
    entryPriceUsdc: 100_000_000n,
    usdcCostBasis: 100_000_000n,
    status: PositionStatus.Open,
    nextRuleIndex: 1,
    exitRules: [
      { triggerType: TriggerType.TakeProfit, triggerBps: 300n, exitBps: 5_000 },
      { triggerType: TriggerType.StopLoss, triggerBps: -800n, exitBps: 10_000 },
    ],
    closingSince: 0n,
    dueExit: { since: 0, seenAt: 0, ruleIndex: 0, tokensLeft: 0n },
  }
  const market = (usd: bigint, changes: Partial<ExitMarket> = {}, stale = false): ExitMarket => ({
    quote: {
      price: asTokenPrice(usd * 10n ** 8n),
      updatedAt: 0n,
      roundId: 1n,
      source: 'updater',
      quoted: true,
      stale,
      unsettled: false,
      at: 0n,
    },
    calendar: 'us-equity-24-5',
    restriction: undefined,
    decimals: 18,
    tradingPaused: false,
    ...changes,
  })
  const unsettled = (usd: bigint) => market(usd, { quote: { ...market(usd).quote, unsettled: true } })
  const weekday = BigInt(at('2026-11-18T12:00:00-05:00'))
  const weekend = BigInt(at('2026-11-21T12:00:00-05:00'))
  const decide = (
    { quote, ...market }: ExitMarket,
    at = weekday,
    respectSessions = true,
    changes: Partial<WatchedPosition> = {},
  ) => decideExit({ ...position, ...changes }, { ...market, quote: { ...quote, at } }, { respectSessions })
  const continuous = { calendar: 'continuous' } satisfies { calendar: ListingSession }
  const closing = { closingSince: 5n }
  const rest = { dueExit: { since: 5, seenAt: 5, ruleIndex: 1, tokensLeft: 1n } }

  it.each([
    ['a price between the triggers', decide(market(100n)), 'notReached'],
    ['a price beyond a rule that has fired', decide(market(104n)), 'notReached'],
    ['a price at the stop', decide(market(92n)), 'due'],
    ['a paused vault', decide(market(92n, { tradingPaused: true })), 'tradingPaused'],
    ['a paused vault with nothing due', decide(market(100n, { tradingPaused: true })), 'notReached'],
    ['a price that stands still in an open market', decide(market(92n, {}, true)), 'marketHalted'],
    ['a stale price where sessions are off', decide(market(92n, {}, true), weekday, false), 'priceStale'],
    ['a stale price that is continuous', decide(market(92n, continuous, true)), 'priceStale'],
    ['a weekend of a token that trades continuously', decide(market(92n, continuous), weekend), 'due'],
    ['a price at the stop from before a corporate action', decide(unsettled(92n)), 'priceUnsettled'],
    ['such a price after a rule sold a part', decide(unsettled(92n), weekday, true, rest), 'priceUnsettled'],
    ['such a price for an owner who closes', decide(unsettled(92n), weekday, true, closing), 'due'],
    ['a weekend with a stop reached', decide(market(92n), weekend), 'marketClosed'],
    ['a weekend with a stale price', decide(market(100n, {}, true), weekend), 'marketClosed'],
    ['a weekend with nothing due', decide(market(100n), weekend), 'notReached'],
    ['a weekend where sessions are off', decide(market(92n), weekend, false), 'due'],
    ['an owner who closes the position at any price', decide(market(100n), weekday, true, closing), 'due'],
    ['such an owner while the price is stale', decide(market(100n, {}, true), weekday, true, closing), 'marketHalted'],
    ['such an owner at a weekend', decide(market(100n), weekend, true, closing), 'marketClosed'],
    ['a price that recovered after a rule sold a part', decide(market(100n), weekday, true, rest), 'due'],
    ['a stale price after a rule sold a part', decide(market(100n, {}, true), weekday, true, rest), 'marketHalted'],
    ['a weekend after a rule sold a part', decide(market(100n), weekend, true, rest), 'marketClosed'],
  ])('the decision about an exit at %s is %s', (_, decision, expected) => {
    expect(decision).toBe(expected)
  })
})
