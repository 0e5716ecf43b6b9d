import { envelopeParameters, type PriceReport, reportParameters } from '@agent-trading-service/protocol/price-report'
import { concat, encodeAbiParameters, type Hex, keccak256, numberToHex, padHex } from 'viem'
import { sign } from 'viem/accounts'
import { reportConfig, reportSignerKeys } from './report-signers.ts'

// Signed price reports as Chainlink Data Streams make them, from test keys: `Verifier` of @chainlink/contracts accepts
// them once it knows the keys' addresses.

/** Encodes a report, without signatures. */
export function encodeReport(report: PriceReport): Hex {
  if (report.schema === 8) return encodeAbiParameters(reportParameters[8], [report])
  if (report.schema === 10) return encodeAbiParameters(reportParameters[10], [report])
  return encodeAbiParameters(reportParameters[11], [report])
}

/** Signs an encoded report for the verifier's configuration with as many keys as it needs, or with `signatures`. */
export async function signReport(
  report: Hex,
  {
    configDigest,
    round = 1,
    signatures = reportConfig.faults + 1,
  }: { configDigest: Hex; round?: number; signatures?: number | undefined },
): Promise<Hex> {
  const context = [configDigest, padHex(numberToHex(round), { size: 32 }), padHex('0x', { size: 32 })] as const
  const hash = keccak256(concat([keccak256(report), ...context]))
  const signed = await Promise.all(reportSignerKeys.slice(0, signatures).map(privateKey => sign({ hash, privateKey })))
  const recoveryIds = signed.map(({ yParity }) => numberToHex(yParity ?? 0, { size: 1 }))
  return encodeAbiParameters(envelopeParameters, [
    context,
    report,
    signed.map(({ r }) => r),
    signed.map(({ s }) => s),
    padHex(concat(recoveryIds), { size: 32, dir: 'right' }),
  ])
}

/** What a stream says: a price with 18 decimals at a time in Unix seconds. */
export type StreamState = { price: bigint; observedAt: number; marketStatus: number; expiresAfterSeconds?: number }

/** Status in which a stream of the schema trades. */
export const OPEN_STATUS = 2

/** Half of the distance between bid and ask that test reports have, in basis points of the price. */
const HALF_SPREAD_BPS = 5n

/** Returns the report of a stream in the schema of its id. */
export function reportOf(
  feedId: Hex,
  { price, observedAt, marketStatus, expiresAfterSeconds = 2_592_000 }: StreamState,
) {
  const common = {
    feedId,
    validFromTimestamp: observedAt,
    observationsTimestamp: observedAt,
    nativeFee: 0n,
    linkFee: 0n,
    expiresAt: observedAt + expiresAfterSeconds,
    marketStatus,
  }
  const nanoseconds = BigInt(observedAt) * 1_000_000_000n
  const schema = Number(feedId.slice(0, 6))
  const reports: Partial<Record<number, PriceReport>> = {
    8: { schema: 8, ...common, lastUpdateTimestamp: nanoseconds, midPrice: price },
    10: {
      schema: 10,
      ...common,
      lastUpdateTimestamp: nanoseconds,
      price,
      currentMultiplier: 10n ** 18n,
      newMultiplier: 0n,
      activationDateTime: 0,
      tokenizedPrice: price,
    },
    11: {
      schema: 11,
      ...common,
      mid: price,
      lastSeenTimestampNs: nanoseconds,
      bid: price - (price * HALF_SPREAD_BPS) / 10_000n,
      bidVolume: 10n ** 18n,
      ask: price + (price * HALF_SPREAD_BPS) / 10_000n,
      askVolume: 10n ** 18n,
      lastTradedPrice: price,
    },
  }
  const report = reports[schema]
  if (report === undefined) throw new Error(`No test report has schema ${schema}`)
  return report
}
