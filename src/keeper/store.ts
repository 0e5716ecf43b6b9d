import type { Address, Hex } from 'viem'
import type { Market } from '../chain/watched-positions.ts'
import type { KeeperEntry } from './keeper-entry.ts'
import type { Evaluation } from './last-evaluation.ts'
import type { ExitOutcome } from './last-exit-result.ts'

/** Exits that were handed to the lane in one transaction. `evaluations` are in the order of the positions. */
export type ExitBatch = {
  digest: Hex
  positionIds: bigint[]
  /** Unix seconds. */
  deadline: bigint
  takesBatches: boolean
  evaluations: Evaluation[]
}

/**
 * What the last cycle saw: block, its time in Unix seconds, prices with 8 decimals by token, and why the positions of a
 * market wait although nothing has failed, by `marketKey`.
 */
export type LastCycle = {
  blockNumber: string
  at: string
  prices: Record<string, string>
  deferrals?: Record<string, ExitOutcome & { kind: 'deferred' }>
}

export const marketKey = ({ token, vault }: Market): string => `${token} ${vault}`

export type KeeperStore = ReturnType<typeof openKeeperStore>

/** A closed position is read for this much longer, because a reorg may open it again or change who closed it. */
const REORG_WATCH_MS = 60_000
/** A closed position is compared with the chain for this much longer. */
const CLOSED_SWEEP_MS = 6 * 3_600_000
const CLOSED_RETENTION_MS = 7 * 86_400_000
/** The events of an executed exit are read again for this long, because a reorg may change who fired it. */
const EXIT_WATCH_SECONDS = 60
/** A position that is read in every cycle, or in turns with others if there are many. */
const ALWAYS = Number.MAX_SAFE_INTEGER
/** The most positions of each kind that a cycle reads without a reached price; more would take too long. */
const MAX_WATCHED = 600
/** Prices are stored as text with this many digits, which sorts like the numbers. */
const PRICE_DIGITS = 32

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS keeper (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS position (
    id INTEGER PRIMARY KEY, token TEXT NOT NULL, fired INTEGER NOT NULL, closed_at INTEGER, tried_round TEXT, failures INTEGER NOT NULL DEFAULT 0,
    next_try_at INTEGER NOT NULL DEFAULT 0, evaluation TEXT, outcome TEXT
  );
  CREATE INDEX IF NOT EXISTS position_closed ON position (closed_at);
  CREATE TABLE IF NOT EXISTS market (token TEXT NOT NULL, vault TEXT NOT NULL, PRIMARY KEY (token, vault)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS exit_batch (
    digest TEXT PRIMARY KEY, ids TEXT NOT NULL, deadline INTEGER NOT NULL, takes_batches INTEGER NOT NULL, evaluation TEXT NOT NULL
  ) WITHOUT ROWID;
`

/** Version 1 used other names for the table of batches, the last cycle and the discriminant of an outcome. */
const UPGRADE_FROM_VERSION_1 = `
  ALTER TABLE sending RENAME TO exit_batch;
  UPDATE keeper SET name = 'last_cycle' WHERE name = 'look';
  UPDATE position SET outcome = json_remove(json_set(outcome, '$.kind', json_extract(outcome, '$.is')), '$.is')
    WHERE outcome IS NOT NULL;
`

/**
 * Version 3 selects positions by price. Each position of an earlier version is read in every cycle until it has been read
 * once: watched_until is in Unix seconds of the chain.
 */
const UPGRADE_FROM_VERSION_2 = `
  ALTER TABLE position ADD COLUMN vault TEXT NOT NULL DEFAULT '';
  ALTER TABLE position ADD COLUMN agent INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE position ADD COLUMN below TEXT;
  ALTER TABLE position ADD COLUMN above TEXT;
  ALTER TABLE position ADD COLUMN any_price INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE position ADD COLUMN watched_until INTEGER NOT NULL DEFAULT ${ALWAYS};
  CREATE INDEX position_watched ON position (watched_until) WHERE closed_at IS NULL;
  CREATE INDEX position_below ON position (token, vault, below) WHERE closed_at IS NULL;
  CREATE INDEX position_above ON position (token, vault, above) WHERE closed_at IS NULL;
  CREATE INDEX position_agent ON position (agent) WHERE closed_at IS NULL;
`

/** Version 4 compares rows with the chain without reading their positions. */
const UPGRADE_FROM_VERSION_3 = 'ALTER TABLE position ADD COLUMN fingerprint TEXT'

type KeeperRow = Record<string, SqlStorageValue>

/** Opens the keeper's tables. Every function is synchronous. */
export function openKeeperStore(sql: SqlStorage) {
  const isVersion1 =
    sql.exec(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sending'`).toArray().length > 0
  if (isVersion1) sql.exec(UPGRADE_FROM_VERSION_1)
  sql.exec(SCHEMA)
  const hasColumn = (name: string) =>
    sql.exec(`SELECT 1 FROM pragma_table_info('position') WHERE name = ?`, name).toArray().length > 0
  if (!hasColumn('below')) sql.exec(UPGRADE_FROM_VERSION_2)
  if (!hasColumn('fingerprint')) sql.exec(UPGRADE_FROM_VERSION_3)

  const rows = (query: string, ...bindings: SqlStorageValue[]) => sql.exec<KeeperRow>(query, ...bindings).toArray()
  const get = (name: string) => rows('SELECT value FROM keeper WHERE name = ?', name)[0]?.value as string | undefined
  function set(name: string, value: string) {
    if (get(name) !== value) sql.exec('INSERT OR REPLACE INTO keeper (name, value) VALUES (?, ?)', name, value)
  }

  const countOpen = () => Number(rows('SELECT count(*) AS count FROM position WHERE closed_at IS NULL')[0]?.count ?? 0)
  let openCount = countOpen()
  /** The last position that does not wait for a price, and the last closed one: of those read, and of those returned. */
  let lastRead = { waiting: 0, closed: { at: 0, id: 0 } }
  let lastReturned = lastRead
  const isOpen = (positionId: number) =>
    rows('SELECT 1 FROM position WHERE id = ? AND closed_at IS NULL', positionId).length > 0

  return {
    /** Returns the highest position id that was read. */
    cursor: () => BigInt(get('cursor') ?? 0),
    advanceCursor: (positionId: bigint) => set('cursor', `${positionId}`),

    lastCycle: (): LastCycle | undefined => parseJson<LastCycle>(get('last_cycle')),
    setLastCycle: (cycle: LastCycle) => set('last_cycle', JSON.stringify(cycle)),

    /**
     * Returns the entries that a cycle reads whatever the prices are: those that are due or wait for another attempt
     * (in turns if there are many), and those that were executed or closed a moment ago. `at` is the chain's time in
     * Unix seconds. The next ones follow after `advanceTurns`.
     */
    watched(now: number, at: number): KeeperEntry[] {
      // The index is named because SQLite prefers that of closed_at, which would visit every open position.
      const waiting = `SELECT * FROM position INDEXED BY position_watched WHERE closed_at IS NULL AND watched_until = ${ALWAYS}`
      const next = rows(`${waiting} AND id > ? ORDER BY id LIMIT ?`, lastRead.waiting, MAX_WATCHED)
      const fromStart = rows(`${waiting} AND id <= ? ORDER BY id LIMIT ?`, lastRead.waiting, MAX_WATCHED - next.length)
      lastReturned = { ...lastReturned, waiting: Number((fromStart.at(-1) ?? next.at(-1))?.id ?? 0) }
      const executed = rows(
        `SELECT * FROM position INDEXED BY position_watched
         WHERE closed_at IS NULL AND watched_until > ? AND watched_until < ${ALWAYS} ORDER BY watched_until DESC LIMIT ?`,
        at,
        MAX_WATCHED,
      )
      const closed = rows(
        'SELECT * FROM position WHERE closed_at > ? ORDER BY closed_at DESC LIMIT ?',
        now - REORG_WATCH_MS,
        MAX_WATCHED,
      )
      return [...next, ...fromStart, ...executed, ...closed].map(toEntry)
    },

    /** Returns the next open entries of the sweep, by id; after the last one it starts over. */
    nextOfSweep(limit: number): KeeperEntry[] {
      const last = Number(get('swept') ?? 0)
      const next = rows('SELECT * FROM position WHERE closed_at IS NULL AND id > ? ORDER BY id LIMIT ?', last, limit)
      const fromStart = rows(
        'SELECT * FROM position WHERE closed_at IS NULL AND id <= ? ORDER BY id LIMIT ?',
        last,
        limit - next.length,
      )
      return [...next, ...fromStart].map(toEntry)
    },
    /**
     * Returns entries that closed in the six hours before the last cycle, oldest first, in turns. `at` is the time of that
     * cycle in Unix seconds of the chain, because an outage may have been longer. The next ones follow after `advanceTurns`.
     */
    nextClosed(now: number, at: number, limit: number): KeeperEntry[] {
      const since = Math.min(now, 1_000 * at) - CLOSED_SWEEP_MS
      const from = lastRead.closed.at < since ? { at: since, id: 0 } : lastRead.closed
      const next = rows(
        'SELECT * FROM position WHERE closed_at >= ?1 AND (closed_at, id) > (?1, ?2) ORDER BY closed_at, id LIMIT ?3',
        from.at,
        from.id,
        limit,
      )
      const last = next.length < limit ? undefined : next.at(-1)
      lastReturned = { ...lastReturned, closed: { at: Number(last?.closed_at ?? 0), id: Number(last?.id ?? 0) } }
      return next.map(toEntry)
    },
    /** Records that the entries that `watched` and `nextClosed` returned were read. */
    advanceTurns() {
      lastRead = lastReturned
    },

    /** Records where the sweep continues. At its end, deletes the markets without open positions. */
    advanceSweep(positionId: bigint) {
      if (positionId <= BigInt(get('swept') ?? 0))
        sql.exec(
          `DELETE FROM market WHERE NOT EXISTS (
             SELECT 1 FROM position
             WHERE position.token = market.token AND position.vault = market.vault AND closed_at IS NULL
           )`,
        )
      set('swept', `${positionId}`)
    },

    /**
     * Returns the open positions of a market that may have a rule to fire at a price, by id: those after `last`, then those
     * from the start. Those that wait for another try, which cycles read in turns, are not among them.
     */
    reached: (
      { token, vault }: Market,
      { price, last, limit }: { price: bigint; last: bigint; limit: number },
    ): bigint[] =>
      rows(
        `SELECT id FROM (
           SELECT id FROM position
             WHERE closed_at IS NULL AND token = ?1 AND vault = ?2 AND below >= ?3 AND watched_until < ${ALWAYS}
           UNION SELECT id FROM position
             WHERE closed_at IS NULL AND token = ?1 AND vault = ?2 AND above <= ?3 AND watched_until < ${ALWAYS}
         ) ORDER BY id <= ?4, id LIMIT ?5`,
        token,
        vault,
        priceText(price),
        Number(last),
        limit,
      ).map(({ id }) => BigInt(id as number)),

    openOfAgent: (agentId: bigint): bigint[] =>
      rows('SELECT id FROM position WHERE closed_at IS NULL AND agent = ?', Number(agentId)).map(({ id }) =>
        BigInt(id as number),
      ),

    /** Returns the markets of open positions, and perhaps some whose positions have all closed. */
    markets: (): Market[] => rows('SELECT token, vault FROM market') as Market[],

    /** Returns the last block whose events were read. */
    eventCursor: () => BigInt(get('events') ?? 0),
    advanceEventCursor: (blockNumber: bigint) => set('events', `${blockNumber}`),

    entry: (positionId: bigint): KeeperEntry | undefined =>
      rows('SELECT * FROM position WHERE id = ?', Number(positionId)).map(toEntry)[0],

    openCount: () => openCount,

    put(entry: KeeperEntry) {
      const id = Number(entry.positionId)
      openCount += (entry.closedAt === null ? 1 : 0) - (isOpen(id) ? 1 : 0)
      // The vault of an entry of an earlier version is unknown until its position is read.
      if (entry.vault) sql.exec('INSERT OR IGNORE INTO market (token, vault) VALUES (?, ?)', entry.token, entry.vault)
      sql.exec(
        `INSERT OR REPLACE INTO position (
           id, agent, vault, token, below, above, any_price, fired, closed_at, tried_round, failures, next_try_at,
           watched_until, evaluation, outcome, fingerprint
         ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        id,
        Number(entry.agentId),
        entry.vault,
        entry.token,
        entry.triggers.below === undefined ? null : priceText(entry.triggers.below),
        entry.triggers.above === undefined ? null : priceText(entry.triggers.above),
        entry.sellsAtAnyPrice ? 1 : 0,
        entry.firedRules,
        entry.closedAt,
        entry.triedRoundId,
        entry.failures,
        entry.nextTryAt,
        watchedUntil(entry),
        entry.evaluation === undefined ? null : JSON.stringify(entry.evaluation),
        entry.outcome === undefined ? null : JSON.stringify(entry.outcome),
        entry.fingerprint === undefined ? null : `${entry.fingerprint} ${checksumOf(entry)}`,
      )
    },

    /** Records a batch before it is handed to the lane. */
    addBatch({ digest, positionIds, deadline, takesBatches, evaluations }: ExitBatch) {
      sql.exec(
        'INSERT INTO exit_batch (digest, ids, deadline, takes_batches, evaluation) VALUES (?, ?, ?, ?, ?)',
        digest,
        JSON.stringify(positionIds.map(String)),
        Number(deadline),
        takesBatches ? 1 : 0,
        JSON.stringify(evaluations),
      )
    },

    /** Returns the batches without a recorded outcome. */
    batches: (): ExitBatch[] =>
      rows('SELECT * FROM exit_batch').map(row => ({
        digest: row.digest as Hex,
        positionIds: (parseJson<string[]>(row.ids) ?? []).map(BigInt),
        deadline: BigInt(row.deadline as number),
        takesBatches: row.takes_batches === 1,
        evaluations: parseJson<Evaluation[]>(row.evaluation) ?? [],
      })),

    removeBatch(digest: Hex) {
      sql.exec('DELETE FROM exit_batch WHERE digest = ?', digest)
    },

    /** Deletes positions that closed more than a week ago. */
    prune(now: number) {
      sql.exec('DELETE FROM position WHERE closed_at < ?', now - CLOSED_RETENTION_MS)
    },

    /** Deletes everything: it belongs to a chain that no longer exists. */
    clear() {
      for (const table of ['keeper', 'position', 'exit_batch', 'market']) sql.exec(`DELETE FROM ${table}`)
      openCount = 0
    },
  }
}

const parseJson = <T>(text: SqlStorageValue | undefined): T | undefined =>
  typeof text === 'string' ? (JSON.parse(text) as T) : undefined

const MAX_PRICE = 10n ** BigInt(PRICE_DIGITS) - 1n
const priceText = (price: bigint): string => `${price < MAX_PRICE ? price : MAX_PRICE}`.padStart(PRICE_DIGITS, '0')
const toPrice = (text: SqlStorageValue | undefined): bigint | undefined =>
  typeof text === 'string' ? BigInt(text) : undefined

/** Returns until when every cycle reads a position, in Unix seconds of the chain. */
function watchedUntil({ sellsAtAnyPrice, failures, nextTryAt, outcome }: KeeperEntry): number {
  if (sellsAtAnyPrice || failures > 0 || nextTryAt > 0) return ALWAYS
  if (outcome === undefined) return 0
  return outcome.kind === 'executed' ? Number(outcome.at) + EXIT_WATCH_SECONDS : ALWAYS
}

/** Returns a checksum (FNV-1a) of a row's content, to detect changes that the keeper did not make. */
function checksumOf({
  agentId,
  vault,
  token,
  triggers,
  sellsAtAnyPrice,
}: Pick<KeeperEntry, 'agentId' | 'vault' | 'token' | 'triggers' | 'sellsAtAnyPrice'>): string {
  const text = `${agentId} ${vault} ${token} ${triggers.below} ${triggers.above} ${sellsAtAnyPrice}`
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return (hash >>> 0).toString(16)
}

function toEntry(row: KeeperRow): KeeperEntry {
  const derived = {
    agentId: BigInt(row.agent as number),
    vault: row.vault as Address,
    token: row.token as Address,
    triggers: { below: toPrice(row.below), above: toPrice(row.above) },
    sellsAtAnyPrice: row.any_price === 1,
  }
  const [fingerprint, checksum] = typeof row.fingerprint === 'string' ? row.fingerprint.split(' ') : []
  return {
    ...derived,
    ...stateOf(row),
    fingerprint: checksum === checksumOf(derived) ? (fingerprint as Hex) : undefined,
  }
}

const stateOf = (row: KeeperRow) => ({
  positionId: BigInt(row.id as number),
  firedRules: row.fired as number,
  closedAt: row.closed_at as number | null,
  triedRoundId: row.tried_round as string | null,
  failures: row.failures as number,
  nextTryAt: row.next_try_at as number,
  evaluation: parseJson<Evaluation>(row.evaluation),
  outcome: parseJson<ExitOutcome>(row.outcome),
})
