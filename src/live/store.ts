import type { Address, Hex } from 'viem'
import {
  type Entry,
  type EventPlace,
  type Fact,
  FIRST_FACT,
  idOf,
  placeOf,
  type Subject,
  type Withdrawn,
} from './event.ts'

/** To where the log has what the index has. */
export type Mark = {
  block: number
  logIndex: number
  /** Undefined in the middle of a block. */
  hash: Hex | undefined
  /** The index's last reorganization that is in the log. */
  reorg: number
  /** How many reorganizations the log has seen, and the highest block that one of them took back. */
  branch: number
  highestLost: number
}

export type Log = ReturnType<typeof openLog>

/** Events that can be resumed from; older ones are forgotten. */
const KEPT = 500_000
const TRIM_EVERY = 1_000
/** The first row of a log: nothing was sent before it. */
const START = 'start'
/** The place after every log of a block. */
const END_OF_BLOCK = FIRST_FACT - 1

const schema = `
  CREATE TABLE IF NOT EXISTS entry (
    seq INTEGER PRIMARY KEY, block INTEGER NOT NULL, place INTEGER NOT NULL, branch INTEGER NOT NULL, id TEXT NOT NULL,
    type TEXT NOT NULL, agent INTEGER, vault TEXT, data TEXT NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0
  );
  CREATE UNIQUE INDEX IF NOT EXISTS entry_place ON entry (block, place, branch);
  CREATE TABLE IF NOT EXISTS mark (one INTEGER PRIMARY KEY CHECK (one = 1), value TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS flag (name TEXT PRIMARY KEY) WITHOUT ROWID;
`

type Row = Record<string, SqlStorageValue>

/** A reorganization names so many of the events that it withdraws, the newest; `commonAncestor` tells them all. */
const MOST_NAMED = 10_000

/**
 * What was sent to streams, in the order in which it was sent: nothing in it ever changes its place, so whoever comes
 * back is sent what comes after what it has. Every function is synchronous: what one turn writes is there whole or not.
 */
