import type { Address } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import type { SnapshotReader } from './read-index-to-head.ts'
import { type EquityPoint, type SharePricePoint, toEquityPoint, toSharePricePoint } from './tables/samples.ts'

/**
 * A range of a time series, in Unix seconds, with the length of an interval. The series has the last sample of each
 * interval.
 */
export type TimeRange = { from: number; to: number; intervalSeconds: number }

/** The samples of a range, oldest first, and the last one before it. */
export type TimeSeries<Point> = { points: Point[]; opening: Point | undefined; asOf: Block; lagBlocks: number }

/** Returns the number of intervals of a range. */
export const intervalCount = ({ from, to, intervalSeconds }: TimeRange): number =>
  Math.floor(to / intervalSeconds) - Math.floor(from / intervalSeconds) + 1

type SampleTable<Point> = {
  table: 'equity' | 'vault_worth'
  keyColumn: 'agent_id' | 'vault'
  toPoint: (row: Record<string, unknown>) => Point
}

/** Reads an agent's equity over time. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export const readEquity = (
  snapshots: SnapshotReader,
  agentId: bigint,
  range: TimeRange,
  head: Block,
): Promise<TimeSeries<EquityPoint>> => readTimeSeries(snapshots, EQUITY, Number(agentId), range, head)

/** Reads a vault's share price over time. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export const readSharePrices = (
  snapshots: SnapshotReader,
  vault: Address,
  range: TimeRange,
  head: Block,
): Promise<TimeSeries<SharePricePoint>> => readTimeSeries(snapshots, VAULT_WORTH, vault, range, head)

const EQUITY: SampleTable<EquityPoint> = { table: 'equity', keyColumn: 'agent_id', toPoint: toEquityPoint }
const VAULT_WORTH: SampleTable<SharePricePoint> = {
  table: 'vault_worth',
  keyColumn: 'vault',
  toPoint: toSharePricePoint,
}

async function readTimeSeries<Point>(
  snapshots: SnapshotReader,
  { table, keyColumn, toPoint }: SampleTable<Point>,
  key: number | string,
  { from, to, intervalSeconds }: TimeRange,
  head: Block,
): Promise<TimeSeries<Point>> {
  const firstInterval = from - (from % intervalSeconds)
  const { results, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: db => [
      db.prepare(lastSamplePerInterval(table, keyColumn)).bind(key, firstInterval, intervalSeconds, from, to),
      db
        .prepare(
          `SELECT * FROM ${table} WHERE ${keyColumn} = ?1 AND timestamp < ?2 ORDER BY timestamp DESC, block DESC LIMIT 1`,
        )
        .bind(key, from),
    ],
    head: Promise.resolve(head),
    filter: { address: [], topics: [] },
    until: 0n, // samples do not come from logs
  })
  const [points = [], [opening] = []] = results.map(({ results }) => results.map(toPoint))
  return { points, opening, asOf, lagBlocks }
}

/** Selects the last sample of each interval, with one index lookup per interval however many samples there are. */
export const lastSamplePerInterval = (table: 'equity' | 'vault_worth', keyColumn: 'agent_id' | 'vault'): string =>
  `WITH RECURSIVE intervals (start) AS (VALUES (?2) UNION ALL SELECT start + ?3 FROM intervals WHERE start + ?3 <= ?5)
  SELECT sample.* FROM intervals CROSS JOIN ${table} AS sample
  WHERE sample.${keyColumn} = ?1 AND (sample.timestamp, sample.block) = (
    SELECT timestamp, block FROM ${table}
    WHERE ${keyColumn} = ?1 AND timestamp >= max(start, ?4) AND timestamp <= min(start + ?3 - 1, ?5)
    ORDER BY timestamp DESC, block DESC LIMIT 1)
  ORDER BY start`
