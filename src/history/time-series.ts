import type { Address } from 'viem'
import type { Block } from '../chain/chain.ts'
import type { Viewer } from './consistent-read.ts'

/** The part of a history that is asked for: one point in each interval that has a sample, at most MOST_POINTS. */
export type Range = { from: number; to: number; seconds: number }

export const MOST_POINTS = 1_000

/** A sample is of a block of the chain; times are Unix seconds, amounts USDC base units. */
type Place = { blockNumber: bigint; timestamp: bigint }
export type EquityPoint = Place & {
  equity: bigint
  realized: bigint
  unrealized: bigint
  drawdownBps: number
  openCount: number
  isStale: boolean
}
export type WorthPoint = Place & { sharePrice: bigint; totalAssets: bigint; totalShares: bigint }

/** The points of a range, oldest first, and what was the case before it. */
export type Series<Point> = { points: Point[]; opening: Point | undefined; asOf: Block; lagBlocks: number }

/** How many points a range may have. */
export const pointsOf = ({ from, to, seconds }: Range): number =>
  Math.floor(to / seconds) - Math.floor(from / seconds) + 1

/** An agent's equity over time. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export const readEquity = (viewer: Viewer, agentId: bigint, range: Range, head: Block): Promise<Series<EquityPoint>> =>
  readSeries(viewer, { table: 'equity', key: 'agent_id', of: Number(agentId) }, range, head, toEquity)

/** What a vault's shares were worth over time. Throws as `readEquity` does. */
export const readWorths = (viewer: Viewer, vault: Address, range: Range, head: Block): Promise<Series<WorthPoint>> =>
  readSeries(viewer, { table: 'vault_worth', key: 'vault', of: vault }, range, head, toWorth)

type Source = { table: 'equity' | 'vault_worth'; key: 'agent_id' | 'vault'; of: number | string }

async function readSeries<Row, Point>(
  viewer: Viewer,
  { table, key, of }: Source,
  { from, to, seconds }: Range,
  head: Block,
  toPoint: (row: Row) => Point,
): Promise<Series<Point>> {
  const { results, asOf, lagBlocks } = await viewer.view({
    queries: db => [
      db.prepare(lastOfEach(table, key)).bind(of, from - (from % seconds), seconds, from, to),
      db
        .prepare(
          `SELECT * FROM ${table} WHERE ${key} = ?1 AND timestamp < ?2 ORDER BY timestamp DESC, block DESC LIMIT 1`,
        )
        .bind(of, from),
    ],
    head: Promise.resolve(head),
    filter: { address: [], topics: [] },
    until: 0n, // a sample is no log
  })
  const [points = [], opening = []] = results.map(({ results }) => (results as Row[]).map(toPoint))
  return { points, opening: opening[0], asOf, lagBlocks }
}

/** One look into the table's key per interval, however many samples there are. */
export const lastOfEach = (table: 'equity' | 'vault_worth', key: 'agent_id' | 'vault') =>
  `WITH RECURSIVE intervals (start) AS (VALUES (?2) UNION ALL SELECT start + ?3 FROM intervals WHERE start + ?3 <= ?5)
  SELECT sample.* FROM intervals CROSS JOIN ${table} AS sample
  WHERE sample.${key} = ?1 AND (sample.timestamp, sample.block) = (
    SELECT timestamp, block FROM ${table}
    WHERE ${key} = ?1 AND timestamp >= max(start, ?4) AND timestamp <= min(start + ?3 - 1, ?5)
    ORDER BY timestamp DESC, block DESC LIMIT 1)
  ORDER BY start`

const placeOf = ({ block, timestamp }: { block: number; timestamp: number }): Place => ({
  blockNumber: BigInt(block),
  timestamp: BigInt(timestamp),
})

type EquityRow = {
  block: number
  timestamp: number
  equity: string
  realized: string
  unrealized: string
  drawdown_bps: number
  open_count: number
  stale: number
}

const toEquity = (row: EquityRow): EquityPoint => ({
  ...placeOf(row),
  equity: BigInt(row.equity),
  realized: BigInt(row.realized),
  unrealized: BigInt(row.unrealized),
  drawdownBps: row.drawdown_bps,
  openCount: row.open_count,
  isStale: row.stale === 1,
})

type WorthRow = { block: number; timestamp: number; share_price: string; total_assets: string; total_shares: string }

const toWorth = (row: WorthRow): WorthPoint => ({
  ...placeOf(row),
  sharePrice: BigInt(row.share_price),
  totalAssets: BigInt(row.total_assets),
  totalShares: BigInt(row.total_shares),
})
