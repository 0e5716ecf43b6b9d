import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import { PRICE_SOURCES, type PriceSourceKind } from '@agent-trading-service/protocol/oracle-price'
import { decodeEnvelope, type PriceReport, priceOf } from '@agent-trading-service/protocol/price-report'
import { type Address, encodeFunctionData, type Hex, zeroAddress } from 'viem'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'

// A price that proves itself comes with the call that needs it: for a token whose source is signed reports, the call
// carries one; for a push feed, it copies the answer. Of all other tokens the oracle holds what its updater posted.

/** Where a token's price comes from: `feedIds` are the streams of its reports, `aggregator` is its push feed. */
export type PriceSource = {
  kind: PriceSourceKind
  feedIds: readonly Hex[]
  aggregator: Address
  maxSpreadBps: number
  isSharePrice: boolean
}

/** What calls need besides the updater's prices: the streams of each asset, and the assets with push feeds. */
export type PriceNeed = { streams: readonly (readonly Hex[])[]; feeds: readonly Address[] }

/** Whether prices are needed to reduce risk: then a provider that has failed is asked at once. */
export type Urgency = { isExit?: boolean | undefined }

export const NO_PRICES: CarriedPrices = { reports: [], feeds: [] }

const UPDATER: PriceSource = {
  kind: 'updater',
  feedIds: [],
  aggregator: zeroAddress,
  maxSpreadBps: 0,
  isSharePrice: false,
}

/** Decodes what the oracle says about a source. An older oracle knows none: there the updater posts every price. */
export const toPriceSource = (source: (Omit<PriceSource, 'kind'> & { kind: number }) | undefined): PriceSource =>
  source ? { ...source, kind: PRICE_SOURCES[source.kind] ?? 'updater' } : UPDATER

/** What a chain has shown about the sources of prices. */
type KnownSources = { memory: { priceSources: { byToken: ReadonlyMap<Address, PriceSource> } } }

type KnownMultipliers = KnownSources & { memory: { multipliers: ReadonlyMap<Address, bigint> } }

/** Returns a token's source as it was last read. */
export const sourceOf = ({ memory }: KnownSources, token: Address): PriceSource =>
  memory.priceSources.byToken.get(token) ?? UPDATER

/** Returns what a call needs whose outcome depends on the prices of tokens; undefined for prices of the updater. */
export function priceNeedOf(chain: KnownSources, tokens: Iterable<Address>): PriceNeed | undefined {
  const sources = [...new Set(tokens)].map(token => ({ token, ...sourceOf(chain, token) }))
  const streams = sources.flatMap(({ kind, feedIds }) => (kind === 'reports' ? [feedIds] : []))
  const feeds = sources.flatMap(({ kind, token }) => (kind === 'feed' ? [token] : []))
  return streams.length + feeds.length === 0 ? undefined : { streams, feeds }
}

const ONE = 10n ** 18n
/** From the 18 decimals of reports to the oracle's 8. */
const REPORT_UNIT = 10n ** 10n

/**
 * Returns the price (8 decimals) that the oracle takes from a report of a token, at the multiplier that was last read;
 * undefined if none was.
 */
export function reportedPrice(chain: KnownMultipliers, token: Address, report: PriceReport): bigint | undefined {
  const { isSharePrice } = sourceOf(chain, token)
  const multiplier = isSharePrice ? chain.memory.multipliers.get(token) : ONE
  return multiplier && (priceOf(report, isSharePrice) * multiplier) / (ONE * REPORT_UNIT)
}

/** Returns the prices (8 decimals) that the oracle takes from carried reports, as far as that is known. */
export function carriedPrices(
  chain: KnownMultipliers & { carried?: CarriedPrices | undefined },
  tokens: Iterable<Address>,
): ReadonlyMap<Address, bigint> {
  const reports = new Map(chain.carried?.reports.map(decodeEnvelope).map(report => [report.feedId, report]))
  return new Map(
    [...tokens].flatMap(token => {
      const [report] = sourceOf(chain, token).feedIds.flatMap(feedId => reports.get(feedId) ?? [])
      const price = report && reportedPrice(chain, token, report)
      return price === undefined ? [] : [[token, price] as const]
    }),
  )
}

/** Returns the calldata of the oracle with which anyone posts prices. */
export const encodePostPrices = ({ reports, feeds }: CarriedPrices): Hex =>
  encodeFunctionData({ abi: priceOracleAbi, functionName: 'postPrices', args: [reports, feeds] })
