import type { Schema } from '../../data/client.ts'
import { Time } from '../../parts/times.tsx'

const SESSIONS = {
  regular: 'open, exchange hours',
  extended: 'open, extended hours',
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
