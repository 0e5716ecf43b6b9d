import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { computeUnitsOf } from '../../bench/compute-units.ts'
import { type ProviderName, providerNames } from './profiles.ts'
import type { ProviderReport, ProviderTraffic } from './run.ts'

/** What `npm run providers` measured behind a provider. Hourly figures are calls, each of a batch counted. */
export type ProviderResult = {
  profile: ProviderName
  operations: number
  firstTries: number
  lost: number
  doubled: number
  falsehoods: number
  /** While nobody trades, streams or holds a position, and with one open position; the cron trigger included. */
  idleHour: Bill
  holdingHour: Bill
  /** While an event stream is open, besides. */
  streamingHour: Bill
  /** What an intent adds to that, its quote and its reads included. */
  perIntent: Bill & { kib: number }
}
type Bill = { calls: number; computeUnits: number }

const billOf = ({ calls }: Pick<ProviderTraffic, 'calls'>): Bill => {
  const entries = Object.entries(calls)
  return {
    calls: entries.reduce((sum, [, count]) => sum + count, 0),
    computeUnits: entries.reduce((sum, [method, count]) => sum + count * computeUnitsOf(method), 0),
  }
}

const scaled = ({ calls, computeUnits }: Bill, factor: number): Bill => ({
  calls: Math.round(calls * factor),
  computeUnits: Math.round(computeUnits * factor),
})

/** How often an hour the cron trigger checks readiness too: CHECK_SECONDS of `metrics/object.ts`. */
const CHECKS_PER_HOUR = 12

type ProviderMinutes = Record<'ordinaryCron' | 'checkingCron' | 'idle' | 'holding' | 'streaming', ProviderTraffic>

/**
 * Returns the result of a run. What trading costs is what it adds to an open event stream; `ordinaryCron` and
 * `checkingCron` are what one run of the cron trigger asks, without and with the check of readiness.
 */
export function resultOf(
  profile: ProviderName,
  { ordinaryCron, checkingCron, idle, holding, streaming }: ProviderMinutes,
  report: ProviderReport,
): ProviderResult {
  const { traffic, intents } = report
  const [ordinary, checking] = [billOf(ordinaryCron), billOf(checkingCron)]
  function hourOf(measured: ProviderTraffic): Bill {
    const { calls, computeUnits } = scaled(billOf(measured), 3_600 / measured.seconds)
    return {
      calls: calls + CHECKS_PER_HOUR * (checking.calls - ordinary.calls),
      computeUnits: computeUnits + CHECKS_PER_HOUR * (checking.computeUnits - ordinary.computeUnits),
    }
  }
  const [trading, background] = [billOf(traffic), billOf(streaming)]
  // The index reads each block, and a busy machine makes fewer of them.
  const share = streaming.blocks > 0 ? traffic.blocks / streaming.blocks : traffic.seconds / streaming.seconds
  const perIntent = (total: number, inBackground: number) =>
    Math.round((10 * Math.max(0, total - inBackground * share)) / Math.max(1, intents)) / 10
  return {
    profile,
    operations: report.attempts,
    firstTries: report.succeeded,
    lost: report.missing.length,
    doubled: report.doubled.length,
    falsehoods: report.falsehoods.length,
    idleHour: hourOf(idle),
    holdingHour: hourOf(holding),
    streamingHour: hourOf(streaming),
    perIntent: {
      calls: perIntent(trading.calls, background.calls),
      computeUnits: Math.round(perIntent(trading.computeUnits, background.computeUnits)),
      kib: perIntent(traffic.bytes / 1_024, streaming.bytes / 1_024),
    },
  }
}

const file = join(import.meta.dirname, 'results.json')

/** Writes the results of some profiles, and keeps those of the others. */
export function writeResults(results: readonly ProviderResult[]): void {
  const known = new Map([...readResults(), ...results].map(result => [result.profile, result]))
  const inOrder = providerNames.flatMap(name => known.get(name) ?? [])
  writeFileSync(file, `${JSON.stringify(inOrder, undefined, 2)}\n`)
}

export const readResults = (): ProviderResult[] => JSON.parse(readFileSync(file, 'utf8')) as ProviderResult[]
