import type { Address, Hex } from 'viem'
import type { Call, IntentKind, PricesOfCall, RelayRequest } from './relay-types.ts'
import { groupOf, partyOf, signerOf } from './requester.ts'

/**
 * `received`: being checked. `prepared`: signed and journalled. `sent`: a node accepted the transaction. `mined`:
 * executed. `final`: executed, in a final block. `reverted`: mined without effect. `rejected`: nothing was executed.
 */
export type IntentState = 'received' | 'prepared' | 'sent' | 'mined' | 'final' | 'reverted' | 'rejected'

/** Called with every intent whose state changes, and its new state. */
export type OnChange = (digest: Hex, state: IntentState) => void

/** An admitted request, with every account that pays for its gas. */
export type AdmittedRequest = Pick<
  JournalIntent,
  'digest' | 'kind' | 'group' | 'groupNonce' | 'call' | 'prices' | 'party' | 'signer' | 'note' | 'bodyHash'
> & { deadline: bigint; spenders: readonly string[] }

/** Returns a request as the journal records it. */
export const toAdmitted = (request: RelayRequest, spenders: readonly string[]): AdmittedRequest => ({
  ...request,
  group: groupOf(request),
  prices: request.prices,
  party: partyOf(request.by),
  signer: signerOf(request.by) ?? null,
  note: request.note ?? null,
  bodyHash: request.bodyHash ?? null,
  spenders,
})

/** A row of the journal's intent table. Times are milliseconds; the deadline is in Unix seconds. */
export type JournalIntent = {
  digest: Hex
  kind: IntentKind
  group: string
  groupNonce: string
  deadline: number
  call: Call
  /** The prices that the call brings along each time it is signed; undefined if it needs none. */
  prices: PricesOfCall | undefined
  /** The accounts that pay for its gas. */
  spenders: string[]
  /** Whose reverts it counts among. */
  party: string
  /** The account that signed it; null for the service's own transactions. */
  signer: Address | null
  /** What the signer says about a trade. */
  note: string | null
  /** The hash of everything that was posted; null for the service's own transactions. */
  bodyHash: Hex | null
  state: IntentState
  revertData: Hex | null
  reason: string | null
  blockNumber: number | null
  createdAt: number
  updatedAt: number
}

type IntentResult = Pick<JournalIntent, 'state' | 'revertData' | 'reason' | 'blockNumber' | 'updatedAt'>

/** An intent without what is large. */
export type IntentSummary = Omit<JournalIntent, 'call' | 'prices'>

const DAY_SECONDS = 86_400
/** A signed body may have any deadline. Its row is kept as if the deadline were at most this far away. */
const MAX_DEADLINE_SECONDS = 7 * DAY_SECONDS
/** Deadlines are stored as integers that JavaScript represents exactly. */
const MAX_STORED_DEADLINE = 2n ** 52n
/** Rejected simulations cost nothing, so that their rows are few and short-lived. */
const REJECTED_RETENTION_SECONDS = 3_600
const MAX_REJECTED_PER_GROUP = 16
/** Marks the row of an intent that was never signed. */
const NO_CALLDATA = '0x'

/** The attempts of an intent. */
const ATTEMPTS = `json_each(intent.nonces) AS signed CROSS JOIN attempt
  ON attempt.nonce = signed.value AND attempt.digest = intent.digest`

/**
 * Selects the call of an intent that is in a block and succeeded. After a reorg another attempt may be included too,
 * and revert.
 */
const EXECUTION = `FROM ${ATTEMPTS} WHERE purpose = 'call' AND attempt.state = 'mined'`
const IS_EXECUTED = `EXISTS (SELECT 1 ${EXECUTION})`
/** Selects open intents; ? is the nonce up to which everything is final. */
const IS_UNSETTLED = `state IN ('prepared', 'sent') AND NOT ${IS_EXECUTED}
  AND digest IN (SELECT digest FROM attempt WHERE nonce > ? AND attempt.state IN ('pending', 'replaced'))`
const HAS_PENDING_ATTEMPT = `EXISTS (SELECT 1 FROM ${ATTEMPTS} WHERE attempt.state = 'pending')`

