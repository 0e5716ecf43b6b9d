import type { Address, Hex } from 'viem'
import {
  END_OF_BLOCK,
  type EventPosition,
  FIRST_OFF_CHAIN_INDEX,
  formatEventId,
  parseEventId,
} from '../resources/event-id.ts'
import {
  type EventFilter,
  isSelected,
  type LoggedEvent,
  type ParsedReorg,
  parseReorg,
  type StreamEvent,
  type WithdrawnEvent,
} from './event.ts'
import { RETENTION, type Retention, rowsToKeep, type Share } from './event-retention.ts'

/** The position in the index up to which the log has every trade. */
export type IndexPosition = {
  /** The log has the events of the whole block. */
  block: number
  /**
   * A block of the index when the log had its events: at a newer index without it, no sent event belongs to its chain.
   */
  known: { block: number; hash: Hex } | undefined
  /** The newest reorg of the index that the log has. */
  reorg: number
  /** The number of reorgs in the log. */
  branch: number
  /** The highest block that any of them withdrew; -1 before the first. */
  highestLost: number
  /** The block after which the log has the events of the index. */
  start: number
}

/** An event that comes from a log of the chain. */
export type EventOfLog = StreamEvent & { block: number; logIndex: number }

/** A reorg of the index: the blocks from `ancestor + 1` to `lost` were withdrawn. An ancestor of -1 withdraws all. */
export type IndexReorg = { id: number; ancestor: number; lost: number }

/**
 * How many blocks an event in a list of trades can be ahead of the log: those of ten minutes at twenty a second. Ids
 * further ahead cause no reads.
 */
const MAX_BLOCKS_AHEAD = 12_000

export type EventLog = ReturnType<typeof openEventLog>

/** How many withdrawn events a reorg lists: the newest ones. A client discards the others by `commonAncestor`. */
const MAX_WITHDRAWN = 10_000
const MAX_PARSED_REORGS = 4
/**
 * How often a position is stored that only grew: the newest row shows it as well, but not that blocks after it have no
 * events.
 */
const POSITION_WRITE_INTERVAL_MS = 60_000
/** Type of the first row. Nothing was sent before it, and it is not sent either. */
const START = 'start'

const SCHEMA = `
  -- What was sent, in order: branch, block and place grow with seq. agent, vault and token are what streams filter by; only posted
  -- prices and the corporate actions of a token, whoever holds it, have a token.
  CREATE TABLE IF NOT EXISTS entry (
    seq INTEGER PRIMARY KEY, block INTEGER NOT NULL, place INTEGER NOT NULL, branch INTEGER NOT NULL, id TEXT NOT NULL,
    type TEXT NOT NULL, agent INTEGER, vault TEXT, token TEXT, data TEXT NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0,
    logged_at INTEGER NOT NULL
  );
  -- Each of these lists what a filter selects in order: an index ends in the row's seq. entry_agent also counts rows.
  CREATE INDEX IF NOT EXISTS entry_agent ON entry (agent, seq, type, logged_at);
  -- The pages of the log that have rows of a vault. An index would have an entry for each row, and a log has few vaults.
  CREATE TABLE IF NOT EXISTS vault_page (vault TEXT NOT NULL, page INTEGER NOT NULL, PRIMARY KEY (vault, page)) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS entry_price ON entry (token, seq) WHERE token IS NOT NULL;
  CREATE INDEX IF NOT EXISTS entry_action ON entry (token, seq) WHERE token IS NOT NULL AND type = 'corporateAction';
  CREATE INDEX IF NOT EXISTS entry_reorg ON entry (type) WHERE type = 'reorg';
  -- The newest deleted row of each agent and type stays without its data: a stream that resumes before it lacks events.
  CREATE INDEX IF NOT EXISTS entry_gap ON entry (seq) WHERE data = '';
  -- The highest block that a reorg had withdrawn when a branch began. Blocks above it are the branch's first ones of their number.
  CREATE TABLE IF NOT EXISTS branch (id INTEGER PRIMARY KEY, highest_lost INTEGER NOT NULL);
  -- One row: IndexPosition as JSON. The log may be further, at the block of its newest row.
  CREATE TABLE IF NOT EXISTS mark (one INTEGER PRIMARY KEY CHECK (one = 1), value TEXT NOT NULL);
  -- Alerts that are active now.
  CREATE TABLE IF NOT EXISTS flag (name TEXT PRIMARY KEY) WITHOUT ROWID;
`

