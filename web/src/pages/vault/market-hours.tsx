import type { Schema } from '../../data/client.ts'
import { Badge } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

const SESSIONS = {
  pre: 'open, before the exchange',
  regular: 'open, exchange hours',
  post: 'open, after the exchange',
  overnight: 'open, overnight',
  continuous: 'always open',
  closed: 'closed',
}

/** Whether the market behind a price is open, and when it opens next. */
export const MarketHours = ({ market }: { market: Schema['MarketSession'] }) => (
  <>
    {SESSIONS[market.session]}
    {market.nextOpen !== null && (
      <>
        , opens <Time value={market.nextOpen} />
      </>
    )}
  </>
)

type StalePriceProps = {
  isStale: boolean
  source?: Schema['Price']['source'] | undefined
  market: Schema['MarketSession'] | undefined
}

/**
 * Marks a price that is too old to trade. That is a fault only while its market trades, and of a price that no trade
 * brings along.
 */
export function StalePrice({ isStale, source = 'updater', market }: StalePriceProps) {
  if (!isStale) return null
  if (source !== 'updater') return <Badge>price comes with each trade</Badge>
  return market?.session === 'closed' ? <Badge>market closed</Badge> : <Badge tone="warn">price stale</Badge>
}

/** Says that amounts follow from prices that are too old. `what` is the subject and its verb, such as "equity uses". */
export const StaleMoney = ({ symbols, what }: { symbols: string[]; what: string }) =>
  symbols.length === 0 ? null : (
    <p class="note-line warn" role="status">
      No fresh price for {symbols.join(', ')}: {what} the last known one.
    </p>
  )

/** The tokens that a vault holds without a fresh price. */
export const staleHoldings = (stats: Schema['VaultStats'] | undefined): string[] =>
  stats?.deployed.filter(({ priceStale }) => priceStale).map(({ symbol }) => symbol) ?? []
