import { isMarketOpen } from '@agent-trading-service/protocol/market-hours'
import { asTokenPrice } from '@agent-trading-service/protocol/price-basis'
import { judgePrices } from '../../src/doctor/judge-prices.ts'
import { histograms } from '../../src/metrics/families.ts'
import type { Series } from './alert-rules.ts'

// The metrics of a deployment in the week of Thanksgiving 2026, a sample a minute: a holiday, an early close, a
// weekend, and what goes wrong in between. Prices and their age are judged by the service's own rules; the rest is what
// the exercises of docs/recovery.md show.

const START = Date.parse('2026-11-23T00:00:00-05:00') / 1_000
const DAYS = 7
const MINUTES = DAYS * 24 * 60
const MAX_PRICE_AGE_SECONDS = 900
const TOKENS = ['NVDA', 'AAPL']
const NODE = 'rpc.example'

export type Incident = {
  name: string
  /** New York time, and how long it lasts. */
  from: string
  minutes: number
  /** The alerts that it must raise: all of them, and no other. */
  alerts: readonly string[]
  /** Why they fire, or why none does. */
  why: string
}

/** What happens in the week. An alert may outlast its incident by an hour: that is as far as the rules look back. */
export const INCIDENTS = {
  deploy: {
    name: 'a deploy',
    from: '2026-11-23T11:00:00-05:00',
    minutes: 1,
    alerts: [],
    why: 'the restart takes a minute, and counters start at zero',
  },
  reorg: {
    name: 'a reorg of 20 blocks',
    from: '2026-11-24T10:00:00-05:00',
    minutes: 2,
    alerts: [],
    why: 'the index and the lanes follow within a minute',
  },
  provider: {
    name: 'an outage of the price provider',
    from: '2026-11-24T14:00:00-05:00',
    minutes: 90,
    alerts: ['AtsBackgroundFailures', 'AtsPricesExpireSoon', 'AtsNotReady', 'AtsStalePrices'],
    why: 'refreshes fail, prices expire after fifteen minutes, then nothing can be traded',
  },
  node: {
    name: 'an outage of the only node',
    from: '2026-11-25T11:00:00-05:00',
    minutes: 30,
    alerts: [
      'AtsNotReady',
      'AtsPartUnreadable',
      'AtsErrorRate',
      'AtsSlowResponses',
      'AtsNodeFailing',
      'AtsBackgroundFailures',
    ],
    why: 'nothing reaches the chain; the other gauges are missing',
  },
  holiday: {
    name: 'Thanksgiving',
    from: '2026-11-25T20:00:00-05:00',
    minutes: 24 * 60,
    alerts: [],
    why: 'the market is closed, so old prices are right',
  },
  gap: {
    name: 'a price gap at the opening of the exchange',
    from: '2026-11-27T09:30:00-05:00',
    minutes: 60,
    alerts: ['AtsBackgroundFailures', 'AtsPricesExpireSoon', 'AtsReadinessProblem', 'AtsStalePrices'],
    why: 'the oracle refuses the jump of one token until the forcer posts it',
  },
  weekend: {
    name: 'the weekend',
    from: '2026-11-27T17:00:00-05:00',
    minutes: 51 * 60,
    alerts: [],
    why: 'the market is closed from the early close on',
  },
} as const satisfies Record<string, Incident>

export const minuteOf = (time: string): number => (Date.parse(time) / 1_000 - START) / 60
export const timeOf = (minute: number): string => new Date((START + 60 * minute) * 1_000).toISOString()
const isDuring = ({ from, minutes }: Incident, minute: number): boolean =>
  minute >= minuteOf(from) && minute < minuteOf(from) + minutes

