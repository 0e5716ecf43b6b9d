import type { Address, Hex } from 'viem'
import type { IntentState } from './intent-record.ts'
import type { Call, IntentKind, RelayRequest } from './relay-types.ts'

/** A request that was admitted, with every account that pays for its gas. */
export type AdmittedRequest = Omit<RelayRequest, 'spenders'> & { spenders: readonly string[] }

/** A row of the journal's intent table. Times are milliseconds; the deadline is in Unix seconds. */
export type JournalIntent = {
  digest: Hex
  kind: IntentKind
  group: string
  groupNonce: string
  deadline: number
  call: Call
  /** The accounts that pay for its gas. */
  spenders: string[]
  state: IntentState
  revertData: Hex | null
  reason: string | null
  blockNumber: number | null
  createdAt: number
  updatedAt: number
}

const DAY_SECONDS = 86_400
/** A signed body may name any deadline. Its row is kept as if the deadline were at most this far away. */
const MAX_DEADLINE_SECONDS = 7 * DAY_SECONDS
/** Deadlines are stored as integers that JavaScript represents exactly. */
const MAX_STORED_DEADLINE = 2n ** 52n

type IntentRow = Record<string, SqlStorageValue>

/** Returns the queries of the intent table. `onChange` is called with the digest of every intent whose state changes. */
export function intentTable(sql: SqlStorage, onChange: (digest: Hex) => void) {
  const select = (query: string, ...bindings: SqlStorageValue[]): JournalIntent[] =>
    sql
      .exec<IntentRow>(`SELECT * FROM intent WHERE ${query}`, ...bindings)
      .toArray()
      .map(toIntent)

  function write({ digest, kind, group, groupNonce, deadline, call, spenders }: AdmittedRequest, state: IntentState) {
    const now = Date.now()
    const nowSeconds = Math.floor(now / 1000)
    const deadlineSeconds = Number(deadline > MAX_STORED_DEADLINE ? MAX_STORED_DEADLINE : deadline)
    const pruneAt = Math.min(deadlineSeconds, nowSeconds + MAX_DEADLINE_SECONDS) + DAY_SECONDS
    sql.exec(
      `INSERT INTO intent (digest, kind, "group", group_nonce, deadline, target, data, state, created_at, updated_at, prune_at, spenders)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11)
       ON CONFLICT (digest) DO UPDATE SET target = ?6, data = ?7, state = ?8, revert_data = NULL, reason = NULL,
         block_number = NULL, updated_at = ?9, prune_at = ?10, spenders = ?11`,
      digest,
      kind,
      group,
      groupNonce,
      deadlineSeconds,
      call.to,
      call.data,
      state,
      now,
      pruneAt,
      JSON.stringify(spenders),
    )
    onChange(digest)
  }

  return {
    find: (digest: Hex) => select('digest = ?', digest)[0],

    /** Returns the digest that holds a group's nonce: one that is in flight or was executed. */
    holderOf(group: string, groupNonce: string): Hex | undefined {
      const [holder] = select(
        `"group" = ? AND group_nonce = ? AND state NOT IN ('rejected', 'reverted')`,
        group,
        groupNonce,
      )
      return holder?.digest
    },

    unsettled: () => select(`state IN ('prepared', 'sent') ORDER BY created_at`),

    /** Returns unsettled intents without a pending attempt: they need a new account nonce, or must be rejected. */
    withoutPendingAttempt: () =>
      select(
        `state IN ('prepared', 'sent')
         AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.digest = intent.digest AND attempt.state = 'pending')`,
      ),

    /** Records that an intent was signed. */
    prepare: (request: AdmittedRequest) => write(request, 'prepared'),

    /** Records a rejected simulation. The same digest may be relayed again. */
    reject(request: RelayRequest, { data, reason }: { data?: Hex | undefined; reason?: string | undefined }) {
      write({ ...request, spenders: [] }, 'rejected')
      sql.exec(
        'UPDATE intent SET revert_data = ?, reason = ? WHERE digest = ?',
        data ?? null,
        reason ?? null,
        request.digest,
      )
    },

    setState(digest: Hex, state: IntentState, facts: { revertData?: Hex; reason?: string; blockNumber?: number } = {}) {
      sql.exec(
        'UPDATE intent SET state = ?, revert_data = ?, reason = ?, block_number = ?, updated_at = ? WHERE digest = ?',
        state,
        facts.revertData ?? null,
        facts.reason ?? null,
        facts.blockNumber ?? null,
        Date.now(),
        digest,
      )
      onChange(digest)
    },

    setReason(digest: Hex, reason: string) {
      sql.exec('UPDATE intent SET reason = ? WHERE digest = ?', reason, digest)
    },

    /** Records that a node accepted a transaction of the intent. */
    markSent(digest: Hex) {
      sql.exec(
        `UPDATE intent SET state = 'sent', updated_at = ? WHERE digest = ? AND state = 'prepared'`,
        Date.now(),
        digest,
      )
      onChange(digest)
    },

    /** Deletes settled intents whose retention has ended. */
    prune() {
      sql.exec(
        `DELETE FROM intent WHERE prune_at < ? AND state NOT IN ('prepared', 'sent', 'mined')`,
        Math.floor(Date.now() / 1000),
      )
    },

    /** Returns when the next row may be deleted, in Unix seconds. */
    nextPruneAt(): number | undefined {
      const { at } = sql.exec<{ at: number | null }>('SELECT MIN(prune_at) AS at FROM intent').one()
      return at ?? undefined
    },
  }
}

const toIntent = (row: IntentRow): JournalIntent => ({
  digest: row.digest as Hex,
  kind: row.kind as IntentKind,
  group: row.group as string,
  groupNonce: row.group_nonce as string,
  deadline: row.deadline as number,
  call: { to: row.target as Address, data: row.data as Hex },
  spenders: JSON.parse(row.spenders as string) as string[],
  state: row.state as IntentState,
  revertData: row.revert_data as Hex | null,
  reason: row.reason as string | null,
  blockNumber: row.block_number as number | null,
  createdAt: row.created_at as number,
  updatedAt: row.updated_at as number,
})
