import type { Address, Hex } from 'viem'
import type { TradedPosition } from '../chain/trade-details.ts'
import type { Trade } from '../protocol/trade-events.ts'
import { migrations } from './migrations.ts'

/** The block to which the index is whole, the newest one it knew of then, and the newest that cannot be taken back. */
export type Cursor = { block: number; hash: Hex; timestamp: number; head: number; final: number }

/** What an agent was from a place on. */
export type AgentRow = {
  agentId: number
  block: number
  logIndex: number
  owner: Address
  vault: Address
  track: number
  status: number
  timestamp: number
}

export type PositionRow = TradedPosition & { positionId: number; agentId: number; block: number; openedAt: number }
export type PriceRow = {
  token: Address
  block: number
  logIndex: number
  price: bigint
  observedAt: number
  timestamp: number
}

/** Any event that no other table is made of; integers in `args` are digits. */
export type EventRow = {
  block: number
  logIndex: number
  contract: Address
  name: string
  agentId: number | null
  args: Record<string, unknown>
  transactionHash: Hex
  timestamp: number
}

/** All rows of a range of blocks, oldest first. */
export type Rows = {
  trades: Trade[]
  positions: PositionRow[]
  agents: AgentRow[]
  prices: PriceRow[]
  events: EventRow[]
  /** Hashes of the blocks that the rows are of. */
  blocks: { number: number; hash: Hex }[]
}

/** The chain took blocks back: what was above `ancestor` is withdrawn. */
export type Reorg = { ancestor: number; ancestorHash: Hex; lost: number; lostHash: Hex; at: number }

/** Somebody else moved the cursor: the caller begins again from what it says now. */
export class CursorMoved extends Error {
  override name = 'CursorMoved'
}

export type Store = ReturnType<typeof openStore>

const TABLES = ['trades', 'positions', 'agents', 'prices', 'events', 'relayed', 'equity', 'vault_worth'] as const
/** Rows of one statement, and the bytes that they may come to: far below the 2 MB that a parameter may have. */
const CHUNK = 2_000
const CHUNK_BYTES = 1_000_000
/** Of a UTF-16 unit in UTF-8. */
const MOST_BYTES = 3
const MOST_REORGS = 1_000

