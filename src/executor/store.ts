import { type Attempt, attemptTable } from './attempt-table.ts'
import { gasLevelTable } from './gas-budgets.ts'
import { type AdmittedRequest, intentTable, type OnChange } from './intent-table.ts'

export type Journal = ReturnType<typeof openJournal>

// A stored row costs as much as each entry of an index, so an index is here only if a query needs it for every intent.
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS lane (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  -- Reverts of one party count together. nonces lists the account nonces at which the call was signed, in ascending order.
  CREATE TABLE IF NOT EXISTS intent (
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, "group" TEXT NOT NULL, group_nonce TEXT NOT NULL, deadline INTEGER NOT NULL,
    nonces TEXT NOT NULL DEFAULT '[]', state TEXT NOT NULL, revert_data TEXT, reason TEXT, block_number INTEGER,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, prune_at INTEGER NOT NULL, spenders TEXT NOT NULL DEFAULT '[]',
    party TEXT NOT NULL, signer TEXT, note TEXT, target TEXT NOT NULL, data TEXT NOT NULL
  ) WITHOUT ROWID;
  -- levels: the gas levels of the accounts that its inclusion charged, as JSON. included_at: when that was recorded.
  CREATE TABLE IF NOT EXISTS attempt (
    nonce INTEGER NOT NULL, hash TEXT NOT NULL, digest TEXT, purpose TEXT NOT NULL, gas INTEGER NOT NULL, max_fee TEXT NOT NULL,
    sent_at INTEGER NOT NULL, state TEXT NOT NULL, block_number INTEGER, block_hash TEXT, gas_used INTEGER NOT NULL DEFAULT 0,
    included_at INTEGER, levels TEXT, raw TEXT NOT NULL, PRIMARY KEY (nonce, hash)
  ) WITHOUT ROWID;
  -- What failed simulations charged.
  CREATE TABLE IF NOT EXISTS gas_level (
    account TEXT PRIMARY KEY, minute REAL NOT NULL, sustained REAL NOT NULL, updated_at INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS intent_group ON intent ("group", group_nonce);
  CREATE INDEX IF NOT EXISTS intent_rejected ON intent ("group", updated_at) WHERE state = 'rejected' AND data = '0x';
  CREATE INDEX IF NOT EXISTS attempt_hash ON attempt (hash);
  CREATE INDEX IF NOT EXISTS attempt_filler ON attempt (sent_at) WHERE digest IS NULL;
  CREATE INDEX IF NOT EXISTS attempt_reverted ON attempt (sent_at, digest) WHERE state = 'reverted';
`
/** Upgrades of the first version's schema, each of which runs once. A released step never changes. */
const UPGRADES = [
  `ALTER TABLE intent ADD COLUMN body_hash TEXT;
   CREATE INDEX intent_body ON intent (body_hash) WHERE kind IN ('register', 'link', 'owner');`,
  'ALTER TABLE intent ADD COLUMN prices TEXT;',
]

/**
 * Facts about the lane itself. `foreign` lists when others used its key (milliseconds) and for which nonce, as a
 * JSON array;
 * `price refresh` is when prices were last refreshed, in milliseconds; `nonce` is the account's next nonce, for when no
 * attempt shows it; `final nonce` is the nonce up to which everything is final; `upgrades` is how many have run;
 * `restored` is when the lane first ran on a restored backup, in milliseconds, and empty until it does.
 */
type LaneFact = 'address' | 'foreign' | 'price refresh' | 'nonce' | 'final nonce' | 'upgrades' | 'restored'

/**
 * Opens the lane's journal. Every function is synchronous: writes of one turn of the event loop are durable before any
 * byte leaves the object.
 */
export function openJournal(sql: SqlStorage, onChange: OnChange) {
  sql.exec(SCHEMA)
  /** The facts that were read or written since the start. */
  const facts = new Map<LaneFact, string | undefined>()

  function get(name: LaneFact): string | undefined {
    if (!facts.has(name))
      facts.set(name, sql.exec<{ value: string }>('SELECT value FROM lane WHERE name = ?', name).toArray()[0]?.value)
    return facts.get(name)
  }
  function set(name: LaneFact, value: string) {
    if (get(name) === value) return
    sql.exec('INSERT INTO lane VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2', name, value)
    facts.set(name, value)
  }

  const done = Number(get('upgrades') ?? 0)
  for (const upgrade of UPGRADES.slice(done)) sql.exec(upgrade)
  set('upgrades', `${Math.max(done, UPGRADES.length)}`) // a later version may have been here, and may come back
  if (get('restored') === '') set('restored', `${Date.now()}`)

  const finalNonce = () => Number(get('final nonce') ?? -1)
  const intents = intentTable(sql, { finalNonce, onChange })
  const attempts = attemptTable(sql, finalNonce)
  const gasLevels = gasLevelTable(sql, attempts)

  /** Stores the account's next nonce, for when no attempt shows it. Ignores a lower one than before. */
  function setNextNonce(nonce: number) {
    if (nonce > Number(get('nonce') ?? 0)) set('nonce', `${nonce}`)
  }

  return {
    intents,
    attempts,
    gasLevels,

    get,
    set,

    /** Records intents together with their first attempts, in two statements, or more if they are large. */
    prepare(signed: readonly { request: AdmittedRequest; attempt: Attempt }[]) {
      for (const part of inParts(signed)) {
        intents.prepare(part.map(({ request, attempt: { nonce } }) => ({ ...request, nonce })))
        attempts.insert(part.map(({ attempt }) => attempt))
      }
    },

    /**
     * Makes everything mined up to the given block final. Finality advances in the order of nonces, so one number says
     * what is final, and nothing is written for each intent.
     */
    finalize(blockNumber: number) {
      const from = finalNonce()
      const to = attempts.lastNonceBefore(blockNumber)
      if (to <= from) return
      const digests = attempts.digestsAt(from + 1, to)
      set('final nonce', `${to}`)
      for (const { digest, state } of intents.findAll(digests).values()) if (state === 'final') onChange(digest, state)
    },

    setNextNonce,

    /** Deletes finished rows whose retention has ended: of some intents per call, in turn, and of everything else. */
    prune() {
      const highest = attempts.highestNonce()
      attempts.prune(intents.prune())
      if (attempts.highestNonce() < highest) setNextNonce(highest + 1)
      gasLevels.prune()
    },
  }
}

/** SQLite in Durable Objects accepts values of at most 2 MB. */
const MAX_CHARACTERS_PER_STATEMENT = 1_000_000

/** Splits attempts so that the rows of each part fit into one bound value. A part has at least one attempt. */
function inParts<Signed extends { attempt: Attempt }>(signed: readonly Signed[]): Signed[][] {
  const parts: Signed[][] = []
  let size = Number.POSITIVE_INFINITY
  for (const one of signed) {
    const { length } = one.attempt.raw
    if (size + length > MAX_CHARACTERS_PER_STATEMENT) {
      parts.push([])
      size = 0
    }
    size += length
    parts.at(-1)?.push(one)
  }
  return parts
}
