import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { formatUsdc } from '../../format/amounts.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { Address, TransactionLink } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'

type OwnerEvent = Schema['OwnerEvent']

const PAGE_SIZE = 10
const MODES: Record<string, string> = { trade: 'may trade', reduceOnly: 'may only reduce', stopped: 'is stopped' }

/** What the owner of an agent has signed and the chain has executed, newest first. */
export function PastMessages({ agentId }: { agentId: string }) {
  const page = useListPage('messages')
  const { cursor } = page
  const list = useRead('listOwnerEvents', { agentId, limit: PAGE_SIZE, ...(cursor && { cursor }) })
  return (
    <Panel title="Past messages" flush>
      <WhenReady resource={list} what="the past messages">
        {({ events, nextCursor }) => (
          <>
            {events.length === 0 ? (
              <Empty title="The owner has not signed anything yet." />
            ) : (
              <DataTable label="Past messages" columns={COLUMNS} rows={events} keyOf={({ id }) => id} />
            )}
            <Pages page={page} nextCursor={nextCursor} />
          </>
        )}
      </WhenReady>
    </Panel>
  )
}

const COLUMNS: Column<OwnerEvent>[] = [
  { head: 'Message', part: 'name', wraps: true, cell: event => <OwnerEventWords event={event} /> },
  { head: 'Time', cell: ({ timestamp }) => <Time value={timestamp} /> },
  { head: 'Transaction', cell: ({ transactionHash }) => <TransactionLink hash={transactionHash} /> },
]

/** What an owner signed, as the chain executed it. */
function OwnerEventWords({ event: { type, mandate, to, signer, fromNonce, untilNonce } }: { event: OwnerEvent }) {
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
