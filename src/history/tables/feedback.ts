import type { StandingFigures } from '@agent-trading-service/protocol/standing-figures'
import type { Address, Hex } from 'viem'
import { bindRows } from './table.ts'

/** A feedback file: one week of an agent, with its state on chain. `value` is in parts per million. */
export type FeedbackRow = {
  agentId: number
  weekStart: number
  erc8004AgentId: string
  value: number
  /** The exact content that is served. Its keccak256 is `hash`. */
  content: string
  hash: Hex
  /** A block before which it cannot have been posted. */
  createdBlock: number
}

/** The result of an agent with a linked identity, in real capital, in a week that ended and is final. */
export type WeeklyResult = {
  agentId: number
  weekStart: number
  vault: Address
  track: number
  figures: StandingFigures
}

const WEEK_SECONDS = 604_800

const INSERT_RESULTS = `INSERT INTO feedback
    (agent_id, week_start, state, erc8004_agent_id, value, content, hash, created_block)
  SELECT value ->> 0, value ->> 1, 'ended', '', 0, value ->> 2, '', value ->> 3 FROM json_each(?1)
  WHERE EXISTS (
    SELECT 1 FROM events INDEXED BY events_agent WHERE agent_id = value ->> 0 AND name = 'ERC8004IdentityLinked'
      AND timestamp < value ->> 1 + ${WEEK_SECONDS})
  ON CONFLICT DO NOTHING`

/** Returns statements that add results of a week for the agents among them that had linked an identity by its end. */
export const insertWeeklyResults = (
  db: D1Database,
  results: readonly WeeklyResult[],
  block: number,
): D1PreparedStatement[] =>
  bindRows(
    db,
    INSERT_RESULTS,
    results.map(({ agentId, weekStart, ...result }) => [agentId, weekStart, JSON.stringify(result), block]),
  )
