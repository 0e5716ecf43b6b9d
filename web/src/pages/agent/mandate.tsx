import type { Schema } from '../../data/client.ts'
import { Usdc } from '../../parts/figures.tsx'
import { Facts } from '../../parts/panel.tsx'
import { Address } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

export const MODES: Record<string, string> = {
  trade: 'May open, add, reduce and close',
  reduceOnly: 'May only reduce and close',
  stopped: 'May only reduce, close and tighten exits',
}

/** Whether the mandate's time is over: the agent may then only reduce and close. */
export const hasExpired = ({ mandate, asOf }: Schema['AgentControl']): boolean =>
  mandate.validUntil !== null && Number(mandate.validUntil) < Number(asOf.blockTimestamp)

/** What the owner lets the agent do. */
export function MandateFacts({ control }: { control: Schema['AgentControl'] }) {
  const { mandate, closingSince, pendingOwner } = control
  const limit = (value: string | null) => (value === null ? 'no limit' : <Usdc value={value} />)
  return (
    <>
      {hasExpired(control) && (
        <p class="note-line warn">
          The mandate has expired: the agent may only reduce and close until its owner sets another one.
        </p>
      )}
      <Facts
        items={[
          ['Trading', MODES[mandate.mode] ?? mandate.mode],
          ['Largest trade', limit(mandate.maxTradeUsdc)],
          ['Buys in 24 hours', limit(mandate.maxDailyTurnoverUsdc)],
          ['Largest exposure', limit(mandate.maxExposureUsdc)],
          ['Tokens', mandate.allowedTokens?.map(({ symbol }) => symbol).join(', ') ?? 'all of the vault'],
          ['Until', mandate.validUntil === null ? 'no end' : <Time value={mandate.validUntil} />],
          ...(closingSince
            ? [['Closing since', <Time key="since" value={closingSince} />] as [string, preact.VNode]]
            : []),
          ...(pendingOwner
            ? [['Offered to', <Address key="offer" value={pendingOwner} />] as [string, preact.VNode]]
            : []),
        ]}
      />
      {mandate.version === '0' && mandate.mode === 'trade' && (
        <p class="fine">The owner has not set a mandate: only the rules of the track hold.</p>
      )}
    </>
  )
}
