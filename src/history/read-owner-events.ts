import type { LogPosition } from '@agent-trading-service/protocol/trade-events'
import type { Address } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import { type AgentIds, idsIn } from './read-agents.ts'
import type { SnapshotFacts, SnapshotReader } from './read-snapshot.ts'
import { type ContractEvent, OWNER_EVENTS, quoted, toContractEvents } from './tables/events.ts'

/** Selects the owner's events of an agent, newest first. */
export type OwnerEventQuery = { agentId: bigint; limit: number; before?: LogPosition | undefined }

type OwnerEvents = { events: ContractEvent[]; next: LogPosition | undefined } & SnapshotFacts

/** How many of an agent's newest events a page looks through: most are changes of its allocation. */
const MAX_SCANNED = 500

const NEWEST = `SELECT * FROM events INDEXED BY events_agent WHERE agent_id = ?1 AND (block, log_index) < (?2, ?3)
  ORDER BY block DESC, log_index DESC LIMIT ${MAX_SCANNED}`

/**
 * Reads a page of the owner's events of an agent, newest first, complete up to `asOf`. `next` is the place before which
 * there may be more. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readOwnerEvents(
  snapshots: SnapshotReader,
  { agentId, limit, before }: OwnerEventQuery,
  head: Promise<Block>,
): Promise<OwnerEvents> {
  const place = [Number(agentId), Number(before?.blockNumber ?? Number.MAX_SAFE_INTEGER), before?.logIndex ?? 0]
  const { results, facts } = await snapshots.readSnapshot(head, db => [
    db.prepare(`SELECT * FROM (${NEWEST}) WHERE name IN (${quoted(OWNER_EVENTS)}) LIMIT ${limit + 1}`).bind(...place),
    db.prepare(`SELECT block, log_index FROM (${NEWEST}) LIMIT 1 OFFSET ${MAX_SCANNED - 1}`).bind(...place),
  ])
  const found = toContractEvents(results[0])
  const events = found.slice(0, limit)
  const [scanned] = (results[1] ?? []) as { block: number; log_index: number }[]
  const last = found.length > limit ? events.at(-1) : undefined
  return {
    events,
    next: last ? placeOf(last.block, last.logIndex) : scanned && placeOf(scanned.block, scanned.log_index),
    ...facts,
  }
}

const placeOf = (block: number, logIndex: number): LogPosition => ({ blockNumber: BigInt(block), logIndex })

/** How many of the newest offers of all agents are looked through for those to one address. */
const MAX_OFFERS = 500
const MAX_OFFERED = 20

const OFFERED = `SELECT agent_id FROM (SELECT agent_id, block, log_index, args FROM events INDEXED BY events_contract
    WHERE contract = ?1 AND name = 'OwnershipOffered' ORDER BY block DESC, log_index DESC LIMIT ${MAX_OFFERS})
  WHERE json_extract(args, '$.to') = ?2 ORDER BY block DESC, log_index DESC`

/**
 * Reads the ids of the agents that were offered to an address of late, newest first, complete up to `asOf`. An offer
 * may have been withdrawn or accepted since. Throws HISTORY_UNAVAILABLE.
 */
export async function readOfferedAgents(
  snapshots: SnapshotReader,
  ownerControls: Address,
  to: Address,
  head: Promise<Block>,
): Promise<AgentIds> {
  const snapshot = await snapshots.readSnapshot(head, db => [db.prepare(OFFERED).bind(ownerControls, to)])
  return { ids: [...new Set(idsIn(snapshot))].slice(0, MAX_OFFERED), ...snapshot.facts }
}