export function openLog(sql: SqlStorage) {
  sql.exec(schema)
  const rows = (query: string, ...bindings: SqlStorageValue[]) => sql.exec<Row>(query, ...bindings).toArray()
  let mark = readMark()
  let tip = rows('SELECT seq, id FROM entry ORDER BY seq DESC LIMIT 1')[0] as { seq: number; id: string } | undefined
  const flags = new Set(rows('SELECT name FROM flag').map(({ name }) => name as string))
  let nextFact: { block: number; index: number } | undefined

  function readMark(): Mark | undefined {
    const [row] = rows('SELECT value FROM mark')
    return row && (JSON.parse(row.value as string) as Mark)
  }

  function setMark(to: Mark) {
    mark = to
    sql.exec('INSERT INTO mark VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET value = ?1', JSON.stringify(to))
  }

  function insert({ block, index, branch }: EventPlace, fact: Fact | { type: typeof START; data: object }): Entry {
    const { type, agentId, vault, data } = { agentId: undefined, vault: undefined, ...fact }
    const id = idOf({ block, index, branch }, block <= (mark?.highestLost ?? -1))
    const seq = (tip?.seq ?? 0) + 1
    const text = JSON.stringify(data)
    sql.exec(
      'INSERT INTO entry (seq, block, place, branch, id, type, agent, vault, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
      ...[seq, block, index, branch, id, type, agentId ?? null, vault ?? null, text],
    )
    tip = { seq, id }
    if (seq % TRIM_EVERY === 0) sql.exec('DELETE FROM entry WHERE seq <= ?', seq - KEPT)
    return { seq, id, type: type as Entry['type'], agentId, vault, data: text }
  }

  /** The next place of what is no log, in the newest block that the log has. */
  function factPlace({ block, branch }: Mark): EventPlace {
    if (nextFact?.block !== block) {
      const [row] = rows('SELECT max(place) AS place FROM entry WHERE block = ?', block)
      nextFact = { block, index: Math.max(FIRST_FACT, Number(row?.place ?? 0) + 1) }
    }
    return { block, index: nextFact.index++, branch }
  }

  function state(): Mark {
    if (mark === undefined) throw new Error('the log has not begun')
    return mark
  }

  return {
    mark: () => mark,
    /** The newest row: who comes back to its id has missed nothing. */
    tip: () => tip ?? { seq: 0, id: '0-0' },
    flags: flags as ReadonlySet<string>,
    raise(name: string) {
      flags.add(name)
      sql.exec('INSERT OR IGNORE INTO flag VALUES (?)', name)
    },
    lower(name: string) {
      if (flags.delete(name)) sql.exec('DELETE FROM flag WHERE name = ?', name)
    },

    /** Begins where the index is: what was before is history, and no event. */
    begin(block: number, hash: Hex, reorg: number) {
      const { branch = 0, highestLost = -1 } = mark ?? {}
      setMark({ block, logIndex: END_OF_BLOCK, hash, reorg, branch, highestLost })
      insert(factPlace(state()), { type: START, data: {} })
    },

    /** Adds what the logs of blocks mean, and goes to where the index is; without it, to the last of them. */
    addLogs(
      facts: readonly (Fact & { block: number; logIndex: number })[],
      to?: { block: number; hash: Hex },
    ): Entry[] {
      const { branch } = state()
      const entries = facts.map(fact => insert({ block: fact.block, index: fact.logIndex, branch }, fact))
      const last = facts.at(-1)
      if (to) setMark({ ...state(), ...to, logIndex: END_OF_BLOCK })
      else if (last) setMark({ ...state(), block: last.block, logIndex: last.logIndex, hash: undefined })
      return entries
    },

    /** Adds what is no log, now. */
    addFacts: (facts: readonly Fact[]): Entry[] => facts.map(fact => insert(factPlace(state()), fact)),

    /** Goes back to a block, of which everything above was taken back. */
    withdraw({ id, ancestor, lost }: { id: number; ancestor: number; lost: number }): Entry {
      const before = state()
      const gone = rows(
        'UPDATE entry SET withdrawn = 1 WHERE block > ? AND place < ? AND withdrawn = 0 RETURNING seq, id, agent, vault',
        ...[ancestor, FIRST_FACT],
      ).sort((a, b) => Number(a.seq) - Number(b.seq))
      const withdrawn = gone.slice(-MOST_NAMED).map(
        (row): Withdrawn => ({
          id: row.id as string,
          agentId: row.agent as number | null,
          vault: row.vault as Address | null,
        }),
      )
      const entry = insert(factPlace(before), {
        ...{ type: 'reorg', agentId: undefined, vault: undefined },
        data: {
          fromBlock: `${ancestor + 1}`,
          toBlock: `${lost}`,
          commonAncestor: ancestor < 0 ? null : `${ancestor}`,
          withdrawn,
          ...(gone.length > MOST_NAMED && { isComplete: false }),
        },
      })
      nextFact = undefined
      setMark({
        ...(ancestor < before.block ? { block: ancestor, logIndex: END_OF_BLOCK } : before),
        ...{ hash: undefined, reorg: id, branch: before.branch + 1 },
        highestLost: Math.max(before.highestLost, before.block, lost),
      })
      return entry
    },

    /** The row after which a client that has this id goes on; `ahead` and `forgotten` where there is none. */
    resolve(id: string): number | 'ahead' | 'forgotten' {
      const { block, index, branch } = placeOf(id)
      const exact = rows('SELECT seq FROM entry WHERE block = ? AND place = ? AND id = ?', block, index, id)[0]
      if (exact) return exact.seq as number
      const { highestLost, block: newest, logIndex } = state()
      if (block > newest || (block === newest && index > logIndex && index < FIRST_FACT)) return 'ahead'
      if (branch !== undefined || block <= highestLost) return 'forgotten'
      // A place where nothing was sent, such as one from a list of trades: above the highest lost block places only grow.
      const [oldest] = rows('SELECT block, place, type FROM entry ORDER BY seq LIMIT 1')
      const from = Number(oldest?.type === START ? END_OF_BLOCK : oldest?.place)
      if (block < Number(oldest?.block) || (block === oldest?.block && index < from)) return 'forgotten'
      const next = rows(
        'SELECT seq FROM entry WHERE (block, place) > (?, ?) ORDER BY block, place LIMIT 1',
        ...[block, index],
      )[0]
      return next ? (next.seq as number) - 1 : (tip?.seq ?? 0)
    },

    /** The next events of a subject after a row, in order, and the row to which that is all of them. */
    page({ agentId, vault }: Subject, after: number, limit: number): { entries: Entry[]; through: number } {
      const [filter, value] =
        agentId !== undefined
          ? [`(agent = ?3 OR type = 'reorg')`, agentId]
          : [vault === undefined ? '?3 IS NULL' : `(vault = ?3 OR type = 'reorg')`, vault ?? null]
      const found = rows(
        `SELECT seq, id, type, agent, vault, data FROM entry WHERE seq > ?1 AND type <> '${START}' AND ${filter} ORDER BY seq LIMIT ?2`,
        ...[after, limit, value],
      ).map(toEntry)
      return { entries: found, through: found.length < limit ? (tip?.seq ?? 0) : (found.at(-1)?.seq ?? after) }
    },
  }
}

const toEntry = (row: Row): Entry => ({
  seq: row.seq as number,
  id: row.id as string,
  type: row.type as Entry['type'],
  agentId: (row.agent ?? undefined) as number | undefined,
  vault: (row.vault ?? undefined) as Address | undefined,
  data: row.data as string,
})
