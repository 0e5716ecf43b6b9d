import type { Address } from 'viem'

/** An open position in the index. */
export type OpenPosition = { positionId: bigint; agentId: number; token: Address; vault: Address }

/** Reads every position that is open at the cursor. */
export async function readOpenPositions(db: D1Database): Promise<OpenPosition[]> {
  const { results } = await db
    .prepare(
      `SELECT position_id, agent_id, token, vault FROM positions WHERE NOT EXISTS (
        SELECT 1 FROM trades INDEXED BY trades_closed
        WHERE trades.agent_id = positions.agent_id AND trades.position_id = positions.position_id
          AND type = 'PositionClosed')`,
    )
    .all<{ position_id: number; agent_id: number; token: Address; vault: Address }>()
  return results.map(({ position_id, agent_id, token, vault }) => ({
    positionId: BigInt(position_id),
    agentId: agent_id,
    token,
    vault,
  }))
}

/** The vault and the track of an agent. They name the policy that limits it. */
export type AgentTrack = { agentId: number; vault: Address; track: number }

/** Reads the vault and track of agents at the cursor. Unknown agents are left out. */
export async function readAgentTracks(db: D1Database, agentIds: readonly number[]): Promise<AgentTrack[]> {
  if (agentIds.length === 0) return []
  const { results } = await db
    .prepare(
      `SELECT agent_id AS agentId, vault, track FROM agents
      WHERE until IS NULL AND agent_id IN (SELECT value FROM json_each(?1))`,
    )
    .bind(JSON.stringify(agentIds))
    .all<AgentTrack>()
  return results
}
