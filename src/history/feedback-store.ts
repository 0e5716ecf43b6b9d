import { periodStart } from '@agent-trading-service/protocol/leaderboard-period'
import type { Chain } from '../chain/configured-chain.ts'
import { indexKeyOf, selectCursor, toCursor } from './tables/cursor.ts'
import type { FeedbackRow, WeeklyResult } from './tables/feedback.ts'

/** Weeks older than this many are not posted any more. */
const MAX_WEEKS_BACK = 8
const WEEK_SECONDS = 604_800

const RESULTS_WITHOUT_FILE = `SELECT agent_id AS agentId, week_start AS weekStart, content
  FROM feedback INDEXED BY feedback_ended WHERE state = 'ended' AND week_start >= ?1 ORDER BY week_start, agent_id LIMIT ?2`
const COLUMNS = `agent_id AS agentId, week_start AS weekStart, erc8004_agent_id AS erc8004AgentId, value, content, hash,
  created_block AS createdBlock`

/** Creates access to the weekly feedback files and their state on chain. */
export function createFeedback(db: D1Database, chain: Chain) {
  return {
    /** Returns weekly results that have no file yet, and the newest final block. */
    async findResults(limit: number): Promise<{ results: WeeklyResult[]; finalBlock: number }> {
      const row = await selectCursor(db).first<Record<string, unknown>>()
      const cursor = toCursor(row, indexKeyOf(chain))
      if (cursor === undefined || cursor.final < 0) return { results: [], finalBlock: 0 }
      const oldest = periodStart('week', cursor.timestamp) - MAX_WEEKS_BACK * WEEK_SECONDS
      const { results } = await db
        .prepare(RESULTS_WITHOUT_FILE)
        .bind(oldest, limit)
        .all<{ agentId: number; weekStart: number; content: string }>()
      return {
        results: results.map(({ content, ...result }) => ({
          ...result,
          ...(JSON.parse(content) as Omit<WeeklyResult, 'agentId' | 'weekStart'>),
        })),
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
    async findPending(limit: number): Promise<FeedbackRow[]> {
      const { results } = await db
        .prepare(
          `SELECT ${COLUMNS} FROM feedback INDEXED BY feedback_pending WHERE state = 'pending'
          ORDER BY attempts, week_start LIMIT ?1`,
        )
        .bind(limit)
        .all<FeedbackRow>()
      return results
    },

    /** Increments a file's number of attempts. */
    async countAttempt({ agentId, weekStart }: FeedbackRow): Promise<void> {
      await db
        .prepare('UPDATE feedback SET attempts = attempts + 1 WHERE agent_id = ?1 AND week_start = ?2')
        .bind(agentId, weekStart)
        .run()
    },

    /** Marks a file as posted and final. */
    async markPosted({ agentId, weekStart }: FeedbackRow): Promise<void> {
      await db
        .prepare("UPDATE feedback SET state = 'posted' WHERE agent_id = ?1 AND week_start = ?2")
        .bind(agentId, weekStart)
        .run()
    },

    /** Reads a file; undefined if there is none. */
    async read(agentId: bigint, weekStart: number): Promise<string | undefined> {
      const row = await db
        .prepare(
          "SELECT content FROM feedback WHERE agent_id = ?1 AND week_start = ?2 AND state IN ('pending', 'posted')",
        )
        .bind(Number(agentId), weekStart)
        .first<{ content: string }>()
        .catch(() => null) // the indexer creates the tables when it first starts
      return row?.content
    },

    /** Returns the agents with the most recently linked identities. */
    async findLinkedAgents(limit: number): Promise<bigint[]> {
      const { results } = await db
        .prepare(
          `SELECT agent_id FROM events WHERE contract = ?1 AND name = 'ERC8004IdentityLinked'
          GROUP BY agent_id ORDER BY max(block) DESC LIMIT ?2`,
        )
        .bind(chain.contracts.AgentRegistry, limit)
        .all<{ agent_id: number }>()
        .catch(() => ({ results: [] }))
      return results.map(({ agent_id }) => BigInt(agent_id))
    },
  }
}
