import { HOUR_SECONDS, type Score } from '@agent-trading-service/protocol/leaderboard-formulas'
import { type Period, periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import { type Ordering, orderings, standingFiguresOf } from '@agent-trading-service/protocol/standing-figures'
import { continueRecord, hourOf } from '@agent-trading-service/protocol/track-record'
import type { Address } from 'viem'
import type { Block, Chain } from '../chain/configured-chain.ts'
import {
  createMarket,
  type PassRows,
  type RecordInput,
  recordsOf,
  selectPassRows,
  toPassRows,
} from './continue-records.ts'
import { onOneBranch, type SnapshotReader } from './read-snapshot.ts'
import { readBatch, readRows } from './tables/table.ts'
import {
  type RecordsVersion,
  type Standing,
  selectRecords,
  selectStandings,
  toRecords,
  toStandings,
} from './tables/track-records.ts'

/** Where the next page starts: after this agent, in the order as of `block` at `time` in Unix seconds. */
export type LeaderboardCursor = {
  block: number
  time: number
  start: number
  value: number
  agentId: number
  capitalMode: number
  /** The last rank of this page. */
  rank: number
}

export type LeaderboardQuery = {
  period: Period
  ordering: Ordering
  minTrades: number
  limit: number
  vault?: Address | undefined
  track?: number | undefined
  capitalMode?: number | undefined
  /** A time in the period, in Unix seconds; default: now. */
  at?: number | undefined
  cursor?: LeaderboardCursor | undefined
}

/** A standing, its rank, and how many agents its owner has. */
export type RankedStanding = Standing & { rank: number; owner: Address; agentsOfOwner: number }

/** How long a page's cursor is valid: the records of that time are kept for longer. */
const CURSOR_SECONDS = 2 * HOUR_SECONDS

/**
 * Reads a page of a leaderboard. All pages of one read show the results as of one block; undefined if the cursor is too
 * old for that. `recordsRead` counts the records of agents that the page took: all of them. Throws HISTORY_UNAVAILABLE
 * or CHAIN_UNREACHABLE.
 */
export async function readLeaderboard(
  { snapshots, chain, db }: { snapshots: SnapshotReader; chain: Chain; db: D1Database },
  query: LeaderboardQuery,
  head: Block,
) {
  const { period, at = Number(head.timestamp), limit, ordering } = query
  const start = query.cursor?.start ?? periodStart(period, at)
  const {
    cursor,
    facts: { asOf, lagBlocks },
  } = await snapshots.readSnapshot(head, () => [])
  const { block, time } = query.cursor ?? { block: cursor.block, time: cursor.timestamp }
  if (block > cursor.block || time < cursor.timestamp - CURSOR_SECONDS) return undefined
  const { standings, recordsRead } = await onOneBranch(db, () =>
    readStandings(db, chain, { period, start }, { block, time }),
  )
  const keyOf = ({ figures, agentId, capitalMode }: Standing): [number, number, number] => [
    orderings[ordering](figures),
    agentId,
    capitalMode,
  ]
  const isAfterCursor = (standing: Standing) =>
    query.cursor === undefined ||
    compareKeys(keyOf(standing), [query.cursor.value, query.cursor.agentId, query.cursor.capitalMode]) > 0
  const listed = standings
    .filter(standing => isSelected(standing, query) && isAfterCursor(standing))
    .sort((one, other) => compareKeys(keyOf(one), keyOf(other)))
  const page = listed.slice(0, limit)
  const rank = query.cursor?.rank ?? 0
  const last = listed.length > limit ? page.at(-1) : undefined
  const owners = await readOwners(
    db,
    page.map(({ agentId }) => agentId),
  )
  const next: LeaderboardCursor | undefined = last && {
    block,
    time,
    start,
    value: orderings[ordering](last.figures),
    agentId: last.agentId,
    capitalMode: last.capitalMode,
    rank: rank + page.length,
  }
  return {
    start,
    standings: page.flatMap((standing, index): RankedStanding[] => {
      const owner = owners.get(standing.agentId)
      return owner ? [{ ...standing, ...owner, rank: rank + index + 1 }] : []
    }),
    next,
    asOf,
    lagBlocks,
    recordsRead,
  }
}

const isSelected = (
  { figures, vault, track, capitalMode }: Standing,
  { minTrades, ...query }: LeaderboardQuery,
): boolean =>
  figures.trades >= minTrades &&
  (query.vault === undefined || vault === query.vault) &&
  (query.track === undefined || track === query.track) &&
  (query.capitalMode === undefined || capitalMode === query.capitalMode)

function compareKeys(one: readonly number[], other: readonly number[]): number {
  const index = one.findIndex((value, index) => value !== other[index])
  return index < 0 ? 0 : (one[index] ?? 0) - (other[index] ?? 0)
}

/**
 * Reads the results of all agents in a period as of a block: stored ones, or computed from the newest stored records.
 */
async function readStandings(
  db: D1Database,
  chain: Chain,
  period: { period: Period; start: number },
  { block, time }: { block: number; time: number },
): Promise<{ standings: Standing[]; recordsRead: number }> {
  const [stored, records, ...rows] = await readBatch(db, [
    selectStandings(db, period, time),
    selectRecords(db, time),
    ...selectPassRows(db, { recordsAt: time, block, time }),
  ])
  if (stored !== undefined && stored.length > 0) {
    const standings = toStandings(stored)
    return { standings, recordsRead: standings.length }
  }
  const version = toRecords(records)
  const scored = await scoreRecords(db, chain, version, toPassRows(rows), { ...period, time })
  const standings = scored.map(({ score, agentId, capitalMode, vault, track }) => ({
    ...{ agentId, capitalMode, vault, track, block },
    figures: standingFiguresOf(score),
  }))
  return { standings, recordsRead: Math.max(version.records.length, scored.length) }
}

/** Returns the scores in a period of all records that have one, continued with rows up to a time. */
export async function scoreRecords(
  db: D1Database,
  chain: Chain,
  version: RecordsVersion,
  rows: PassRows,
  { period, start, time }: { period: Period; start: number; time: number },
): Promise<(RecordInput & { score: Score })[]> {
  const inputs = await recordsOf(db, version, rows)
  const firstHour = version.hour > 0 ? version.hour : Math.min(...inputs.flatMap(firstHourOf), hourOf(time))
  const hours = Array.from(
    { length: hourOf(time) - firstHour },
    (_, index) => (firstHour + index + 1) * HOUR_SECONDS - 1,
  )
  const marketOf = await createMarket(db, chain, inputs, [...hours, time])
  return inputs.flatMap(input => {
    const scores = continueRecord(input.record, input.executions, time, marketOf(input))
    const found = scores.find(({ period: name, score }) => name === period && score.start === start)
    return found === undefined ? [] : [{ ...input, score: found.score }]
  })
}

const firstHourOf = ({ executions }: { executions: readonly { timestamp: bigint }[] }) =>
  executions.slice(0, 1).map(({ timestamp }) => hourOf(Number(timestamp)))

const OWNERS = `SELECT agents.agent_id AS agentId, agents.owner, owner_agents.agents AS agentsOfOwner
  FROM json_each(?1) CROSS JOIN agents INDEXED BY agents_now ON agents.agent_id = value AND agents.until IS NULL
  CROSS JOIN owner_agents ON owner_agents.owner = agents.owner`

async function readOwners(db: D1Database, agentIds: readonly number[]) {
  type OwnerRow = { agentId: number; owner: Address; agentsOfOwner: number }
  const rows = await readRows<OwnerRow>(db, OWNERS, JSON.stringify(agentIds))
  return new Map(rows.map(({ agentId, ...owner }) => [agentId, owner]))
}
