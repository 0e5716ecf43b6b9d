import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import type { Address, Hex } from 'viem'
import type { Market } from '../chain/watched-positions.ts'
import type { OrderInBlock } from './order-entry.ts'
import { openOrderTable, toWakingPrices, type WakingPrices } from './order-table.ts'
import { type Evaluation, type ExitOutcome, type PositionEntry, WATCH_MS } from './position-entry.ts'
import { priceText, toPrice } from './price-text.ts'

/** Exits that were handed to the lane in one transaction. `evaluations` are in the order of the positions. */
export type ExitBatch = {
  digest: Hex
  positionIds: bigint[]
  /** Unix seconds. */
  deadline: bigint
  takesBatches: boolean
  /** The prices that prove that the exits are due. */
  prices?: CarriedPrices | undefined
  evaluations: Evaluation[]
}

/**
 * When the last cycle began (epoch milliseconds), and what it saw: block, its time in Unix seconds, prices with 8
 * decimals by token, and why the positions of a market wait although nothing has failed, by `marketKey`.
 */
export type LastCycle = {
  startedAt: number
  blockNumber: string
  at: string
  prices: Record<string, string>
  deferrals: Record<string, ExitOutcome & { kind: 'deferred' }>
}

/** When the next cycle has something to do: at one of the prices, or at the time, in Unix seconds of the chain. */
export type Waking = { prices: WakingPrices[]; time: number }

export const marketKey = ({ token, vault }: Market): string => `${token} ${vault}`

/**
 * The positions that a block changed: those with the given ids, and all of the given agents. Their orders may have
 * changed too, as those with the given ids.
 */
export type PositionChanges = {
  block: bigint
  positionIds?: readonly bigint[]
  agentIds?: readonly bigint[]
  orderIds?: readonly Hex[]
}

/** What has changed on the chain, as far as the book depends on it. */
export type ChainChanges = {
  positions?: PositionChanges[]
  /** Orders that are open. Those that the book has stay as they are. */
  orders?: OrderInBlock[]
  /** Whether the next cycle must not wait: prices were posted, or an owner sells. */
  isUrgent?: boolean
  /** The last block that a reorg left: what changed above it may have changed back. */
  reorgAbove?: bigint
}

export type Book = ReturnType<typeof openBook>

