import { useEffect, useState } from 'preact/hooks'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Tokens, Usdc } from '../../parts/figures.tsx'
import { Facts, Panel } from '../../parts/panel.tsx'
import { Empty, Loading } from '../../parts/states.tsx'
import { TransactionLink } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'
import {
  type Lock,
  locksThatHold,
  type Move,
  readRecord,
  resultOf,
  type VaultRecord,
} from '../../wallet/vault-record.ts'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { HoldingsState } from './use-holdings.ts'

const MAX_MOVES = 12

/** What the account has paid in, got back and gained, when its shares unlock, and each deposit and withdrawal. */
export function Result({ vault, holdings: { figures, ready } }: { vault: string; holdings: HoldingsState }) {
  const [record, setRecord] = useState<VaultRecord | 'unreadable'>()
  const shares = figures?.shares

  useEffect(() => {
    if (ready === undefined || shares === undefined) return
    let isCurrent = true
    readRecord(ready, vault)
      .catch(() => 'unreadable' as const)
      .then(read => isCurrent && setRecord(read))
    return () => {
      isCurrent = false
    }
  }, [ready, vault, shares])

  if (figures === undefined || record === undefined || record === 'unreadable' || record.moves.length === 0)
    return (
      <Panel title="Your result">
        {figures === undefined || record === undefined ? (
          <Loading what="your deposits" lines={4} />
        ) : record === 'unreadable' ? (
          <p class="note-line warn">The wallet's node does not search the vault's log, so your result is unknown.</p>
        ) : (
          <Empty title="No deposit of this account yet." />
        )}
      </Panel>
    )
  const { moves, locks } = record
  const { deposited, withdrawn, profit } = resultOf(moves, figures)
  const holding = locksThatHold(locks, figures.lockedShares)
  const [last, first] = [holding[0], holding.at(-1)]
  return (
    <>
      <Panel title="Your result">
        <Facts
          items={[
            ['Deposited', <Usdc key="deposited" value={`${deposited}`} />],
            ['Withdrawn', <Usdc key="withdrawn" value={`${withdrawn}`} />],
            [
              'Profit since the first deposit',
              profit === undefined ? 'unknown' : <Usdc key="profit" value={`${profit}`} signed />,
            ],
            ['Shares unlock', first && last ? <Unlocking key="unlock" first={first} last={last} /> : 'none is locked'],
          ]}
        />
        <p class="fine">
          {profit === undefined
            ? 'Shares of this account also came or went without a deposit or a withdrawal.'
            : 'What the shares are worth after the fee, and what was withdrawn, less what was deposited.'}
        </p>
      </Panel>
      <Panel
        title="Your deposits and withdrawals"
        flush
        aside={moves.length > MAX_MOVES && `The newest ${MAX_MOVES} of ${moves.length}`}
      >
        <DataTable
          label="Deposits and withdrawals"
          columns={COLUMNS}
          rows={moves.slice(0, MAX_MOVES)}
          keyOf={({ kind, hash, shares }) => `${kind} ${hash} ${shares}`}
        />
      </Panel>
    </>
  )
}

const Unlocking = ({ first, last }: { first: Lock; last: Lock }) => (
  <>
    <Time value={first.unlocksAt} withSeconds />
    {first.unlocksAt !== last.unlocksAt && (
      <>
        {' to '}
        <Time value={last.unlocksAt} withSeconds />
      </>
    )}
  </>
)

const COLUMNS: Column<Move>[] = [
  { head: 'Transaction', part: 'name', cell: ({ hash }) => <TransactionLink hash={hash} /> },
  { head: 'What', cell: ({ kind }) => kind },
  { head: 'Amount', part: 'lead', isNumber: true, cell: ({ usdc }) => <Usdc value={`${usdc}`} /> },
  {
    head: 'Shares',
    part: 'wide',
    isNumber: true,
    cell: ({ shares }) => <Tokens value={`${shares}`} decimals={SHARE_DECIMALS} symbol="shares" />,
  },
  { head: 'Block', isNumber: true, cell: ({ blockNumber }) => blockNumber.toLocaleString('en') },
]