/** The index as its one writer sees it. `scope` says whose events it holds: rows of another scope are dropped. */
export function openStore(db: D1Database, scope: string) {
  const over = (sql: string, rows: readonly unknown[]): D1PreparedStatement[] => {
    const chunks: string[][] = []
    let bytes = 0
    for (const row of rows.map(row => JSON.stringify(row))) {
      const chunk = chunks.at(-1)
      bytes += row.length * MOST_BYTES
      if (chunk && chunk.length < CHUNK && bytes <= CHUNK_BYTES) chunk.push(row)
      else {
        chunks.push([row])
        bytes = row.length * MOST_BYTES
      }
    }
    return chunks.map(chunk => db.prepare(sql).bind(`[${chunk.join(',')}]`))
  }

  /** A statement that fails, and the whole transaction with it, unless the cursor is where it is thought to be. */
  const unmoved = (hash: Hex | undefined) =>
    db
      .prepare(
        `SELECT CASE WHEN (SELECT hash FROM cursor WHERE id = 1) IS ?1 THEN 1 ELSE json('${MOVED}' || random()) END`,
      )
      .bind(hash ?? null)

  async function transaction(statements: D1PreparedStatement[]): Promise<void> {
    try {
      await db.batch(statements)
    } catch (error) {
      if (error instanceof Error && /malformed JSON/i.test(error.message)) throw new CursorMoved()
      throw error
    }
  }

  /** Creates or brings up to date the tables, as `wrangler d1 migrations apply` would. */
  async function migrate(): Promise<void> {
    await db
      .prepare(
        'CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)',
      )
      .run()
    const { results } = await db.prepare('SELECT name FROM d1_migrations').all<{ name: string }>()
    const applied = new Set(results.map(({ name }) => name))
    for (const { name, statements } of migrations.filter(({ name }) => !applied.has(name)))
      await db.batch([
        ...statements.map(statement => db.prepare(statement)),
        db.prepare('INSERT INTO d1_migrations (name) VALUES (?1)').bind(name),
      ])
  }

  /** Where the index is; undefined when it is empty. */
  async function cursor(): Promise<Cursor | undefined> {
    const row = await db
      .prepare('SELECT scope, block, hash, timestamp, head, final FROM cursor')
      .first<Cursor & { scope: string }>()
    if (row === null) return undefined
    if (row.scope !== scope) {
      await clear()
      return undefined
    }
    const { block, hash, timestamp, head, final } = row
    return { block, hash, timestamp, head, final }
  }

  /** Adds the rows of the blocks after `from` up to `to`, and moves the cursor there: all of it or nothing. */
  async function append(from: Cursor | undefined, to: Cursor, rows: Rows): Promise<void> {
    const { block, hash, timestamp, head, final } = to
    await transaction([
      unmoved(from?.hash),
      db.prepare('DELETE FROM relayed WHERE block <= ?1').bind(block),
      ...over(insertTrades, rows.trades.map(tradeValues)),
      ...over(
        insertInto('positions', ['position_id', 'agent_id', 'vault', 'token', 'block', 'opened_at']),
        rows.positions.map(({ positionId, agentId, vault, token, block, openedAt }) => [
          ...[positionId, agentId, vault, token, block, openedAt],
        ]),
      ),
      ...agentStatements(rows.agents),
      ...over(
        insertInto('prices', ['token', 'block', 'log_index', 'price', 'observed_at', 'timestamp']),
        rows.prices.map(({ token, block, logIndex, price, observedAt, timestamp }) => [
          ...[token, block, logIndex, `${price}`, observedAt, timestamp],
        ]),
      ),
      ...over(
        insertInto('events', [
          ...['block', 'log_index', 'contract', 'name', 'agent_id', 'args', 'transaction_hash', 'timestamp'],
        ]),
        rows.events.map(({ block, logIndex, contract, name, agentId, args, transactionHash, timestamp }) => [
          ...[block, logIndex, contract, name, agentId, JSON.stringify(args), transactionHash, timestamp],
        ]),
      ),
      ...over(
        insertInto('blocks', ['number', 'hash']),
        [...rows.blocks, { number: block, hash }]
          .filter(({ number }) => number > final || number === block)
          .map(({ number, hash }) => [number, hash]),
      ),
      // The newest block that is final stays: it is where the others attach.
      db.prepare('DELETE FROM blocks WHERE number < (SELECT max(number) FROM blocks WHERE number <= ?1)').bind(final),
      db
        .prepare(
          `INSERT INTO cursor (id, scope, block, hash, timestamp, head, final) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)
          ON CONFLICT (id) DO UPDATE SET block = ?2, hash = ?3, timestamp = ?4, head = ?5, final = ?6`,
        )
        .bind(scope, block, hash, timestamp, head, final),
    ])
  }

  /** The rows of agents, and the end of what their agents were before. */
  function agentStatements(rows: readonly AgentRow[]): D1PreparedStatement[] {
    const firsts = new Map<number, AgentRow>()
    const untils: (number | null)[] = []
    const next = new Map<number, number>()
    for (const [index, row] of [...rows.entries()].reverse()) {
      untils[index] = next.get(row.agentId) ?? null
      next.set(row.agentId, row.block)
      firsts.set(row.agentId, row)
    }
    return [
      ...over(
        `UPDATE agents SET until = (SELECT value ->> 1 FROM json_each(?1) WHERE value ->> 0 = agent_id)
        WHERE until IS NULL AND agent_id IN (SELECT value ->> 0 FROM json_each(?1))`,
        [...firsts.values()].map(({ agentId, block }) => [agentId, block]),
      ),
      ...over(
        insertInto('agents', [
          ...['agent_id', 'block', 'log_index', 'until', 'owner', 'vault', 'track', 'status', 'timestamp'],
        ]),
        rows.map(({ agentId, block, logIndex, owner, vault, track, status, timestamp }, index) => [
          ...[agentId, block, logIndex, untils[index] ?? null, owner, vault, track, status, timestamp],
        ]),
      ),
    ]
  }

  /** Adds trades from receipts above the cursor; a block's hash says of which branch they are. */
  async function addRelayed(trades: readonly { trade: Trade; blockHash: Hex }[]): Promise<void> {
    const rows = trades.map(({ trade, blockHash }) => {
      const values = tradeValues(trade)
      const row = Object.fromEntries(TRADE_COLUMNS.map((column, index) => [column, values[index]]))
      return [Number(trade.agentId), Number(trade.blockNumber), trade.logIndex, blockHash, JSON.stringify(row)]
    })
    await db.batch(over(insertInto('relayed', RELAYED_COLUMNS, REPLACED), rows))
  }

  /** Takes back everything above a block that the chain still has, and says so in `reorgs`. */
  async function rollback(from: Cursor, to: Pick<Cursor, 'block' | 'hash' | 'timestamp'>, reorg: Reorg): Promise<void> {
    const { ancestor, ancestorHash, lost, lostHash, at } = reorg
    await transaction([
      unmoved(from.hash),
      ...TABLES.map(table => db.prepare(`DELETE FROM ${table} WHERE block > ?1`).bind(to.block)),
      db.prepare('UPDATE agents SET until = NULL WHERE until > ?1').bind(to.block),
      db.prepare('UPDATE equity SET until = NULL WHERE until > ?1').bind(to.block),
      db.prepare('UPDATE sampling SET changed_to = min(changed_to, ?1)').bind(to.block),
      db.prepare('DELETE FROM blocks WHERE number > ?1').bind(to.block),
      db
        .prepare('INSERT INTO reorgs (ancestor, ancestor_hash, lost, lost_hash, at) VALUES (?1, ?2, ?3, ?4, ?5)')
        .bind(ancestor, ancestorHash, lost, lostHash, at),
      db.prepare(`DELETE FROM reorgs WHERE id <= (SELECT max(id) FROM reorgs) - ${MOST_REORGS}`),
      db
        .prepare('UPDATE cursor SET block = ?1, hash = ?2, timestamp = ?3, final = min(final, ?1) WHERE id = 1')
        .bind(to.block, to.hash, to.timestamp),
    ])
  }

  /** Forgets everything: the rows were of another chain, or of other contracts. */
  async function clear(): Promise<void> {
    await db.batch([...TABLES, 'sampling', 'blocks', 'cursor'].map(table => db.prepare(`DELETE FROM ${table}`)))
  }

  /** Blocks that could still be taken back, newest first. */
  async function blocks(): Promise<{ number: number; hash: Hex }[]> {
    const { results } = await db
      .prepare('SELECT number, hash FROM blocks ORDER BY number DESC')
      .all<{ number: number; hash: Hex }>()
    return results
  }

  async function positionsOf(ids: readonly bigint[]): Promise<Map<bigint, TradedPosition>> {
    const found = new Map<bigint, TradedPosition>()
    for (let from = 0; from < ids.length; from += CHUNK) {
      const { results } = await db
        .prepare(
          'SELECT position_id, token, vault FROM positions WHERE position_id IN (SELECT value FROM json_each(?1))',
        )
        .bind(JSON.stringify(ids.slice(from, from + CHUNK).map(Number)))
        .all<TradedPosition & { position_id: number }>()
      for (const { position_id, token, vault } of results) found.set(BigInt(position_id), { token, vault })
    }
    return found
  }

  /** What agents are at the cursor. */
  async function agentsOf(ids: readonly number[]): Promise<AgentRow[]> {
    if (ids.length === 0) return []
    const { results } = await db
      .prepare(
        `SELECT agent_id AS agentId, block, log_index AS logIndex, owner, vault, track, status, timestamp FROM agents
        WHERE until IS NULL AND agent_id IN (SELECT value FROM json_each(?1))`,
      )
      .bind(JSON.stringify(ids))
      .all<AgentRow>()
    return results
  }

  return { migrate, cursor, transaction, unmoved, append, addRelayed, rollback, clear, blocks, positionsOf, agentsOf }
}

