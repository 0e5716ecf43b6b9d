import {
  type Extreme,
  MAX_PNL_DAYS,
  type TokenTotals,
  type TradeTotals,
} from '@agent-trading-service/protocol/agent-statistics'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { type Period, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import type { Address } from 'viem'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { selectPassRows, toPassRows } from './continue-records.ts'
import { scoreRecords } from './read-leaderboard.ts'
import { onOneBranch, rowsReadBy, type SnapshotReader } from './read-snapshot.ts'
import type { SqlRow } from './tables/table.ts'
import { selectRecordsOfAgent, toRecords } from './tables/track-records.ts'

/** `capitalMode` is by default that of the agent's newest trade. */
export type StatisticsQuery = { agentId: bigint; period: Period; capitalMode?: number | undefined }

/**
 * Reads what an agent's trades in the present period add up to, and its score of that period, as of the newest indexed
 * block. `rowsRead` counts those of the index. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readAgentTotals(
  { snapshots, chain, db }: { snapshots: SnapshotReader; chain: Chain; db: D1Database },
  { agentId, period, capitalMode: requestedMode }: StatisticsQuery,
  head: Promise<Block>,
) {
  const {
    cursor,
    facts: { asOf, lagBlocks },
  } = await snapshots.readSnapshot(head, () => [])
  const { block, timestamp: time } = cursor
  const start = periodStart(period, time)
  const id = Number(agentId)
  return onOneBranch(db, async () => {
    const capitalMode = requestedMode ?? (await readNewestMode(db, id, block))
    const read = await db.batch<SqlRow>([
      ...[TOKENS, DAYS, CLOSED, EXTREMES].map(sql => db.prepare(sql).bind(id, start, block, capitalMode)),
      selectRecordsOfAgent(db, id, time),
      ...selectPassRows(db, { recordsAt: time, block, time, agentId: id }),
    ])
    const [tokens = [], days = [], closed = [], extremes = [], records, ...rows] = read.map(({ results }) => results)
    const scored = await scoreRecords(db, chain, toRecords(records), toPassRows(rows), { period, start, time })
    const totals: TradeTotals = {
      tokens: tokens.map(toTokenTotals),
      days: days.map(({ day, realized }) => ({ day: Number(day), realized: BigInt(`${realized}`) })),
      closed: toClosedTotals(closed[0] ?? {}, extremes),
    }
    return {
      start,
      capitalMode,
      totals,
      score: scored.find(input => input.capitalMode === capitalMode)?.score,
      rowsRead: rowsReadBy(read),
      asOf,
      lagBlocks,
    }
  })
}

const REAL = CapitalMode.Real
/** Trades of a deployment without capital modes move the vault's money. */
const MODE = `coalesce(trades.capital_mode, ${REAL})`
/** The executions of agent ?1 from ?2 on, up to block ?3, in capital mode ?4. */
const EXECUTIONS = `trades.agent_id = ?1 AND timestamp >= ?2 AND trades.block <= ?3 AND ${MODE} = ?4
  AND type <> 'ExitLadderUpdated'`
const IS_PURCHASE = `type IN ('PositionOpened', 'PositionIncreased')`
/** Sums are texts: a number of JavaScript would lose digits. */
const sum = (amount: string) => `CAST(coalesce(sum(${amount}), 0) AS TEXT)`
const integer = (column: string) => `CAST(${column} AS INTEGER)`

const TOKENS = `SELECT token, count(*) AS trades, ${sum(integer('realized_pnl_usdc'))} AS realized,
    ${sum(integer('oracle_value_usdc'))} AS value,
    ${sum(`iif(oracle_value_usdc IS NULL, 0, (${integer('usdc_amount')} - ${integer('oracle_value_usdc')}) * iif(${IS_PURCHASE}, 1, -1))`)} AS cost
  FROM trades WHERE ${EXECUTIONS} GROUP BY token ORDER BY token`
const DAYS = `SELECT * FROM (
    SELECT timestamp / 86400 * 86400 AS day, ${sum(integer('realized_pnl_usdc'))} AS realized
    FROM trades WHERE ${EXECUTIONS} AND NOT ${IS_PURCHASE} GROUP BY day ORDER BY day DESC LIMIT ${MAX_PNL_DAYS})
  ORDER BY day`
/** The closings among them, with the PnL of their positions and how long those were held. */
const CLOSINGS = `SELECT trades.position_id, ${integer('position_pnl_usdc')} AS pnl, timestamp - opened_at AS held
  FROM trades INDEXED BY trades_closed CROSS JOIN positions ON positions.position_id = trades.position_id
  WHERE position_pnl_usdc IS NOT NULL AND ${EXECUTIONS}`
const CLOSED = `SELECT count(*) AS count, ${sum('pnl > 0')} AS wins, ${sum('pnl < 0')} AS losses, ${sum('max(pnl, 0)')} AS profit,
    ${sum('max(-pnl, 0)')} AS loss, ${sum('held')} AS held FROM (${CLOSINGS})`
const extreme = (name: string, value: string, order: string) =>
  `SELECT * FROM (SELECT '${name}' AS name, position_id, CAST(${value} AS TEXT) AS value FROM closings
    ORDER BY ${order}, position_id LIMIT 1)`
const EXTREMES = `WITH closings AS (${CLOSINGS}) ${[
  extreme('longest', 'held', 'held DESC'),
  extreme('best', 'pnl', 'pnl DESC'),
  extreme('worst', 'pnl', 'pnl'),
].join(' UNION ALL ')}`

async function readNewestMode(db: D1Database, agentId: number, block: number): Promise<number> {
  const mode = await db
    .prepare(
      `SELECT ${MODE} AS mode FROM trades WHERE agent_id = ?1 AND block <= ?2 ORDER BY block DESC, log_index DESC LIMIT 1`,
    )
    .bind(agentId, block)
    .first<number>('mode')
  return mode ?? REAL
}

const toTokenTotals = ({ token, trades, ...amounts }: SqlRow): TokenTotals => ({
  token: token as Address,
  trades: Number(trades),
  realized: BigInt(`${amounts.realized}`),
  cost: BigInt(`${amounts.cost}`),
  value: BigInt(`${amounts.value}`),
})

function toClosedTotals(
  { count, wins, losses, profit, loss, held }: SqlRow,
  extremes: readonly SqlRow[],
): TradeTotals['closed'] {
  const find = (name: string): Extreme | undefined => {
    const row = extremes.find(row => row.name === name)
    return row && { positionId: BigInt(`${row.position_id}`), value: BigInt(`${row.value}`) }
  }
  return {
    count: Number(count ?? 0),
    wins: Number(wins ?? 0),
    losses: Number(losses ?? 0),
    profit: BigInt(`${profit ?? 0}`),
    loss: BigInt(`${loss ?? 0}`),
    held: BigInt(`${held ?? 0}`),
    longest: find('longest'),
    best: find('best'),
    worst: find('worst'),
  }
}