const HOLDS_NONCE = `state NOT IN ('rejected', 'reverted')`

/** How many intents each pass of pruning looks at. */
const PRUNED_AT_A_TIME = 2_000

const storedDeadlineOf = (deadline: bigint) => Number(deadline > MAX_STORED_DEADLINE ? MAX_STORED_DEADLINE : deadline)

/** The block of an intent's execution and when it was recorded, as JSON; null without one. */
const EXECUTED = `(SELECT json_array(attempt.block_number, attempt.included_at) ${EXECUTION}) AS executed`

const SUMMARY_COLUMNS = `digest, kind, "group", group_nonce AS groupNonce, deadline, nonces, spenders, party, signer, note,
  body_hash AS bodyHash, state, revert_data AS revertData, reason, block_number AS blockNumber,
  created_at AS createdAt, updated_at AS updatedAt, ${EXECUTED}`
type SummaryRow = Omit<IntentSummary, 'spenders'> & { spenders: string; nonces: string; executed: string | null }
type IntentRow = SummaryRow & { target: Address; data: Hex; prices: string | null }

/**
 * Returns the queries of the intent table. An intent is mined if one of its calls is, whatever its own row says, and
 * final if its nonces are: an inclusion writes only the attempt.
 */
export function intentTable(
  sql: SqlStorage,
  { finalNonce, onChange }: { finalNonce: () => number; onChange: OnChange },
) {
  /** The last intent that pruning looked at. */
  let prunedThrough = ''
  const select = (query: string, ...bindings: SqlStorageValue[]): JournalIntent[] =>
    sql
      .exec<IntentRow>(`SELECT ${SUMMARY_COLUMNS}, target, data, prices FROM intent WHERE ${query}`, ...bindings)
      .toArray()
      .map(({ target, data, prices, ...row }) => ({
        ...toSummary(row),
        call: { to: target, data },
        prices: prices === null ? undefined : (JSON.parse(prices) as PricesOfCall),
      }))

  const toSummary = ({ executed, nonces, spenders, ...stored }: SummaryRow): IntentSummary => ({
    ...stored,
    spenders: JSON.parse(spenders) as string[],
    ...(executed !== null && executionOf(executed, nonces)),
  })

  function executionOf(executed: string, nonces: string): IntentResult {
    const [blockNumber, updatedAt] = JSON.parse(executed) as [number, number]
    const isFinal = Math.max(...(JSON.parse(nonces) as number[])) <= finalNonce()
    return { state: isFinal ? 'final' : 'mined', revertData: null, reason: null, blockNumber, updatedAt }
  }

  /** Records that intents were signed at account nonces, in one statement. */
  function prepare(requests: readonly (AdmittedRequest & { nonce: number })[]) {
    const now = Date.now()
    const nowSeconds = Math.floor(now / 1000)
    const rows = requests.map(request => {
      const { digest, kind, group, groupNonce, deadline, call, prices, party, signer, note, bodyHash, nonce } = request
      const deadlineSeconds = storedDeadlineOf(deadline)
      const pruneAt = Math.min(deadlineSeconds, nowSeconds + MAX_DEADLINE_SECONDS) + DAY_SECONDS
      const spenders = JSON.stringify(request.spenders)
      return [
        ...[digest, kind, group, groupNonce, deadlineSeconds, call.to, call.data],
        ...[pruneAt, spenders, party, signer, note, nonce, bodyHash, prices ? JSON.stringify(prices) : null],
      ]
    })
    sql.exec(
      `INSERT INTO intent (digest, kind, "group", group_nonce, deadline, target, data, prune_at, spenders, party, signer, note, nonces, body_hash, prices, state, created_at, updated_at)
       SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
         value ->> 9, value ->> 10, value ->> 11, json_array(value ->> 12), value ->> 13, value ->> 14, 'prepared', ?2, ?2
       FROM json_each(?1) WHERE true
       ON CONFLICT (digest) DO UPDATE SET target = excluded.target, data = excluded.data, prices = excluded.prices, state = excluded.state, revert_data = NULL,
         reason = NULL, block_number = NULL, updated_at = excluded.updated_at, prune_at = excluded.prune_at, spenders = excluded.spenders,
         note = coalesce(note, excluded.note), body_hash = excluded.body_hash, nonces = json_insert(nonces, '$[#]', excluded.nonces ->> 0)`,
      JSON.stringify(rows),
      now,
    )
    for (const { digest } of requests) onChange(digest, 'prepared')
  }

  return {
    find: (digest: Hex) => select('digest = ?', digest)[0],

    /** Returns several intents without their calls, in one statement. */
    findAll: (digests: readonly Hex[]) =>
      new Map(
        sql
          .exec<SummaryRow>(
            `SELECT ${SUMMARY_COLUMNS} FROM intent WHERE digest IN (SELECT value FROM json_each(?))`,
            JSON.stringify(digests),
          )
          .toArray()
          .map(row => [row.digest, toSummary(row)]),
      ),

    /**
     * Returns the intent with a request's digest, and the digest that holds its group nonce because it is in flight or
     * was executed. Whose nonce it is may have changed since the intent was recorded.
     */
    findWithHolder({ digest, groupNonce, ...request }: RelayRequest): { known?: JournalIntent; holder?: Hex } {
      const intents = select(
        `digest = ?1 OR ("group" = coalesce((SELECT "group" FROM intent WHERE digest = ?1), ?2) AND group_nonce = ?3
          AND ${HOLDS_NONCE})`,
        digest,
        groupOf(request),
        groupNonce,
      )
      const known = intents.find(intent => intent.digest === digest)
      const holder = intents.find(intent => intent.digest !== digest)?.digest
      return { ...(known && { known }), ...(holder !== undefined && { holder }) }
    },

    /**
     * Returns the digest of the intent with this body, if it is in flight or was executed. An intent of an agent's
     * signer is found by the nonce that it holds, so that only the others need an index of their own.
     */
    digestOfBody(bodyHash: Hex, { group, groupNonce }: Pick<JournalIntent, 'group' | 'groupNonce'>): Hex | undefined {
      const [found] = sql
        .exec<{ digest: string }>(
          `SELECT digest FROM intent WHERE body_hash = ?1 AND "group" = ?2 AND group_nonce = ?3 AND ${HOLDS_NONCE}
           UNION SELECT digest FROM intent WHERE body_hash = ?1 AND kind IN ('register', 'link', 'owner') AND ${HOLDS_NONCE}`,
          bodyHash,
          group,
          groupNonce,
        )
        .toArray()
      return found?.digest as Hex | undefined
    },

    /** Returns the notes of transactions that are not final. */
    openNotes: () =>
      sql
        .exec<{ hash: Hex; note: string }>(
          'SELECT hash, note FROM attempt JOIN intent USING (digest) WHERE nonce > ? AND note IS NOT NULL',
          finalNonce(),
        )
        .toArray(),

    /** Returns open intents, oldest first. Those have an attempt that is not final. */
    unsettled: () => select(`${IS_UNSETTLED} ORDER BY created_at`, finalNonce()),

    /** Returns open intents without a pending attempt: they need a new account nonce, or must be rejected. */
    withoutPendingAttempt: () => select(`${IS_UNSETTLED} AND NOT ${HAS_PENDING_ATTEMPT}`, finalNonce()),

    prepare,

    /**
     * Records a rejected simulation, unless the digest was executed, reverted or is in flight. It may be relayed again.
     * A new row has no calldata.
     */
    reject(request: RelayRequest, { data, reason }: { data?: Hex | undefined; reason?: string | undefined }) {
      const { digest, kind, group, groupNonce, deadline, call, party, signer } = toAdmitted(request, [])
      const now = Date.now()
      const pruneAt = Math.floor(now / 1000) + REJECTED_RETENTION_SECONDS
      sql.exec(
        `INSERT INTO intent (digest, kind, "group", group_nonce, deadline, target, data, state, revert_data, reason, created_at, updated_at, prune_at, party, signer)
         VALUES (?, ?, ?, ?, ?, ?, ?, 'rejected', ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (digest) DO UPDATE SET revert_data = excluded.revert_data, reason = excluded.reason,
           updated_at = excluded.updated_at, prune_at = MAX(prune_at, excluded.prune_at) WHERE state = 'rejected'`,
        digest,
        kind,
        group,
        groupNonce,
        storedDeadlineOf(deadline),
        call.to,
        NO_CALLDATA,
        data ?? null,
        reason ?? null,
        now,
        now,
        pruneAt,
        party,
        signer,
      )
      sql.exec(
        `DELETE FROM intent WHERE digest IN
         (SELECT digest FROM intent WHERE "group" = ? AND state = 'rejected' AND data = '${NO_CALLDATA}'
          ORDER BY updated_at DESC LIMIT -1 OFFSET ${MAX_REJECTED_PER_GROUP})`,
        group,
      )
      onChange(digest, 'rejected')
    },

    /** Writes a state, unless the intent's call is mined. */
    setState(
      digest: Hex,
      state: Exclude<IntentState, 'mined' | 'final'>,
      facts: { revertData?: Hex; reason?: string; blockNumber?: number } = {},
    ) {
      sql.exec(
        `UPDATE intent SET state = ?1, revert_data = ?2, reason = ?3, block_number = ?4, updated_at = ?5
         WHERE digest = ?6 AND NOT ${IS_EXECUTED}`,
        state,
        facts.revertData ?? null,
        facts.reason ?? null,
        facts.blockNumber ?? null,
        Date.now(),
        digest,
      )
      onChange(digest, state)
    },

    /** Records that calls reverted, or succeeded after an earlier one had ended their intent, after their attempts. */
    include(inclusions: readonly { digest: Hex; state: 'mined' | 'reverted'; blockNumber: number }[]) {
      sql.exec(
        `UPDATE intent SET state = iif(value ->> 1 = 'mined', 'sent', 'reverted'), block_number = value ->> 2, revert_data = NULL,
           reason = NULL, updated_at = ?2
         FROM json_each(?1) WHERE digest = value ->> 0
           AND iif(value ->> 1 = 'mined', state IN ('reverted', 'rejected'), NOT ${IS_EXECUTED})`,
        JSON.stringify(inclusions.map(({ digest, state, blockNumber }) => [digest, state, blockNumber])),
        Date.now(),
      )
      for (const { digest, state } of inclusions) onChange(digest, state)
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
      onChange(digest, 'sent')
    },

    /**
     * Looks at the next intents in the order of their digests, and deletes those that are finished and whose retention
     * has ended. Returns their digests and nonces.
     */
    prune(): { digest: Hex; nonces: string }[] {
      const [last] = sql
        .exec<{ digest: string }>(
          'SELECT digest FROM intent WHERE digest > ? ORDER BY digest LIMIT 1 OFFSET ?',
          prunedThrough,
          PRUNED_AT_A_TIME - 1,
        )
        .toArray()
      const [from, through] = [prunedThrough, last?.digest ?? 'g'] // digests are hexadecimal
      prunedThrough = last?.digest ?? ''
      const prunable = sql
        .exec<{ digest: Hex; nonces: string }>(
          `SELECT digest, nonces FROM intent WHERE digest > ? AND digest <= ? AND prune_at < ?
           AND iif(${IS_EXECUTED}, nonces ->> '$[#-1]' <= ?, state IN ('reverted', 'rejected')) AND NOT ${HAS_PENDING_ATTEMPT}`,
          from,
          through,
          Math.floor(Date.now() / 1000),
          finalNonce(),
        )
        .toArray()
      if (prunable.length > 0)
        sql.exec(
          'DELETE FROM intent WHERE digest IN (SELECT value FROM json_each(?))',
          JSON.stringify(prunable.map(({ digest }) => digest)),
        )
      return prunable
    },

    /** Whether there is nothing to prune, now or later. */
    isEmpty: (): boolean => sql.exec('SELECT 1 FROM intent LIMIT 1').toArray().length === 0,
  }
}
