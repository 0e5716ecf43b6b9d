import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { lastAtOrBefore } from '@agent-trading-service/protocol/last-at-or-before'
import { standingFiguresOf } from '@agent-trading-service/protocol/standing-figures'
import {
  type BlockTime,
  continueRecord,
  isCurrent,
  isExecution,
  isHolding,
  type SampleMarket,
  type SamplePrice,
  type TrackRecord,
} from '@agent-trading-service/protocol/track-record'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Address } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { knownDecimals } from '../chain/token-decimals-cache.ts'
import { readCurrentAgents } from './tables/agents.ts'
import type { IndexCursor } from './tables/cursor.ts'
import {
  deleteEndedVersions,
  insertStandings,
  insertTrackRecords,
  type RecordRow,
  readTrackRecords,
  type Standing,
} from './tables/track-records.ts'
import { type TradeRow, toTrade } from './tables/trades.ts'

/** Versions are kept this long after they ended, so that the pages of one read show one block. */
export const KEPT_VERSION_BLOCKS = 1_200

const TRADES_AFTER = `SELECT trades.* FROM json_each(?1) CROSS JOIN trades
  ON trades.agent_id = value ->> 0 AND trades.block > value ->> 1 AND trades.block <= ?2
  ORDER BY trades.block, trades.log_index`

/**
 * Extends the track records of agents up to the cursor. Returns statements that store them and their standings; run
 * them in a transaction that fails if the cursor has moved.
 */
export async function continueTrackRecords(
  db: D1Database,
  chain: Chain,
  agentIds: readonly number[],
  cursor: IndexCursor,
): Promise<D1PreparedStatement[]> {
  if (agentIds.length === 0) return []
  const stored = await readTrackRecords(db, agentIds)
  const trades = await readExecutions(db, agentIds, stored, cursor.block)
  const agents = new Map((await readCurrentAgents(db, agentIds)).map(agent => [agent.agentId, agent]))
  const hasChanged = ({ agentId, record, executions }: RecordWithTrades) =>
    record === undefined ||
    executions.length > 0 ||
    !isCurrent(record, cursor.timestamp) ||
    (agents.get(agentId)?.block ?? 0) > record.seenBlock
  const due = assignTrades(stored, trades).filter(hasChanged)
  if (due.length === 0) return []
  const market = await readMarket(db, chain, due, cursor.block)
  const rows: RecordRow[] = []
  const standings: Standing[] = []
  for (const { agentId, capitalMode, record: before, executions } of due) {
    const until: BlockTime = { block: cursor.block, timestamp: cursor.timestamp }
    const continued = continueRecord(before, executions, until, market(agentId))
    const agent = agents.get(agentId)
    if (continued === undefined || agent === undefined) continue
    const { vault, track } = agent
    rows.push({ agentId, capitalMode, record: continued.record })
    for (const { period, score } of continued.scores)
      standings.push({
        agentId,
        capitalMode,
        period,
        start: score.start,
        block: cursor.block,
        vault,
        track,
        figures: standingFiguresOf(score),
      })
  }
  const obsolete = Math.min(cursor.final, cursor.block - KEPT_VERSION_BLOCKS)
  return [
    ...insertTrackRecords(db, cursor.block, rows),
    ...insertStandings(db, standings),
    deleteEndedVersions(db, 'track_records', cursor.final),
    deleteEndedVersions(db, 'standings', obsolete),
  ]
}

/** Trades of a deployment without capital modes move the vault's money. */
const modeOf = ({ capitalMode = CapitalMode.Real }: Trade): number => capitalMode

async function readExecutions(
  db: D1Database,
  agentIds: readonly number[],
  stored: readonly RecordRow[],
  upToBlock: number,
): Promise<Trade[]> {
  const records = Map.groupBy(stored, ({ agentId }) => agentId)
  const through = agentIds.map(agentId => [agentId, tradesReadThrough(records.get(agentId) ?? [])])
  const { results } = await db.prepare(TRADES_AFTER).bind(JSON.stringify(through), upToBlock).all<TradeRow>()
  return results.map(toTrade).filter(isExecution)
}

/**
 * Returns the block up to which all trades of an agent are in its records. When the newest of them was stored, the trades of
 * both modes were read: a record that was not stored with it, or does not exist, had none.
 */
function tradesReadThrough(records: readonly RecordRow[]): number {
  const newest = Math.max(-1, ...records.map(({ record }) => record.seenBlock))
  const storedLast = records.filter(({ record }) => record.seenBlock === newest)
  return Math.min(newest, ...storedLast.map(({ record }) => record.tradesThrough))
}

type RecordWithTrades = { agentId: number; capitalMode: number; record: TrackRecord | undefined; executions: Trade[] }