const MOVED = 'the cursor has moved '

const insertInto = (table: string, columns: readonly string[], onConflict = 'NOTHING') =>
  `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${columns.map((_, index) => `value ->> ${index}`).join(', ')} FROM json_each(?1) WHERE true ON CONFLICT DO ${onConflict}`

const RELAYED_COLUMNS = ['agent_id', 'block', 'log_index', 'block_hash', 'trade']
// The same transaction in another block than before.
const REPLACED = 'UPDATE SET block_hash = excluded.block_hash, trade = excluded.trade'
const TRADE_COLUMNS = [
  ...['agent_id', 'block', 'log_index', 'position_id', 'type', 'source', 'token', 'vault', 'usdc_amount'],
  ...['token_amount', 'price_usdc', 'realized_pnl_usdc', 'exit_bps', 'rule_index', 'trigger_type', 'trigger_bps'],
  ...['transaction_hash', 'timestamp'],
]
const insertTrades = insertInto('trades', TRADE_COLUMNS)

const digits = (value: bigint | undefined) => (value === undefined ? null : `${value}`)

function tradeValues(trade: Trade): unknown[] {
  const { agentId, blockNumber, logIndex, positionId, type, source, token, vault, rule } = trade
  return [
    ...[Number(agentId), Number(blockNumber), logIndex, Number(positionId), type, source, token, vault],
    ...[trade.usdcAmount, trade.tokenAmount, trade.priceUsdc, trade.realizedPnlUsdc].map(digits),
    ...[trade.exitBps ?? null, trade.ruleIndex ?? null, rule?.triggerType ?? null],
    rule ? Number(rule.triggerBps) : null,
    ...[trade.transactionHash, Number(trade.timestamp)],
  ]
}
