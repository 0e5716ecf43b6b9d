import { isTrading, type PriceReport, priceOf } from '@agent-trading-service/protocol/price-report'
import type { Address, Hex } from 'viem'
import { sourceOf } from '../chain/carried-prices.ts'
import type { Chain } from '../chain/configured-chain.ts'
import type { DataStreamsConfig } from '../config/config.ts'
import type { PriceReports, SignedReport } from '../price-providers/data-streams.ts'
import { createReportStream } from '../price-providers/report-stream.ts'
import type { Book } from './book.ts'

/** Once the connection is lost, the next cycle starts this long after the last one, and fetches. */
const LOST_DELAY_MS = 1_000
/** From the 18 decimals of reports to the oracle's 8. */
const REPORT_UNIT = 10n ** 10n

/**
 * Keeps the newest report of each stream that the book's positions and orders depend on, and hurries the next cycle
 * when one reaches a price that the last one did not. Nothing is read from a node for that, and no connection is open
 * without such positions and orders.
 */
export function createReportWatch({
  config,
  chain,
  book,
  reports,
  hurry,
}: {
  config: DataStreamsConfig
  chain: Chain
  book: Book
  reports: Pick<PriceReports, 'accept' | 'forget'>
  /** Makes the next cycle follow its predecessor after so long. */
  hurry(delayMs: number): void
}) {
  let tokens = new Map<Hex, { token: Address; session: number }>()
  const lastPrices = new Map<Address, { price: bigint; isReached: boolean }>()
  const stream = createReportStream(config, {
    onReport,
    onOpen(feedIds) {
      reports.forget(feedIds)
      hurry(0)
    },
    onLost: () => hurry(LOST_DELAY_MS),
  })

  function onReport(signed: SignedReport): boolean {
    const isNewer = reports.accept(signed)
    if (isNewer) compare(signed.report)
    return isNewer
  }

  function compare(report: PriceReport): void {
    const { token, session } = tokens.get(report.feedId) ?? {}
    if (token === undefined || session === undefined || !isTrading(report, session)) return
    const { isSharePrice } = sourceOf(chain, token)
    const price = priceOf(report, isSharePrice) / REPORT_UNIT
    const last = lastPrices.get(token)
    if (price === last?.price) return
    // What a token stands for is read by the cycle: any other price of its share may reach one of the token.
    const isReached = isSharePrice || isReachedBy(token, price)
    lastPrices.set(token, { price, isReached })
    if (isReached && (isSharePrice || !last?.isReached)) hurry(0)
  }

  const isReachedBy = (token: Address, price: bigint): boolean =>
    book.orders.reached(token, price, 1).length > 0 ||
    book
      .markets()
      .some(market => market.token === token && book.reached(market, { price, last: 0n, limit: 1 }).length > 0)

  return {
    retryAt: stream.retryAt,
    /** Watches what the book depends on now, over a new connection if the last one was lost. */
    update(): void {
      const watched = new Set([...book.markets().map(({ token }) => token), ...book.orders.tokens()])
      tokens = new Map(
        [...watched].flatMap(token => {
          const { kind, feedIds } = sourceOf(chain, token)
          return kind === 'reports' ? feedIds.map((feedId, session) => [feedId, { token, session }] as const) : []
        }),
      )
      stream.watch([...tokens.keys()])
    },
  }
}
