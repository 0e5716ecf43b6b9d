import { AgentStatus } from '@agent-trading-service/protocol/enums'
import type { Address } from 'viem'
import type { ContractEvent } from './events.ts'
import { bindRows, type ColumnValue, deleteAbove, type IndexTable, readRows } from './table.ts'

/** A version of an agent: its state from one event on, until the next version. */
export type AgentVersion = {
  agentId: number
  block: number
  logIndex: number
  owner: Address
  vault: Address
  track: number
  status: number
  /** 1 while the owner got it by a transfer alone, which needs no consent; 0 since the owner acted on it. */
  given: number
  timestamp: number
}

const INSERT = `INSERT INTO agents (agent_id, block, log_index, until, owner, vault, track, status, given, timestamp)
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
  value ->> 9
  FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`
/** Ends the stored versions at the block of each agent's first new one. */
const END_CURRENT = `UPDATE agents INDEXED BY agents_now SET until = (SELECT value ->> 1 FROM json_each(?1) WHERE value ->> 0 = agent_id)
  WHERE until IS NULL AND agent_id IN (SELECT value ->> 0 FROM json_each(?1))`

/** Every version of every agent. The current one has no `until`. */
export const agentsTable: IndexTable<AgentVersion> = {
  insert(db, versions) {
    const rows: ColumnValue[][] = []
    const nextBlocks = new Map<number, number>()
    for (const { agentId, block, logIndex, owner, vault, track, status, given, timestamp } of versions.toReversed()) {
      const until = nextBlocks.get(agentId) ?? null
      rows.push([agentId, block, logIndex, until, owner, vault, track, status, given, timestamp])
      nextBlocks.set(agentId, block)
    }
    return [...bindRows(db, END_CURRENT, [...nextBlocks]), ...bindRows(db, INSERT, rows)]
  },
  rollback: (db, block) => [
    deleteAbove(db, 'agents', block),
    db.prepare('UPDATE agents SET until = NULL WHERE until > ?1').bind(block),
  ],
}

type AgentState = Pick<AgentVersion, 'owner' | 'vault' | 'track' | 'status' | 'given'>

const accepted = () => ({ given: 0 })

/**
 * How each event changes an agent. An agent is active from its registration. A transfer gives it away, and whatever
 * only its owner causes after that accepts it; a transfer with consent sets the signer in the same transaction.
 */
const changes: Record<string, (args: Record<string, unknown>) => Partial<AgentState>> = {
  AgentRegistered: ({ owner, vault, track }) => ({
    owner: owner as Address,
    vault: vault as Address,
    track: track as number,
    status: AgentStatus.Active,
    given: 0,
  }),
  AgentOwnershipTransferred: ({ to }) => ({ owner: to as Address, given: 1 }),
  AgentStatusChanged: ({ newStatus }) => ({ status: newStatus as number }),
  AgentPromoted: ({ toTrack }) => ({ track: toTrack as number }),
  AgentSignerUpdated: accepted,
  AgentMetadataUpdated: accepted,
  ERC8004IdentityLinked: accepted,
  MandateUpdated: accepted,
  BuyingStopped: accepted,
  CloseAllStarted: accepted,
  OwnershipOffered: accepted,
}

/** Returns the versions that the events of the registry and of owners create, in the order of the events. */
export async function toAgentVersions(
  events: readonly ContractEvent[],
  readCurrent: (ids: readonly number[]) => Promise<AgentVersion[]>,
): Promise<AgentVersion[]> {
  const relevant = events.filter(({ name }) => name in changes)
  const ids = [...new Set(relevant.flatMap(({ agentId }) => agentId ?? []))]
  const current = new Map<number, AgentState>((await readCurrent(ids)).map(version => [version.agentId, version]))
  return relevant.flatMap(({ agentId, name, args, block, logIndex, timestamp }) => {
    const before = agentId === null ? undefined : current.get(agentId)
    if (agentId === null || (before === undefined && name !== 'AgentRegistered')) return []
    const change = changes[name]?.(args)
    // Most of what an owner does changes nothing here.
    if (change === undefined || (change.given === 0 && before?.given === 0)) return []
    const state = { ...before, ...change } as AgentState
    const { owner, vault, track, status, given } = state
    current.set(agentId, state)
    return [{ agentId, block, logIndex, owner, vault, track, status, given, timestamp }]
  })
}

const CURRENT_AGENTS = `SELECT agent_id AS agentId, block, log_index AS logIndex, owner, vault, track, status, given, timestamp
  FROM agents INDEXED BY agents_now WHERE until IS NULL AND agent_id IN (SELECT value FROM json_each(?1))`

/** Reads the current versions of agents. Agents that the index does not have are left out. */
export async function readCurrentAgents(db: D1Database, ids: readonly number[]): Promise<AgentVersion[]> {
  if (ids.length === 0) return []
  return readRows(db, CURRENT_AGENTS, JSON.stringify(ids))
}