const CLOSED_RETENTION_MS = 7 * 86_400_000
/** How often the last cycle and the cursor are stored. After a restart, older ones only make the keeper read more. */
const CYCLE_WRITE_INTERVAL_MS = 60_000
/** How many positions each cycle looks at to delete closed ones. */
const PRUNED_AT_A_TIME = 50
/** The most positions of each kind that a cycle reads without a reached price; more would take too long. */
const MAX_WATCHED = 600
/** The most closed positions that a cycle reads again, the newest first. */
const MAX_CLOSED_WATCHED = 120

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS keeper (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS position (
    id INTEGER PRIMARY KEY, agent INTEGER NOT NULL, vault TEXT NOT NULL, token TEXT NOT NULL, below TEXT, above TEXT,
    waits INTEGER NOT NULL, changed_block INTEGER NOT NULL, watched_until INTEGER NOT NULL,
    closed_at INTEGER, state TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS position_watched ON position (watched_until) WHERE watched_until > 0;
  CREATE INDEX IF NOT EXISTS position_waiting ON position (id) WHERE waits = 1;
  CREATE INDEX IF NOT EXISTS position_open ON position (id) WHERE closed_at IS NULL;
  CREATE INDEX IF NOT EXISTS position_below ON position (token, vault, below) WHERE closed_at IS NULL;
  CREATE INDEX IF NOT EXISTS position_above ON position (token, vault, above) WHERE closed_at IS NULL AND above IS NOT NULL;
  CREATE TABLE IF NOT EXISTS market (token TEXT NOT NULL, vault TEXT NOT NULL, PRIMARY KEY (token, vault)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS exit_batch (digest TEXT PRIMARY KEY, batch TEXT NOT NULL) WITHOUT ROWID;
`

type Row = Record<string, SqlStorageValue>

/**
 * Opens the keeper's book: positions with the prices that fire their exits, and open orders. Every function is
 * synchronous.
 */
export function openBook(sql: SqlStorage) {
  sql.exec(SCHEMA)
  const rows = (query: string, ...bindings: SqlStorageValue[]) => sql.exec<Row>(query, ...bindings).toArray()
  const entries = (query: string, ...bindings: SqlStorageValue[]) => rows(query, ...bindings).map(toEntry)
  const idsOf = (query: string, ...bindings: SqlStorageValue[]) =>
    rows(query, ...bindings).map(({ id }) => BigInt(id as number))
  const get = (name: string) => rows('SELECT value FROM keeper WHERE name = ?', name)[0]?.value as string | undefined
  function set(name: string, value: string) {
    if (get(name) !== value) sql.exec('INSERT OR REPLACE INTO keeper (name, value) VALUES (?, ?)', name, value)
  }

  const orders = openOrderTable(sql)
  let openCount = Number(rows('SELECT count(*) AS count FROM position WHERE closed_at IS NULL')[0]?.count ?? 0)
  let lastCycle: LastCycle | undefined = JSON.parse(get('last_cycle') ?? 'null') ?? undefined
  let cursor = BigInt(get('cursor') ?? 0)
  let cycleWrittenAt = 0
  /** The last waiting position that `watched` returned. */
  let lastWaiting = 0
  /** The last position that `watched` returned of more changed ones than it returns at once. */
  let lastChanged: PositionEntry | undefined
  /** The last position that pruning looked at. */
  let prunedThrough = 0

  /** Returns up to `limit` entries of a partial index by id: entries after `last`, then those from the start. */
  function inTurn(index: string, condition: string, { last, limit }: { last: number; limit: number }) {
    const from = `SELECT * FROM position INDEXED BY ${index} WHERE ${condition}`
    const next = entries(`${from} AND id > ? ORDER BY id LIMIT ?`, last, limit)
    return [...next, ...entries(`${from} AND id <= ? ORDER BY id LIMIT ?`, last, limit - next.length)]
  }

  /** Marks the positions that a condition on the values `?2` selects, so that cycles read them for WATCH_MS. */
  function markWhere(condition: string, block: bigint, values: readonly bigint[]) {
    sql.exec(
      `UPDATE position SET watched_until = ?3, changed_block = max(changed_block, ?1) WHERE ${condition}`,
      Number(block),
      JSON.stringify(values.map(Number)),
      Date.now() + WATCH_MS,
    )
  }

  function clear() {
    for (const table of ['keeper', 'position', 'exit_batch', 'market']) sql.exec(`DELETE FROM ${table}`)
    openCount = 0
    orders.clear()
    lastCycle = undefined
    cursor = 0n
  }

  return {
    orders,

    /** Returns the last position that was compared with the chain. */
    compared: () => Number(get('compared') ?? 0),
    setCompared: (positionId: number) => set('compared', `${positionId}`),

    /** Returns the highest position id that was read. */
    cursor: () => cursor,
    lastCycle: () => lastCycle,
    /** Sets what the last cycle saw, and the highest position id that was read. */
    setLastCycle(cycle: LastCycle, highest: bigint) {
      lastCycle = cycle
      cursor = highest
      if (Date.now() - cycleWrittenAt < CYCLE_WRITE_INTERVAL_MS) return
      cycleWrittenAt = Date.now()
      set('last_cycle', JSON.stringify(cycle))
      set('cursor', `${highest}`)
    },

    /** Marks the positions that a block changed, unless their entry is of that block or a newer one. */
    mark({ block, positionIds = [], agentIds = [], orderIds = [] }: PositionChanges) {
      orders.mark({ orderIds, positionIds, agentIds })
      const isNew = 'changed_block < ?1'
      if (positionIds.length > 0) markWhere(`${isNew} AND id IN (SELECT value FROM json_each(?2))`, block, positionIds)
      if (agentIds.length > 0)
        markWhere(`${isNew} AND closed_at IS NULL AND agent IN (SELECT value FROM json_each(?2))`, block, agentIds)
    },
    /**
     * Marks the positions that changed above the last block that a reorg left; without one (-1), the chain has begun
     * again, and everything is deleted.
     */
    markAbove(block: bigint) {
      if (block < 0n) clear()
      else markWhere('changed_block > (SELECT value FROM json_each(?2))', 0n, [block])
    },

    /**
     * Returns the entries that a cycle reads whatever the prices are: entries that are due or wait for another attempt
     * (in turns if there are many), and entries that have changed within WATCH_MS or since the last cycle began (in
     * turns as well). Closed ones, which only a reorg changes, take no turn of an open one.
     */
    watched(now: number): PositionEntry[] {
      const waiting = inTurn('position_waiting', 'waits = 1', { last: lastWaiting, limit: MAX_WATCHED })
      lastWaiting = Number(waiting.at(-1)?.positionId ?? 0)
      const lastCycleAt = Math.min(now, lastCycle?.startedAt ?? 0)
      const changed = entries(
        `SELECT * FROM position INDEXED BY position_watched
           WHERE watched_until > 0 AND (watched_until, id) > (?, ?) AND closed_at IS NULL
           ORDER BY watched_until, id LIMIT ?`,
        lastChanged?.watchedUntil ?? lastCycleAt,
        Number(lastChanged?.positionId ?? 0),
        MAX_WATCHED,
      )
      lastChanged = changed.length < MAX_WATCHED ? undefined : changed.at(-1)
      const closed = entries(
        `SELECT * FROM position INDEXED BY position_watched
           WHERE watched_until > 0 AND watched_until > ? AND closed_at IS NOT NULL
           ORDER BY watched_until DESC, id DESC LIMIT ?`,
        lastCycleAt,
        MAX_CLOSED_WATCHED,
      )
      return [...waiting, ...changed, ...closed]
    },

    /** Returns the open entries after a position, by id; after the last one it starts over. */
    nextOpen: (last: number, limit: number): PositionEntry[] =>
      inTurn('position_open', 'closed_at IS NULL', { last, limit }),

    /**
     * Returns the open positions of a market that may have a rule to fire at a price, by id: entries after `last`, then
     * those from the start. Leaves out entries that wait for another try, because cycles read those in turns.
     */
    reached: (
      { token, vault }: Market,
      { price, last, limit }: { price: bigint; last: bigint; limit: number },
    ): bigint[] =>
      idsOf(
        `SELECT id FROM (
           SELECT id FROM position
             WHERE closed_at IS NULL AND token = ?1 AND vault = ?2 AND below >= ?3 AND waits = 0
           UNION SELECT id FROM position
             WHERE closed_at IS NULL AND token = ?1 AND vault = ?2 AND above <= ?3 AND waits = 0
         ) ORDER BY id <= ?4, id LIMIT ?5`,
        token,
        vault,
        priceText(price),
        Number(last),
        limit,
      ),

    markets: (): Market[] => rows('SELECT token, vault FROM market') as Market[],

    entry: (positionId: bigint): PositionEntry | undefined =>
      entries('SELECT * FROM position WHERE id = ?', Number(positionId))[0],

    openCount: () => openCount,

    /**
     * Returns the prices and the time (Unix seconds) at which the next cycle has something to do; undefined if it may
     * have at any price, because something is in flight or waits for another try.
     */
    waking(): Waking | undefined {
      const ofOrders = orders.waking()
      const isBusy = [
        rows('SELECT 1 FROM exit_batch LIMIT 1'),
        rows('SELECT 1 FROM position WHERE waits = 1 LIMIT 1'),
      ].some(({ length }) => length > 0)
      if (isBusy || ofOrders === undefined) return undefined
      const ofPositions = rows(
        'SELECT token, max(below) AS below, min(above) AS above FROM position WHERE closed_at IS NULL GROUP BY token',
      ).map(toWakingPrices)
      return { prices: [...ofPositions, ...ofOrders.prices], time: ofOrders.time }
    },

    /** Returns when the next exit is tried again, in milliseconds; undefined if none is. */
    nextTryAt: (): number | undefined =>
      (rows(
        `SELECT min(state ->> 'nextTryAt') AS time FROM position INDEXED BY position_waiting
           WHERE waits = 1 AND state ->> 'nextTryAt' > 0`,
      )[0]?.time as number | null | undefined) ?? undefined,

    /**
     * Stores an entry. An update writes only the columns that changed, because a column that is set writes its indexes.
     */
    put(entry: PositionEntry) {
      const { positionId, agentId, vault, token, triggers, changedBlock, watchedUntil, closedAt, ...state } = entry
      const id = Number(positionId)
      const columns: Row = {
        id,
        agent: Number(agentId),
        vault,
        token,
        below: priceText(triggers.below),
        above: priceText(triggers.above),
        waits: closedAt === null && waitsForTry(entry) ? 1 : 0,
        changed_block: Number(changedBlock),
        watched_until: watchedUntil,
        closed_at: closedAt,
        state: JSON.stringify(state),
      }
      const [stored] = rows('SELECT * FROM position WHERE id = ?', id)
      openCount += (closedAt === null ? 1 : 0) - (stored?.closed_at === null ? 1 : 0)
      if (closedAt === null) sql.exec('INSERT OR IGNORE INTO market (token, vault) VALUES (?, ?)', token, vault)
      const changed = Object.entries(columns).filter(([name, value]) => stored?.[name] !== value)
      const names = changed.map(([name]) => name)
      const values = changed.map(([, value]) => value)
      if (stored === undefined) sql.exec(`INSERT INTO position (${names}) VALUES (${names.map(() => '?')})`, ...values)
      else if (names.length > 0)
        sql.exec(`UPDATE position SET ${names.map(name => `${name} = ?`)} WHERE id = ?`, ...values, id)
    },

    /** Records a batch before it is handed to the lane. */
    addBatch(batch: ExitBatch) {
      sql.exec(
        'INSERT INTO exit_batch (digest, batch) VALUES (?, ?)',
        batch.digest,
        JSON.stringify(batch, digitsOfBigInt),
      )
    },

    /** Returns the batches without a recorded outcome. */
    batches: (): ExitBatch[] =>
      rows('SELECT batch FROM exit_batch').map(row => {
        const { positionIds, deadline, ...batch } = JSON.parse(row.batch as string)
        return { ...batch, positionIds: positionIds.map(BigInt), deadline: BigInt(deadline) }
      }),

    removeBatch(digest: Hex) {
      sql.exec('DELETE FROM exit_batch WHERE digest = ?', digest)
    },

    /** Deletes positions that closed more than a week ago, of some in turn, and markets without open positions. */
    prune(now: number) {
      const [last] = rows(
        'SELECT id FROM position WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?',
        prunedThrough,
        PRUNED_AT_A_TIME - 1,
      )
      sql.exec(
        'DELETE FROM position WHERE id > ? AND id <= ? AND closed_at < ?',
        prunedThrough,
        last?.id ?? Number.MAX_SAFE_INTEGER,
        now - CLOSED_RETENTION_MS,
      )
      prunedThrough = Number(last?.id ?? 0)
      sql.exec(
        `DELETE FROM market WHERE NOT EXISTS (
           SELECT 1 FROM position
           WHERE position.token = market.token AND position.vault = market.vault AND closed_at IS NULL
         )`,
      )
    },
  }
}

const digitsOfBigInt = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)

/** Whether cycles read a position although no price reaches its trigger, because it is due or waits for another try. */
const waitsForTry = ({ sellsAtAnyPrice, failures, nextTryAt, outcome }: PositionEntry): boolean =>
  sellsAtAnyPrice || failures > 0 || nextTryAt > 0 || (outcome !== undefined && outcome.kind !== 'executed')

const toEntry = (row: Row): PositionEntry => ({
  positionId: BigInt(row.id as number),
  agentId: BigInt(row.agent as number),
  vault: row.vault as Address,
  token: row.token as Address,
  triggers: { below: toPrice(row.below), above: toPrice(row.above) },
  changedBlock: BigInt(row.changed_block as number),
  watchedUntil: row.watched_until as number,
  closedAt: row.closed_at as number | null,
  evaluation: undefined,
  outcome: undefined,
  ...JSON.parse(row.state as string),
})
