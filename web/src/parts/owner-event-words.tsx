import type { Schema } from '../data/client.ts'
import { formatUsdc } from '../format/amounts.ts'
import { Address } from './text.tsx'

type OwnerEvent = Schema['OwnerEvent']

const MODES: Record<string, string> = { trade: 'may trade', reduceOnly: 'may only reduce', stopped: 'is stopped' }

/** What an owner signed, as the chain executed it. */
export function OwnerEventWords({
  event: { type, mandate, to, signer, fromNonce, untilNonce },
}: {
  event: OwnerEvent
}) {
  switch (type) {
    case 'MandateUpdated':
      return <>Mandate set{mandate && <span class="sub">{mandateText(mandate)}</span>}</>
    case 'BuyingStopped':
      return <>Buying stopped</>
    case 'CloseAllStarted':
      return <>Stopped, and everything to be sold</>
    case 'CloseAllEnded':
      return <>Selling everything ended</>
    case 'OwnershipOffered':
      return to ? (
        <>
          Offered to <Address value={to} />
        </>
      ) : (
        <>Offer withdrawn</>
      )
    case 'AgentOwnershipTransferred':
      return to ? (
        <>
          Taken over by <Address value={to} />
        </>
      ) : (
        <>Taken over</>
      )
    case 'AgentSignerUpdated':
      return signer ? (
        <>
          Signer replaced by <Address value={signer} />
        </>
      ) : (
        <>Signer replaced</>
      )
    case 'IntentsCancelled':
      return (
        <>
          Intents cancelled
          <span class="sub">
            nonces from {fromNonce} to before {untilNonce}
          </span>
        </>
      )
  }
}

function mandateText({
  mode,
  maxTradeUsdc,
  maxDailyTurnoverUsdc,
  maxExposureUsdc,
  allowedTokens,
}: NonNullable<OwnerEvent['mandate']>): string {
  const limits: [string, string | null][] = [
    ['one trade', maxTradeUsdc],
    ['24 hours', maxDailyTurnoverUsdc],
    ['exposure', maxExposureUsdc],
  ]
  return [
    MODES[mode] ?? mode,
    ...limits.flatMap(([what, base]) => (base === null ? [] : [`${what} at most ${formatUsdc(base)} USDC`])),
    ...(allowedTokens === null ? [] : [`${allowedTokens.length} ${allowedTokens.length === 1 ? 'token' : 'tokens'}`]),
  ].join(', ')
}