const COLUMNS = 'seq, id, type, agent, entry.vault, token, data, logged_at'
/**
 * How many rows a page of `vault_page` has. A stream of a vault reads at most this many rows for one that it selects.
 */
const ROWS_PER_PAGE = 16
/** Selects the next ?2 rows after ?1. With the named index, only rows that match are read. */
const selectNext = (source: string, order = 'seq') =>
  `SELECT ${COLUMNS} FROM ${source} AND data <> '' AND seq > ?1 ORDER BY ${order} LIMIT ?2`
const OF_VAULT = `vault_page CROSS JOIN entry ON seq BETWEEN page * ${ROWS_PER_PAGE} AND (page + 1) * ${ROWS_PER_PAGE} - 1
  WHERE vault_page.vault = ?3 AND page >= CAST(?1 AS INTEGER) / ${ROWS_PER_PAGE} AND entry.vault = ?3`
/** The rows of a stream's subject, ?3: an agent, a vault, all of them, or none. */
const SUBJECTS = {
  agent: selectNext('entry INDEXED BY entry_agent WHERE agent = ?3'),
  vault: selectNext(OF_VAULT, 'page, seq'),
  all: selectNext(`entry WHERE token IS NULL AND type NOT IN ('${START}', 'reorg') AND ?3 IS NULL`),
  none: selectNext('entry WHERE ?3 IS NOT NULL'),
}
const EVERYTHING = selectNext(`entry WHERE type <> '${START}'`)
const PRICES = "entry INDEXED BY entry_agent WHERE agent IS NULL AND type = 'price'"
/** The newest price of each token that no reorg withdrew. */
const NEWEST_PRICES = `SELECT max(seq) FROM ${PRICES} AND withdrawn = 0 GROUP BY token`
/** The same of the tokens in ?4, without reading the prices before them: every page of a stream selects them. */
const NEWEST_PRICES_OF_TOKENS = `SELECT (SELECT seq FROM entry INDEXED BY entry_price
    WHERE token = asked.value AND type = 'price' AND withdrawn = 0 ORDER BY seq DESC LIMIT 1) FROM json_each(?4) AS asked`
const ACTIONS_OF_TOKENS = `entry INDEXED BY entry_action WHERE token IN (SELECT value FROM json_each(?4))
  AND type = 'corporateAction'`
/**
 * Selects the next rows of a subject, of the newest price and the corporate actions of each of the tokens in ?4, and
 * the reorgs between them.
 */
const selectNextOf = (subject: keyof typeof SUBJECTS) =>
  `SELECT * FROM (${SUBJECTS[subject]})
  UNION ALL SELECT * FROM (${selectNext("entry INDEXED BY entry_reorg WHERE type = 'reorg'")})
  UNION ALL SELECT * FROM (${selectNext(ACTIONS_OF_TOKENS)})
  UNION ALL SELECT ${COLUMNS} FROM entry
    WHERE seq > ?1 AND seq IN (${NEWEST_PRICES_OF_TOKENS})
  ORDER BY seq LIMIT ?2`
const ENTRIES = {
  agent: selectNextOf('agent'),
  vault: selectNextOf('vault'),
  all: selectNextOf('all'),
  none: selectNextOf('none'),
}

const GAPS = `SELECT ${COLUMNS} FROM entry INDEXED BY entry_gap WHERE data = '' AND seq > ?`
/** Prices are no one's share: they are kept by their own number. */
const SHARES = `SELECT agent, type, count(*) AS rows, sum(logged_at < ?) AS old FROM entry INDEXED BY entry_agent
  WHERE type NOT IN ('${START}', 'reorg', 'price') GROUP BY agent, type`
