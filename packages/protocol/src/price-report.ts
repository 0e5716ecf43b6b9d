import { decodeAbiParameters, type Hex, parseAbiParameters, size, slice } from 'viem'

// Reports of Chainlink Data Streams: docs.chain.link/data-streams, "report schemas". Prices have 18 decimals.

const COMMON =
  'bytes32 feedId, uint32 validFromTimestamp, uint32 observationsTimestamp, uint192 nativeFee, uint192 linkFee, uint32 expiresAt'

/** The report of each schema. Its fields are static, so the fields in a row are encoded as a tuple of them. */
export const reportParameters = {
  8: parseAbiParameters(`(${COMMON}, uint64 lastUpdateTimestamp, int192 midPrice, uint32 marketStatus) report`),
  10: parseAbiParameters(
    `(${COMMON}, uint64 lastUpdateTimestamp, int192 price, uint32 marketStatus, int192 currentMultiplier, int192 newMultiplier, uint32 activationDateTime, int192 tokenizedPrice) report`,
  ),
  11: parseAbiParameters(
    `(${COMMON}, int192 mid, uint64 lastSeenTimestampNs, int192 bid, int192 bidVolume, int192 ask, int192 askVolume, int192 lastTradedPrice, uint32 marketStatus) report`,
  ),
} as const

/** What the provider signs and `VerifierProxy.verify` takes: the digest of its configuration comes first. */
export const envelopeParameters = parseAbiParameters(
  'bytes32[3] context, bytes report, bytes32[] rs, bytes32[] ss, bytes32 rawVs',
)

/** A report's fields in all schemas that a price may come from. Times are Unix seconds. */
type CommonFields = {
  feedId: Hex
  validFromTimestamp: number
  observationsTimestamp: number
  nativeFee: bigint
  linkFee: bigint
  expiresAt: number
  marketStatus: number
}

export type PriceReport =
  | (CommonFields & { schema: 8; lastUpdateTimestamp: bigint; midPrice: bigint })
  | (CommonFields & {
      schema: 10
      lastUpdateTimestamp: bigint
      price: bigint
      currentMultiplier: bigint
      newMultiplier: bigint
      activationDateTime: number
      tokenizedPrice: bigint
    })
  | (CommonFields & {
      schema: 11
      mid: bigint
      lastSeenTimestampNs: bigint
      bid: bigint
      bidVolume: bigint
      ask: bigint
      askVolume: bigint
      lastTradedPrice: bigint
    })

/** The first two bytes of a stream's id are its schema. */
export const schemaOf = (feedId: Hex): number => Number(slice(feedId, 0, 2))

/** Decodes a report, as the verifier returns it. Throws if it is not one of schema 8, 10 or 11. */
export function decodeReport(report: Hex): PriceReport {
  const schema = schemaOf(report)
  if (schema === 8) return { schema, ...decodeAbiParameters(reportParameters[8], report)[0] }
  if (schema === 10) return { schema, ...decodeAbiParameters(reportParameters[10], report)[0] }
  if (schema === 11) return { schema, ...decodeAbiParameters(reportParameters[11], report)[0] }
  throw new Error(`A report of schema ${schema} has no price that is supported`)
}

/** Decodes the report in an envelope, without a look at its signatures. Throws if it is none. */
export function decodeEnvelope(payload: Hex): PriceReport {
  const [, report] = decodeAbiParameters(envelopeParameters, payload)
  if (size(report) === 0) throw new Error('An envelope without a report')
  return decodeReport(report)
}

/** When a report's price was seen, in Unix seconds: a halt shows in nothing but a price that no longer changes. */
export function observedAtOf(report: PriceReport): number {
  const seenNs = report.schema === 11 ? report.lastSeenTimestampNs : report.lastUpdateTimestamp
  return Math.min(report.observationsTimestamp, Number(seenNs / 1_000_000_000n))
}

/** Returns a report's price of a share, or that of a token, which only schema 10 has apart from it; 18 decimals. */
export function priceOf(report: PriceReport, isSharePrice: boolean): bigint {
  if (report.schema === 11) return report.mid
  if (report.schema === 10) return isSharePrice ? report.price : report.tokenizedPrice
  return report.midPrice
}

/** Statuses by session: regular hours, which all schemas call 2, and extended and overnight hours of schema 11. */
const STATUSES_BY_SESSION: readonly (readonly number[])[] = [[2], [1, 3], [4]]

/**
 * Whether a stream's price is one of the market's present session. `session` is the stream's place among the asset's.
 * Status 1 is a closed market in schemas 8 and 10, and pre-market in schema 11; a status without a place never trades.
 */
export const isTrading = ({ schema, marketStatus }: PriceReport, session: number): boolean =>
  (schema === 11 || session === 0) && STATUSES_BY_SESSION[session]?.includes(marketStatus) === true

/**
 * Returns the report with the price of an asset among the newest ones of its streams, in their order: the newest of
 * those that trade. Undefined while none trades.
 */
export const currentReport = <Signed extends { report: PriceReport }>(
  reports: readonly (Signed | undefined)[],
): Signed | undefined =>
  reports
    .filter((each, session): each is Signed => each !== undefined && isTrading(each.report, session))
    .sort((a, b) => observedAtOf(b.report) - observedAtOf(a.report))[0]
