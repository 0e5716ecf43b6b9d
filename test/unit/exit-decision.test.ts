import { PositionStatus, TriggerType } from '@agent-trading-service/protocol/enums'
import { marketHours } from '@agent-trading-service/protocol/market-hours'
import type { ExitMarket, WatchedPosition } from '@agent-trading-service/protocol/position'
import { asTokenPrice } from '@agent-trading-service/protocol/price-basis'
import { describe, expect, it } from 'vitest'
import { decideExit } from '../../src/keeper/exit-decision.ts'

const at = (time: string) => Date.parse(time) / 1000
const hours = (time: string, symbol = 'NVDA') => {
  const { session, nextOpen } = marketHours(symbol, at(time))
  return [session, nextOpen && new Date(nextOpen * 1000).toISOString()]
}

describe('the equity market', () => {
  it.each([
    ['a Wednesday at noon', '2026-11-18T12:00:00-05:00', 'regular'],
    ['the opening bell', '2026-11-18T09:30:00-05:00', 'regular'],
    ['a second before it', '2026-11-18T09:29:59-05:00', 'extended'],
    ['the closing bell', '2026-11-18T16:00:00-05:00', 'extended'],
    ['a weekday night', '2026-11-18T23:30:00-05:00', 'extended'],
    ['Friday a second before 20:00', '2026-11-20T19:59:59-05:00', 'extended'],
    ['Friday 20:00', '2026-11-20T20:00:00-05:00', 'closed'],
    ['Sunday a second before 20:00', '2026-11-22T19:59:59-05:00', 'closed'],
    ['Sunday 20:00', '2026-11-22T20:00:00-05:00', 'extended'],
    ['the opening bell in summer', '2026-07-15T13:30:00Z', 'regular'],
    ['a second before it in summer', '2026-07-15T13:29:59Z', 'extended'],
    ['the opening bell on the Monday after the clocks went forward', '2027-03-15T13:30:00Z', 'regular'],
    ['the opening bell on the Monday after the clocks went back', '2026-11-02T14:30:00Z', 'regular'],
    ['Thanksgiving', '2026-11-26T12:00:00-05:00', 'closed'],
    ['its eve after 20:00', '2026-11-25T20:00:00-05:00', 'closed'],
    ['its evening, which belongs to Friday', '2026-11-26T20:00:00-05:00', 'extended'],
    ['the short Friday after it before 13:00', '2026-11-27T12:59:59-05:00', 'regular'],
    ['the short Friday after it at 13:00', '2026-11-27T13:00:00-05:00', 'extended'],
    ['the short Friday after it at 17:00', '2026-11-27T17:00:00-05:00', 'closed'],
    ['Independence Day, observed on Friday', '2026-07-03T12:00:00-04:00', 'closed'],
    ['Christmas 2027, observed on Friday', '2027-12-24T12:00:00-05:00', 'closed'],
  ])('the equity market on %s (%s) is %s', (_, time, session) => {
    expect(hours(time)[0]).toBe(session)
  })

  it.each([
    ['Friday night', '2026-11-20T21:00:00-05:00', '2026-11-23T01:00:00.000Z'],
    ['Sunday afternoon', '2026-11-22T15:00:00-05:00', '2026-11-23T01:00:00.000Z'],
    ['the eve of Thanksgiving', '2026-11-25T21:00:00-05:00', '2026-11-27T01:00:00.000Z'],
    ['the short Friday', '2026-11-27T18:00:00-05:00', '2026-11-30T01:00:00.000Z'],
    ['a long weekend with Monday off', '2026-09-04T20:00:00-04:00', '2026-09-08T00:00:00.000Z'],
    ['the weekend in which the clocks go forward', '2027-03-13T12:00:00-05:00', '2027-03-15T00:00:00.000Z'],
    ['the weekend in which the clocks go back', '2026-10-31T12:00:00-04:00', '2026-11-02T01:00:00.000Z'],
  ])('the equity market on %s (%s) opens next at %s', (_, time, next) => {
    expect(hours(time)).toEqual(['closed', next])
  })

  it('the equity market does not apply to other tokens', () => {
    expect(hours('2026-11-22T12:00:00-05:00', 'WETH')).toEqual(['continuous', undefined])
  })
})

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
      quoted: true,
      stale,
      unsettled: false,
      at: 0n,
    },
    decimals: 18,
    tradingPaused: false,
    ...changes,
  })
  const unsettled = (usd: bigint) => market(usd, { quote: { ...market(usd).quote, unsettled: true } })
  const weekday = BigInt(at('2026-11-18T12:00:00-05:00'))
  const weekend = BigInt(at('2026-11-21T12:00:00-05:00'))
  const decide = (market: ExitMarket, time = weekday, respectSessions = true, changes: Partial<WatchedPosition> = {}) =>
    decideExit({ ...position, ...changes }, market, { symbol: 'NVDA', at: time, respectSessions })
  const closing = { closingSince: 5n }
  const rest = { dueExit: { since: 5, seenAt: 5, ruleIndex: 1, tokensLeft: 1n } }

  it.each([
    ['a price between the triggers', decide(market(100n)), 'notReached'],
    ['a price beyond a rule that has fired', decide(market(104n)), 'notReached'],
    ['a price at the stop', decide(market(92n)), 'due'],
    ['a paused vault', decide(market(92n, { tradingPaused: true })), 'tradingPaused'],
    ['a paused vault with nothing due', decide(market(100n, { tradingPaused: true })), 'notReached'],
    ['a price at the stop from before a corporate action', decide(unsettled(92n)), 'priceUnsettled'],
    ['such a price after a rule sold a part', decide(unsettled(92n), weekday, true, rest), 'priceUnsettled'],
    ['such a price for an owner who closes', decide(unsettled(92n), weekday, true, closing), 'due'],
    ['a stale price', decide(market(100n, {}, true)), 'priceStale'],
    ['a weekend with a stop reached', decide(market(92n), weekend), 'marketClosed'],
    ['a weekend with a stale price', decide(market(100n, {}, true), weekend), 'marketClosed'],
    ['a weekend with nothing due', decide(market(100n), weekend), 'notReached'],
    ['a weekend where sessions are off', decide(market(92n), weekend, false), 'due'],
    ['an owner who closes the position at any price', decide(market(100n), weekday, true, closing), 'due'],
    ['such an owner while the price is stale', decide(market(100n, {}, true), weekday, true, closing), 'priceStale'],
    ['such an owner at a weekend', decide(market(100n), weekend, true, closing), 'marketClosed'],
    ['a price that recovered after a rule sold a part', decide(market(100n), weekday, true, rest), 'due'],
    ['a stale price after a rule sold a part', decide(market(100n, {}, true), weekday, true, rest), 'priceStale'],
    ['a weekend after a rule sold a part', decide(market(100n), weekend, true, rest), 'marketClosed'],
  ])('the decision about an exit at %s is %s', (_, decision, expected) => {
    expect(decision).toBe(expected)
  })
})
