import type { Address, Hex } from 'viem'
import type { IntentState } from './intent-record.ts'
import type { Call, IntentKind, RelayRequest } from './relay-types.ts'

/** An admitted request, with every account that pays for its gas. */
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
/** A signed body may have any deadline. Its row is kept as if the deadline were at most this far away. */
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

  /** Writes intents of one state, in one statement. */
  function write(requests: readonly AdmittedRequest[], state: IntentState) {
    const now = Date.now()
    const nowSeconds = Math.floor(now / 1000)
    const rows = requests.map(({ digest, kind, group, groupNonce, deadline, call, spenders }) => {
      const deadlineSeconds = Number(deadline > MAX_STORED_DEADLINE ? MAX_STORED_DEADLINE : deadline)
      const pruneAt = Math.min(deadlineSeconds, nowSeconds + MAX_DEADLINE_SECONDS) + DAY_SECONDS
      return [digest, kind, group, groupNonce, deadlineSeconds, call.to, call.data, pruneAt, JSON.stringify(spenders)]
    })
    sql.exec(
      `INSERT INTO intent (digest, kind, "group", group_nonce, deadline, target, data, prune_at, spenders, state, created_at, updated_at)
       SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8, ?2, ?3, ?3
       FROM json_each(?1) WHERE true
       ON CONFLICT (digest) DO UPDATE SET target = excluded.target, data = excluded.data, state = excluded.state, revert_data = NULL,
         reason = NULL, block_number = NULL, updated_at = excluded.updated_at, prune_at = excluded.prune_at, spenders = excluded.spenders`,
      JSON.stringify(rows),
      state,
      now,
    )
    for (const { digest } of requests) onChange(digest)
  }

  return {
    find: (digest: Hex) => select('digest = ?', digest)[0],

    /** Returns several intents, in one statement. */
    findAll: (digests: readonly Hex[]) =>
      new Map(
        select('digest IN (SELECT value FROM json_each(?))', JSON.stringify(digests)).map(intent => [
          intent.digest,
          intent,
        ]),
      ),

    /**
     * Returns the intent with a request's digest, and the digest that holds the request's group nonce because it is in
     * flight or was executed.
     */
    findWithHolder({ digest, group, groupNonce }: RelayRequest): { known?: JournalIntent; holder?: Hex } {
      const intents = select(
        `digest = ?1 OR ("group" = ?2 AND group_nonce = ?3 AND state NOT IN ('rejected', 'reverted'))`,
        digest,
        group,
        groupNonce,
      )
      const known = intents.find(intent => intent.digest === digest)
      const holder = intents.find(intent => intent.digest !== digest)?.digest
      return { ...(known && { known }), ...(holder !== undefined && { holder }) }
    },

    unsettled: () => select(`state IN ('prepared', 'sent') ORDER BY created_at`),

    /** Returns open intents without a pending attempt: they need a new account nonce, or must be rejected. */
    withoutPendingAttempt: () =>
      select(
        `state IN ('prepared', 'sent')
         AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.digest = intent.digest AND attempt.state = 'pending')`,
      ),

    /** Records that intents were signed. */
    prepare: (requests: readonly AdmittedRequest[]) => write(requests, 'prepared'),

    /** Records a rejected simulation. The same digest may be relayed again. */
    reject(request: RelayRequest, { data, reason }: { data?: Hex | undefined; reason?: string | undefined }) {
      write([{ ...request, spenders: [] }], 'rejected')
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

    /** Records that the calls of intents were mined, in one statement. */
    include(inclusions: readonly { digest: Hex; state: 'mined' | 'reverted'; blockNumber: number }[]) {
      sql.exec(
        `UPDATE intent SET state = value ->> 1, block_number = value ->> 2, revert_data = NULL, reason = NULL, updated_at = ?2
         FROM json_each(?1) WHERE digest = value ->> 0`,
        JSON.stringify(inclusions.map(({ digest, state, blockNumber }) => [digest, state, blockNumber])),
        Date.now(),
      )
      for (const { digest } of inclusions) onChange(digest)
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

    /** Deletes finished intents whose retention has ended. */
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