/** Deletes all but the newest ?1 prices and the newest price of each token. The index has the others. */
const DELETE_OLD_PRICES = `DELETE FROM ${PRICES} AND seq <= (SELECT seq FROM ${PRICES} ORDER BY seq DESC LIMIT 1 OFFSET ?1)
  AND seq NOT IN (${NEWEST_PRICES})`
/** The newest row of an agent, ?1, and a type, ?2, below its newest ?3 rows. */
const NEWEST_BEYOND = `SELECT seq FROM entry INDEXED BY entry_agent WHERE agent IS ?1 AND type = ?2
  ORDER BY seq DESC LIMIT 1 OFFSET ?3`

const INSERT = `INSERT INTO entry (seq, block, place, branch, id, type, agent, vault, token, data, logged_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

type SqlRow = Record<string, SqlStorageValue>

/** A row of the log. A client that sends its id has everything up to it. */
export type LogCursor = { seq: number; id: string }

/**
 * Opens the log of everything sent to streams, in one order for all of them. Rows never move, so a stream resumes
 * exactly after the row it names. Every method is synchronous: the writes of one turn of the event loop are stored
 * completely or not at all.
 */
export function openEventLog(sql: SqlStorage, retention: Retention = RETENTION) {
  sql.exec(SCHEMA)
  const query = (statement: string, ...bindings: SqlStorageValue[]) =>
    sql.exec<SqlRow>(statement, ...bindings).toArray()
  const newestRow = query('SELECT seq, id, block, branch FROM entry ORDER BY seq DESC LIMIT 1')[0]
  let newest = newestRow && { seq: newestRow.seq as number, id: newestRow.id as string }
  let position = readPosition()
  let positionWrittenAt = 0
  const activeAlerts = new Set(query('SELECT name FROM flag').map(({ name }) => name as string))
  /** Many streams and webhooks read the same reorgs, each the events of one agent. */
  const parsedReorgs = new Map<number, ParsedReorg>()
  let nextOffChain: { block: number; index: number } | undefined
  /** The newest page of each vault that has a row. */
  const pageOfVault = new Map<string, number>()

  function readPosition(): IndexPosition | undefined {
    const [row] = query('SELECT value FROM mark')
    if (row === undefined) return undefined
    const stored: IndexPosition = JSON.parse(row.value as string)
    const isOfBranch = newestRow?.branch === stored.branch
    return { ...stored, block: Math.max(stored.block, isOfBranch ? Number(newestRow?.block) : stored.block) }
  }

  function writePosition(to: IndexPosition) {
    position = to
    positionWrittenAt = Date.now()
    sql.exec('INSERT INTO mark VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET value = ?1', JSON.stringify(to))
  }

  function requirePosition(): IndexPosition {
    if (position === undefined) throw new Error('the event log has not started')
    return position
  }

  function insert(at: EventPosition, event: StreamEvent | { type: typeof START; data: object }): LoggedEvent {
    const { type, agentId, vault, token, data } = { agentId: undefined, vault: undefined, token: undefined, ...event }
    const id = formatEventId(at, at.block <= (position?.highestLost ?? -1))
    const seq = (newest?.seq ?? 0) + 1
    const json = JSON.stringify(data)
    const loggedAt = Date.now()
    const subject = [agentId ?? null, vault ?? null, token ?? null]
    sql.exec(INSERT, seq, at.block, at.index, at.branch, id, type, ...subject, json, loggedAt)
    if (vault !== undefined) addToPage(vault, Math.floor(seq / ROWS_PER_PAGE))
    newest = { seq, id }
    if (seq % retention.interval === 0) deleteOldRows(loggedAt - retention.minAgeMs)
    return { seq, id, type: type as LoggedEvent['type'], agentId, vault, token, data: json, loggedAt }
  }

  function addToPage(vault: string, page: number) {
    if (pageOfVault.get(vault) === page) return
    sql.exec('INSERT OR IGNORE INTO vault_page VALUES (?, ?)', vault, page)
    pageOfVault.set(vault, page)
  }

  /** Deletes rows that agents have beyond their share. Reorgs are kept, because they concern every stream. */
  function deleteOldRows(oldBefore: number) {
    query(DELETE_OLD_PRICES, retention.prices)
    for (const { agent, type, keep } of rowsToKeep(query(SHARES, oldBefore) as Share[], retention)) {
      const gap = query(NEWEST_BEYOND, agent, type, keep)[0]?.seq
      if (gap === undefined) continue
      sql.exec("UPDATE entry SET data = '', withdrawn = 1 WHERE seq = ?", gap)
      sql.exec('DELETE FROM entry INDEXED BY entry_agent WHERE agent IS ? AND type = ? AND seq < ?', agent, type, gap)
    }
    const [oldest] = query('SELECT min(seq) AS seq FROM entry')
    sql.exec('DELETE FROM vault_page WHERE page < ?', Math.floor(Number(oldest?.seq ?? 0) / ROWS_PER_PAGE))
  }

  /** Returns the newest row after `after` that a filter selects and that has lost its event. */
  function gapAfter(filter: EventFilter, after: number, types: readonly string[] = []): LoggedEvent | undefined {
    return query(GAPS, after)
      .map(toLoggedEvent)
      .filter(event => isSelected(filter, event) && (types.length === 0 || types.includes(event.type)))
      .at(-1)
  }

  /** Returns the next position, in the log's newest block, of an event that does not come from a log. */
  function nextOffChainPosition({ block, branch }: IndexPosition): EventPosition {
    if (nextOffChain?.block !== block) {
      const [row] = query('SELECT block, branch, place FROM entry ORDER BY seq DESC LIMIT 1')
      const isLast = row?.block === block && row.branch === branch
      nextOffChain = { block, index: Math.max(FIRST_OFF_CHAIN_INDEX, isLast ? Number(row.place) + 1 : 0) }
    }
    return { block, index: nextOffChain.index++, branch }
  }

  function withSelection(event: LoggedEvent, filter: EventFilter): LoggedEvent {
    if (event.type !== 'reorg') return event
    const reorg = parsedReorgs.get(event.seq) ?? parseReorg(event.data)
    parsedReorgs.set(event.seq, reorg)
    for (const seq of [...parsedReorgs.keys()].slice(0, -MAX_PARSED_REORGS)) parsedReorgs.delete(seq)
    return { ...event, data: reorg.dataWith(reorg.select(filter)) }
  }

  /** Returns the first row at or after a position, by bisection. */
  function firstFrom(at: EventPosition): LogCursor | undefined {
    let [low, high] = [0, newest?.seq ?? 0]
    let found: SqlRow | undefined
    while (low <= high) {
      const middle = Math.floor((low + high) / 2)
      const [row] = query('SELECT seq, id, branch, block, place FROM entry WHERE seq >= ? ORDER BY seq LIMIT 1', middle)
      const isFrom = row !== undefined && comparePositions(row, at) >= 0
      if (row !== undefined && !isFrom) low = (row.seq as number) + 1
      else {
        found = row ?? found
        high = middle - 1
      }
    }
    return found && { seq: found.seq as number, id: found.id as string }
  }

  /** Returns the branch that an id is of: without a number, the one that reached the block first. */
  function branchOf(block: number, branch: number | undefined): number {
    if (branch !== undefined) return branch
    const [next] = query('SELECT id FROM branch WHERE highest_lost >= ? ORDER BY id LIMIT 1', block)
    return next ? (next.id as number) - 1 : requirePosition().branch
  }

  /**
   * Returns the row after which a position follows; `ahead` if the log has not reached it, `unknown` if it is
   * ambiguous.
   */
  function locate(id: string): number | 'ahead' | 'unknown' {
    const { block, index, branch } = parseEventId(id)
    const { highestLost, block: newestBlock } = requirePosition()
    const next = firstFrom({ block, index, branch: branchOf(block, branch) })
    if (next?.id === id) return next.seq
    if (block > newestBlock + MAX_BLOCKS_AHEAD) return 'unknown'
    if (block > newestBlock) return 'ahead'
    if (branch !== undefined || block <= highestLost) return 'unknown'
    // A position without an event, such as one from a list of trades, or with one that was deleted.
    const [oldest] = query('SELECT block, place, type FROM entry ORDER BY seq LIMIT 1')
    const firstIndex = Number(oldest?.type === START ? END_OF_BLOCK : oldest?.place)
    if (block < Number(oldest?.block) || (block === oldest?.block && index < firstIndex)) return 'unknown'
    return next ? next.seq - 1 : (newest?.seq ?? 0)
  }

  return {
    /** Returns the position in the index up to which the log is complete; undefined before the log starts. */
    position: () => position,

    /** Returns the newest row. A client that resumes from its id has missed nothing. */
    newest: () => newest ?? { seq: 0, id: '0-0' },

    /** Returns the oldest row; undefined before the log starts. */
    oldest: () =>
      query('SELECT seq, id, logged_at AS loggedAt FROM entry ORDER BY seq LIMIT 1')[0] as
        | (LogCursor & { loggedAt: number })
        | undefined,

    /** Returns the id of a row; undefined if the log has no such row. */
    idAt: (seq: number) => query('SELECT id FROM entry WHERE seq = ?', seq)[0]?.id as string | undefined,

    /** The names of the active alerts. */
    activeAlerts: activeAlerts as ReadonlySet<string>,
    raiseAlert(name: string) {
      activeAlerts.add(name)
      sql.exec('INSERT OR IGNORE INTO flag VALUES (?)', name)
    },
    clearAlert(name: string) {
      if (activeAlerts.delete(name)) sql.exec('DELETE FROM flag WHERE name = ?', name)
    },

    /** Starts the log at the index's newest block. Earlier trades are history, not events. */
    start(block: number, hash: Hex, reorg: number) {
      const { branch = 0, highestLost = -1 } = position ?? {}
      writePosition({ block, known: { block, hash }, reorg, branch, highestLost, start: block })
      insert(nextOffChainPosition(requirePosition()), { type: START, data: {} })
    },

    /** Appends events that come from logs, and moves to the end of a block of the index, which has no more events. */
    appendFromChain(events: readonly EventOfLog[], to: { block: number; hash: Hex | undefined }): LoggedEvent[] {
      const { branch } = requirePosition()
      const logged = events.map(event => insert({ block: event.block, index: event.logIndex, branch }, event))
      const { block, hash } = to
      position = { ...requirePosition(), block, ...(hash !== undefined && { known: { block, hash } }) }
      if (Date.now() - positionWrittenAt >= POSITION_WRITE_INTERVAL_MS) writePosition(position)
      return logged
    },

    /** Appends events that do not come from a log to the newest block. */
    appendOffChain: (events: readonly StreamEvent[]): LoggedEvent[] =>
      events.map(event => insert(nextOffChainPosition(requirePosition()), event)),

    /** Returns whether the log has all events of the index after a block. */
    hasAllAfter: (block: number): boolean => block >= (position?.start ?? Number.POSITIVE_INFINITY),

    /** Appends a reorg event and moves back to the common ancestor. */
    withdraw({ id, ancestor, lost }: IndexReorg): LoggedEvent {
      const before = requirePosition()
      const isOfChain = `place < ${FIRST_OFF_CHAIN_INDEX} AND withdrawn = 0`
      const [kept] = query(
        `SELECT seq FROM entry WHERE ${isOfChain} AND block <= ? ORDER BY seq DESC LIMIT 1`,
        ancestor,
      )
      const isLost = `seq > ? AND ${isOfChain}`
      const after = kept?.seq ?? 0
      const newestFirst = query(
        `SELECT id, agent, vault, token FROM entry WHERE ${isLost} ORDER BY seq DESC LIMIT ${MAX_WITHDRAWN + 1}`,
        after,
      )
      sql.exec(`UPDATE entry SET withdrawn = 1 WHERE ${isLost}`, after)
      const logged = insert(nextOffChainPosition(before), {
        type: 'reorg',
        agentId: undefined,
        vault: undefined,
        data: {
          fromBlock: `${ancestor + 1}`,
          toBlock: `${lost}`,
          commonAncestor: ancestor < 0 ? null : `${ancestor}`,
          withdrawn: newestFirst.slice(0, MAX_WITHDRAWN).reverse().map(toWithdrawnEvent),
          ...(newestFirst.length > MAX_WITHDRAWN && { isComplete: false }),
        },
      })
      nextOffChain = undefined
      const branch = before.branch + 1
      const highestLost = Math.max(before.highestLost, before.block, lost)
      sql.exec('INSERT INTO branch (id, highest_lost) VALUES (?, ?)', branch, highestLost)
      writePosition({
        ...before,
        block: Math.min(ancestor, before.block),
        known: undefined,
        reorg: id,
        branch,
        highestLost,
        start: Math.min(before.start, ancestor),
      })
      return logged
    },

    /**
     * Returns the `seq` after which a client with this id resumes; `ahead` if the log has not reached the id, `unknown`
     * if the id was never assigned, or events of the filter after it were deleted.
     */
    resolve(id: string, filter: EventFilter): number | 'ahead' | 'unknown' {
      const after = locate(id)
      return typeof after === 'number' && gapAfter(filter, after) ? 'unknown' : after
    },

    gapAfter,

    /**
     * Returns the row of a cursor, or where it was if the row was deleted; undefined if the cursor belongs to a log
     * that was lost or restored to an older state.
     */
    rowOf({ seq, id }: LogCursor): number | undefined {
      const [row] = query('SELECT id FROM entry WHERE seq = ?', seq)
      if (row) return row.id === id ? seq : undefined
      const after = seq > (newest?.seq ?? 0) ? undefined : locate(id)
      return typeof after === 'number' ? after : undefined
    },

    /**
     * Returns a filter's next events after a row, in order, and the row up to which the list is complete; without a
     * filter, the next rows of all. A reorg lists only the withdrawn events that the filter selects; of the prices of a
     * token, only the newest is returned.
     */
    page(filter: EventFilter | undefined, after: number, limit: number): { events: LoggedEvent[]; through: number } {
      const rows = filter === undefined ? query(EVERYTHING, after, limit) : query(...entriesOf(filter, after, limit))
      const logged = rows.map(toLoggedEvent)
      const events = filter === undefined ? logged : logged.map(event => withSelection(event, filter))
      return { events, through: events.length < limit ? (newest?.seq ?? 0) : (events.at(-1)?.seq ?? after) }
    },
  }
}

function entriesOf(
  { agentId, vault, tokens }: EventFilter,
  after: number,
  limit: number,
): [statement: string, ...bindings: SqlStorageValue[]] {
  const subject =
    agentId !== undefined ? 'agent' : vault !== undefined ? 'vault' : tokens === undefined ? 'all' : 'none'
  return [ENTRIES[subject], after, limit, agentId ?? vault ?? null, JSON.stringify(tokens ?? [])]
}

const toLoggedEvent = (row: SqlRow): LoggedEvent => ({
  seq: row.seq as number,
  id: row.id as string,
  type: row.type as LoggedEvent['type'],
  agentId: (row.agent ?? undefined) as number | undefined,
  vault: (row.vault ?? undefined) as Address | undefined,
  token: (row.token ?? undefined) as Address | undefined,
  data: row.data as string,
  loggedAt: row.logged_at as number,
})

/** Compares the place of a row with a position: below 0 if the row is before it. */
const comparePositions = ({ branch, block, place }: SqlRow, at: EventPosition): number =>
  Number(branch) - at.branch || Number(block) - at.block || Number(place) - at.index

const toWithdrawnEvent = (row: SqlRow): WithdrawnEvent => ({
  id: row.id as string,
  agentId: row.agent as number | null,
  vault: row.vault as Address | null,
  ...(row.token !== null && { token: row.token as Address }),
})