/** Returns the series of the week. */
export function weekOfMetrics(): Series[] {
  const series = new Map<string, { name: string; labels: Record<string, string>; values: (number | undefined)[] }>()
  const totals = new Map<string, number>()
  const postedAt = new Map(TOKENS.map(symbol => [symbol, START - 60]))

  for (let minute = 0; minute < MINUTES; minute++) {
    const now = START + 60 * minute
    const is = (incident: keyof typeof INCIDENTS) => isDuring(INCIDENTS[incident], minute)
    const gauge = (name: string, labels: Record<string, string>, value: number) => {
      const key = JSON.stringify([name, labels])
      const found = series.get(key) ?? { name, labels, values: Array<undefined>(MINUTES) }
      series.set(key, found)
      found.values[minute] = value
    }
    const counter = (name: string, labels: Record<string, string>, amount: number) => {
      const key = JSON.stringify([name, labels])
      totals.set(key, (totals.get(key) ?? 0) + amount)
      gauge(name, labels, totals.get(key) ?? 0)
    }
    if (is('deploy')) {
      totals.clear()
      gauge('up', { job: 'agent-trading-service' }, 0)
      continue
    }
    const isNodeDown = is('node')
    const isOpen = isMarketOpen('us-equity-24-5', now)
    for (const symbol of TOKENS)
      if (isOpen && !isNodeDown && !is('provider') && !(is('gap') && symbol === 'NVDA')) postedAt.set(symbol, now)
    const failsToPost = isOpen && (is('provider') || is('gap'))
    const prices = judgePrices({
      tokens: TOKENS.map(symbol => ({ symbol, address: `0x${symbol}`, session: 'us-equity-24-5' })),
      maxAgeIn: () => BigInt(MAX_PRICE_AGE_SECONDS),
      quoteIn(token) {
        const updatedAt = postedAt.get(token.slice(2)) ?? 0
        const stale = now - updatedAt > MAX_PRICE_AGE_SECONDS
        const times = { updatedAt: BigInt(updatedAt), at: BigInt(now), source: 'updater' as const }
        return { price: asTokenPrice(10n ** 8n), ...times, roundId: 1n, unsettled: false, stale, quoted: true }
      },
    })

    gauge('up', { job: 'agent-trading-service' }, 1)
    gauge('ats_part_up', { part: 'readiness' }, isNodeDown ? 0 : 1)
    gauge('ats_ready', {}, isNodeDown || prices.hasNone ? 0 : 1)
    if (!isNodeDown) {
      gauge('ats_readiness_problems', {}, prices.overdue.length > 0 ? 1 : 0)
      gauge('ats_stale_prices', {}, prices.overdue.length)
      if (prices.secondsLeft !== null) gauge('ats_price_seconds_left', {}, prices.secondsLeft)
      gauge('ats_chain_halted', {}, 0)
      gauge('ats_index_complete', {}, 1)
      gauge('ats_index_lag_seconds', {}, is('reorg') ? 100 : 60)
      gauge('ats_keeper_lag_seconds', {}, 60)
      gauge('ats_timelock_operations', { announced: 'no' }, 0)
    }
    gauge('ats_lane_pending_transactions', { account: 'executor 1' }, isNodeDown || is('reorg') ? 3 : 0)
    gauge('ats_lane_oldest_pending_seconds', { account: 'executor 1' }, is('reorg') ? 20 : 0)
    gauge('ats_lane_capacity', { account: 'executor 1' }, 16)
    for (const reason of ['funds', 'shared key']) gauge('ats_lane_paused', { account: 'executor 1', reason }, 0)
    gauge('ats_account_balance_ether', { account: 'executor 1' }, 1)
    counter('ats_transaction_fees_ether_total', { account: 'executor 1' }, isOpen ? 0.000_02 : 0)
    counter('ats_index_repaired_total', {}, 0)
    counter('ats_log_events_total', { event: 'foreign transaction' }, 0)
    counter('ats_log_events_total', { event: 'price refresh failed' }, failsToPost ? 1 : 0)
    for (const event of ['history failure', 'lag unknown'])
      counter('ats_log_events_total', { event }, isNodeDown ? 1 : 0)

    // Reads and a monitor around the clock; agents trade while the market is open.
    const requests = isOpen ? 60 : 3
    const failed = isNodeDown ? Math.ceil(requests / 2) : prices.hasNone ? 1 : 0
    const ofRequests = { operation: 'getPrices', surface: 'http' }
    counter('ats_requests_total', { ...ofRequests, status: '5xx' }, failed)
    counter('ats_requests_total', { ...ofRequests, status: '2xx' }, requests - failed)
    for (const bound of [...histograms.ats_request_duration_seconds.buckets, Number.POSITIVE_INFINITY])
      counter(
        'ats_request_duration_seconds_bucket',
        { ...ofRequests, le: bound === Number.POSITIVE_INFINITY ? '+Inf' : `${bound}` },
        isNodeDown && bound < 5 ? requests - failed : bound < 0.05 ? 0 : requests,
      )
    const calls = isOpen ? 200 : 13
    counter('ats_rpc_requests_total', { node: NODE, method: 'eth_call', result: 'fault' }, isNodeDown ? calls : 0)
    counter('ats_rpc_requests_total', { node: NODE, method: 'eth_call', result: 'ok' }, isNodeDown ? 0 : calls)
  }
  return [...series.values()]
}