/** Returns every record with its new trades, and an empty record for a new capital mode. */
function assignTrades(stored: readonly RecordRow[], trades: readonly Trade[]): RecordWithTrades[] {
  const keyOf = (agentId: number, capitalMode: number) => `${agentId} ${capitalMode}`
  const records = new Map<string, RecordWithTrades>()
  for (const row of stored) records.set(keyOf(row.agentId, row.capitalMode), { ...row, executions: [] })
  for (const trade of trades) {
    const agentId = Number(trade.agentId)
    const key = keyOf(agentId, modeOf(trade))
    const due = records.get(key) ?? { agentId, capitalMode: modeOf(trade), record: undefined, executions: [] }
    records.set(key, due)
    if (Number(trade.blockNumber) > (due.record?.tradesThrough ?? -1)) due.executions.push(trade)
  }
  return [...records.values()]
}

async function readMarket(
  db: D1Database,
  chain: Chain,
  due: readonly RecordWithTrades[],
  upToBlock: number,
): Promise<(agentId: number) => SampleMarket> {
  const tokens = new Set(
    due.flatMap(({ record, executions }) => [
      ...Object.keys(record?.holdings ?? {}),
      ...executions.map(({ token }) => token),
    ]),
  ) as Set<Address>
  const fromBlocks = due.map(({ record, executions }) =>
    record && isHolding(record) ? record.pricesFrom : Number(executions[0]?.blockNumber ?? upToBlock),
  )
  const from = Math.min(upToBlock, ...fromBlocks)
  const [priceAt, capAt] = await Promise.all([
    readPriceHistory(db, [...tokens], { from, to: upToBlock }),
    readCapHistory(
      db,
      due.map(({ agentId }) => agentId),
      upToBlock,
    ),
  ])
  const decimals = knownDecimals(chain)
  return agentId => ({
    priceAt,
    capAt: time => capAt(agentId, time),
    decimalsOf(token) {
      const known = decimals.get(token)
      if (known === undefined) throw new Error(`The decimals of ${token} are unknown.`)
      return known
    },
  })
}

/**
 * The last price of each hour and token in a range of blocks. The other columns come from the row with the maximum.
 */
const LAST_PRICE_PER_HOUR = `SELECT token, timestamp, price, observed_at, max(block * 1000000 + log_index) FROM prices
  WHERE token IN (SELECT value FROM json_each(?1)) AND block > ?2 AND block <= ?3
  GROUP BY token, timestamp / 3600 ORDER BY timestamp`
const LAST_PRICE_BEFORE = `SELECT prices.token, timestamp, price, observed_at FROM json_each(?1) CROSS JOIN prices
  ON prices.token = value AND (block, log_index) = (
    SELECT block, log_index FROM prices WHERE token = value AND block <= ?2 ORDER BY block DESC, log_index DESC LIMIT 1)`

type PriceRow = { token: Address; timestamp: number; price: string; observed_at: number }

/**
 * Reads the prices of tokens in a range of blocks. The returned function finds the last price at the end of an hour, or
 * at the last block.
 */
export async function readPriceHistory(
  db: D1Database,
  tokens: readonly Address[],
  { from, to }: { from: number; to: number },
): Promise<(token: Address, time: number) => SamplePrice | undefined> {
  const json = JSON.stringify(tokens)
  const [before, later] = await db.batch<PriceRow>([
    db.prepare(LAST_PRICE_BEFORE).bind(json, from),
    db.prepare(LAST_PRICE_PER_HOUR).bind(json, from, to),
  ])
  const rows = [...(before?.results ?? []), ...(later?.results ?? [])]
  const byToken = Map.groupBy(rows, ({ token }) => token)
  return (token, time) => {
    const found = lastAtOrBefore(byToken.get(token) ?? [], time)
    return found && { price: BigInt(found.price), observedAt: found.observed_at }
  }
}

const CAPS = `SELECT agent_id, coalesce(args ->> 'newCap', args ->> 'cap') AS cap, timestamp FROM events
  WHERE agent_id IN (SELECT value FROM json_each(?1)) AND name IN ('AllocationCreated', 'AllocationCapUpdated')
    AND block <= ?2
  ORDER BY block, log_index`

/** Reads the allocation caps of agents over time. The returned function finds the last cap above 0. */
export async function readCapHistory(
  db: D1Database,
  agentIds: readonly number[],
  upToBlock: number,
): Promise<(agentId: number, time: number) => bigint> {
  const { results } = await db
    .prepare(CAPS)
    .bind(JSON.stringify(agentIds), upToBlock)
    .all<{ agent_id: number; cap: string; timestamp: number }>()
  const positive = results.filter(({ cap }) => cap !== '0')
  const byAgent = Map.groupBy(positive, ({ agent_id }) => agent_id)
  return (agentId, time) => BigInt(lastAtOrBefore(byAgent.get(agentId) ?? [], time)?.cap ?? 0)
}
