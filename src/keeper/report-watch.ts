import { isTrading, type PriceReport } from '@agent-trading-service/protocol/price-report'
import type { Address, Hex } from 'viem'
import { reportedPrice, sourceOf } from '../chain/carried-prices.ts'
import type { Chain } from '../chain/configured-chain.ts'
import type { DataStreamsConfig } from '../config/config.ts'
import type { PriceReports, SignedReport } from '../price-providers/data-streams.ts'
import { createReportStream } from '../price-providers/report-stream.ts'
import type { Book } from './book.ts'

/** Once the connection is lost, the next cycle starts this long after the last one, and fetches. */
const LOST_DELAY_MS = 1_000

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
  /** Tokens whose last price reached something: the cycle that it hurried is not hurried again. */
  const reachedTokens = new Set<Address>()
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
    const price = reportedPrice(chain, token, report)
    if (price === undefined || !isReachedBy(token, price)) {
      reachedTokens.delete(token)
      return
    }
    if (!reachedTokens.has(token)) hurry(0)
    reachedTokens.add(token)
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
