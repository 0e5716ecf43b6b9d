import { periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import type { Chain } from '../chain/configured-chain.ts'
import { indexKeyOf, selectCursor, toCursor } from './tables/cursor.ts'
import type { FeedbackRow, WeeklyResult } from './tables/feedback.ts'
import { readRows, type SqlRow } from './tables/table.ts'

/** Weeks older than this many are not posted any more. */
const MAX_WEEKS_BACK = 8
const WEEK_SECONDS = 604_800

const RESULTS_WITHOUT_FILE = `SELECT agent_id AS agentId, week_start AS weekStart, content
  FROM feedback INDEXED BY feedback_ended WHERE state = 'ended' AND week_start >= ?1 ORDER BY week_start, agent_id LIMIT ?2`
const PENDING_FILES = `SELECT agent_id AS agentId, week_start AS weekStart, erc8004_agent_id AS erc8004AgentId, value, content,
    hash, created_block AS createdBlock
  FROM feedback INDEXED BY feedback_pending WHERE state = 'pending' ORDER BY attempts, week_start LIMIT ?1`
const FILE = `SELECT content FROM feedback WHERE agent_id = ?1 AND week_start = ?2 AND state IN ('pending', 'posted')`
const LINKED_AGENTS = `SELECT agent_id FROM events WHERE contract = ?1 AND name = 'ERC8004IdentityLinked'
  GROUP BY agent_id ORDER BY max(block) DESC LIMIT ?2`

export function createFeedback(db: D1Database, chain: Chain) {
  async function update({ agentId, weekStart }: FeedbackRow, change: string): Promise<void> {
    const sql = `UPDATE feedback SET ${change} WHERE agent_id = ?1 AND week_start = ?2`
    await db.prepare(sql).bind(agentId, weekStart).run()
  }

  return {
    /** Returns weekly results that have no file yet, and the newest final block. */
    async findResults(limit: number): Promise<{ results: WeeklyResult[]; finalBlock: number }> {
      const row = await selectCursor(db).first<SqlRow>()
      const cursor = toCursor(row, indexKeyOf(chain))
      if (cursor === undefined || cursor.final < 0) return { results: [], finalBlock: 0 }
      const oldest = periodStart('week', cursor.timestamp) - MAX_WEEKS_BACK * WEEK_SECONDS
      const rows = await readRows<Pick<FeedbackRow, 'content'>>(db, RESULTS_WITHOUT_FILE, oldest, limit)
      return {
        results: rows.map(({ content, ...result }) => ({ ...result, ...JSON.parse(content) }) as WeeklyResult),
        finalBlock: cursor.final,
      }
    },

    /** Stores a file to post; it never changes again. `skipped` stands for an agent that lost its identity. */
    async add(row: FeedbackRow, state: 'pending' | 'skipped'): Promise<void> {
      await db
        .prepare(
          `UPDATE feedback SET state = ?3, erc8004_agent_id = ?4, value = ?5, content = ?6, hash = ?7, created_block = ?8
          WHERE agent_id = ?1 AND week_start = ?2 AND state = 'ended'`,
        )
        .bind(row.agentId, row.weekStart, state, row.erc8004AgentId, row.value, row.content, row.hash, row.createdBlock)
        .run()
    },

    /** Returns files to post, those with the fewest attempts first. */
    findPending: (limit: number) => readRows<FeedbackRow>(db, PENDING_FILES, limit),

    countAttempt: (file: FeedbackRow) => update(file, 'attempts = attempts + 1'),

    /** Marks a file as posted and final. */
    markPosted: (file: FeedbackRow) => update(file, "state = 'posted'"),

    /** Reads a file; undefined if there is none. */
    async read(agentId: bigint, weekStart: number): Promise<string | undefined> {
      const read = readRows<{ content: string }>(db, FILE, Number(agentId), weekStart)
      const [row] = await read.catch(() => []) // the indexer creates the tables when it first starts
      return row?.content
    },

    /** Returns the agents with the most recently linked identities. */
    async findLinkedAgents(limit: number): Promise<bigint[]> {
      const read = readRows<{ agent_id: number }>(db, LINKED_AGENTS, chain.contracts.AgentRegistry, limit)
      return (await read.catch(() => [])).map(({ agent_id }) => BigInt(agent_id))
    },
  }
}
