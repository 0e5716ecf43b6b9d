import type { Address } from 'viem'
import type { WorthReading } from '../../chain/equity.ts'
import type { Cursor, Store } from '../store.ts'

/** How often everything that can have moved is looked at, in seconds of the chain. */
export const QUARTER_SECONDS = 900

const HOUR_SECONDS = 3_600

/** To where samples have been taken: a block for what changed, a quarter of an hour for everything. */
export type Mark = { changedTo: number; quarter: number }

/** Who is to be looked at, and what may be noted when all of them have been. */
export type Due = { agents: bigint[]; vaults: Address[]; mark: Mark }

export type Samples = ReturnType<typeof openSamples>

/** The samples of the index, as its one writer sees them. */
export function openSamples(db: D1Database, { transaction, unmoved }: Pick<Store, 'transaction' | 'unmoved'>) {
  async function column(sql: string, ...values: (string | number)[]): Promise<unknown[]> {
    const rows = await db
      .prepare(sql)
      .bind(...values)
      .raw<[unknown]>()
    return rows.map(([value]) => value)
  }

  /** Who has traded, or has another cap, since the mark; in a new quarter of an hour also who has open positions. */
  async function due({ block, timestamp }: Cursor, vaults: readonly Address[]): Promise<Due> {
    const mark = { changedTo: block, quarter: Math.floor(timestamp / QUARTER_SECONDS) }
    const before = await db.prepare('SELECT changed_to, quarter FROM sampling').first<{
      changed_to: number
      quarter: number
    }>()
    if (before === null)
      return { agents: ids(await column('SELECT agent_id FROM agents WHERE until IS NULL')), vaults: [...vaults], mark }
    const since = [before.changed_to, block]
    const isNewQuarter = before.quarter !== mark.quarter
    const agents = [
      ...(await column(CHANGED_AGENTS, ...since)),
      ...(isNewQuarter ? await column('SELECT agent_id FROM equity WHERE until IS NULL AND open_count > 0') : []),
    ]
    const changed = isNewQuarter ? vaults : ((await column(CHANGED_VAULTS, ...since)) as Address[])
    return { agents: ids(agents), vaults: vaults.filter(vault => changed.includes(vault)), mark }
  }

  /**
   * Adds what was read, of a block that the branch of the cursor has. Earlier samples of the same hour are of no use once
   * they can no longer become its last one again. Throws CursorMoved.
   */
  async function write(cursor: Cursor, { block, equities, worths }: WorthReading): Promise<void> {
    const place = [Number(block.timestamp), Number(block.number)]
    const agents = JSON.stringify([...equities.keys()].map(Number))
    const vaults = JSON.stringify([...worths.keys()])
    const hour = Number(block.timestamp) - (Number(block.timestamp) % HOUR_SECONDS)
    await transaction([
      unmoved(cursor.hash),
      db
        .prepare(
          `UPDATE equity INDEXED BY equity_newest SET until = ?2
          WHERE until IS NULL AND block < ?2 AND agent_id IN (SELECT value FROM json_each(?1))`,
        )
        .bind(agents, Number(block.number)),
      db
        .prepare(
          `INSERT INTO equity (agent_id, timestamp, block, vault, cap, used, equity, realized, unrealized, drawdown_bps, open_count, stale)
          SELECT value ->> 0, ?2, ?3, agents.vault, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8
          FROM json_each(?1) JOIN agents ON agents.agent_id = value ->> 0 AND agents.until IS NULL
          WHERE NOT EXISTS (
            SELECT 1 FROM equity INDEXED BY equity_newest
            WHERE equity.agent_id = value ->> 0 AND equity.until IS NULL AND equity.block >= ?3)`,
        )
        .bind(
          JSON.stringify(
            [...equities].map(([agentId, equity]) => [
              ...[Number(agentId), `${equity.cap}`, `${equity.used}`, `${equity.current}`],
              ...[`${equity.realized}`, `${equity.unrealized}`, Number(equity.drawdownBps), equity.openCount],
              equity.staleTokens.length > 0 ? 1 : 0,
            ]),
          ),
          ...place,
        ),
      db
        .prepare(
          `INSERT INTO vault_worth (vault, timestamp, block, total_assets, idle_assets, total_shares, share_price)
          SELECT value ->> 0, ?2, ?3, value ->> 1, value ->> 2, value ->> 3, value ->> 4
          FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`,
        )
        .bind(
          JSON.stringify(
            [...worths].map(([vault, { totalAssets, idleAssets, totalShares, sharePrice }]) => [
              vault,
              ...[totalAssets, idleAssets, totalShares, sharePrice].map(String),
            ]),
          ),
          ...place,
        ),
      ...[thin('equity', 'agent_id', agents), thin('vault_worth', 'vault', vaults)].map(([sql, of]) =>
        db.prepare(sql).bind(of, hour, cursor.final),
      ),
    ])
  }

  /** Notes that everybody who was due has been looked at. Throws CursorMoved. */
  async function note(cursor: Cursor, { changedTo, quarter }: Mark): Promise<void> {
    await transaction([
      unmoved(cursor.hash),
      db
        .prepare(
          `INSERT INTO sampling (id, changed_to, quarter) VALUES (1, ?1, ?2)
          ON CONFLICT (id) DO UPDATE SET changed_to = ?1, quarter = ?2`,
        )
        .bind(changedTo, quarter),
    ])
  }

  return { due, write, note }
}

const ids = (values: unknown[]) => [...new Set(values)].map(value => BigInt(value as number))

const CHANGED_AGENTS = `SELECT agent_id FROM trades INDEXED BY trades_place WHERE block > ?1 AND block <= ?2
  UNION SELECT agent_id FROM events WHERE block > ?1 AND block <= ?2 AND agent_id IS NOT NULL`
const CHANGED_VAULTS = `SELECT vault FROM trades INDEXED BY trades_place WHERE block > ?1 AND block <= ?2
  UNION SELECT contract FROM events WHERE block > ?1 AND block <= ?2 AND name IN ('Deposit', 'Withdraw')`

/** Deletes what is older, in the hour that begins at ?2, than the newest one of it that is final. */
const thin = (table: string, key: string, of: string): [sql: string, of: string] => [
  `DELETE FROM ${table} WHERE ${key} IN (SELECT value FROM json_each(?1)) AND timestamp >= ?2 AND block < (
    SELECT max(block) FROM ${table} AS later
    WHERE later.${key} = ${table}.${key} AND later.timestamp >= ?2 AND later.block <= ?3)`,
  of,
]
