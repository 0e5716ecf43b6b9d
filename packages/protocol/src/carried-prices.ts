import { type Address, encodeFunctionData, type Hex, size } from 'viem'
import { priceCarrierAbi } from '../../../contracts-abi/price-carrier.ts'
import { decodeEnvelope } from './price-report.ts'

/** What a call brings along: signed reports, and the assets whose push feeds are copied. */
export type CarriedPrices = { reports: readonly Hex[]; feeds: readonly Address[] }

/** Returns the calldata of a contract's call with the prices that it brings along to the oracle. */
export const encodeWithPrices = (oracle: Address, { reports, feeds }: CarriedPrices, data: Hex): Hex =>
  reports.length + feeds.length === 0
    ? data
    : encodeFunctionData({ abi: priceCarrierAbi, functionName: 'withPrices', args: [reports, feeds, oracle, data] })

/** An envelope with 31 signatures is 3 KiB. */
const MAX_REPORT_BYTES = 4_096
/** What a transaction pays for at most: each report costs about 100,000 gas. */
const MAX_REPORTS = 64
/** How old the newest report of a stream may be: its provider signs one a second. */
const MAX_AGE_SECONDS = 60

/**
 * Returns what is wrong with prices that somebody else chose for a transaction of one's own; undefined if nothing is.
 * The oracle verifies them: this bounds what they cost and how they are chosen. `now` is the chain's in Unix seconds.
 */
export function carriedPricesProblem({ reports, feeds }: CarriedPrices, now: number): string | undefined {
  if (reports.length + feeds.length > MAX_REPORTS) return `it brings ${reports.length + feeds.length} prices`
  const streams = new Set<Hex>()
  for (const payload of reports) {
    if (size(payload) > MAX_REPORT_BYTES) return `a report has ${size(payload)} bytes`
    let report: ReturnType<typeof decodeEnvelope>
    try {
      report = decodeEnvelope(payload)
    } catch {
      return 'a report cannot be decoded'
    }
    const age = now - report.observationsTimestamp
    if (age > MAX_AGE_SECONDS) return `the report of stream ${report.feedId} is ${age} seconds old`
    if (streams.has(report.feedId)) return `there are two reports of stream ${report.feedId}`
    streams.add(report.feedId)
  }
  return undefined
}
