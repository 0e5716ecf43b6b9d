import { type Address, type Hex, pad } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import type { Block } from '../chain/block-number-and-time.ts'
import { decodeEvent, eventTopic } from '../protocol/decode-event.ts'
import { AgentStatus } from '../protocol/enums.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { TradeSources } from './read-trades.ts'

const AGENT_REGISTERED = eventTopic(agentRegistryAbi, 'AgentRegistered')
const AGENT_STATUS_CHANGED = eventTopic(agentRegistryAbi, 'AgentStatusChanged')
const POSITION_OPENED = eventTopic(positionManagerAbi, 'PositionOpened')

/** The number of a vault's agents by status, and the agents that may have an open position. */
export type VaultAgentSummary = { byStatus: Map<number, number>; trading: bigint[]; asOf: Block; lagBlocks: number }

const COUNT_BY_STATUS = `SELECT status, count(*) AS agents FROM agents INDEXED BY agents_vault_status
  WHERE vault = ?1 AND until IS NULL GROUP BY status`
/** Selects the agents that had an open position at their last sample, or have traded since. */
const TRADING_AGENTS = `SELECT agent_id FROM equity INDEXED BY equity_open
  WHERE vault = ?1 AND until IS NULL AND open_count > 0
  UNION SELECT agent_id FROM trades INDEXED BY trades_place
  WHERE block > coalesce((SELECT changed_to FROM sampling), -1) AND vault = ?1`

/** Reads the agents of a vault. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export async function readVaultAgentSummary(
  { snapshots, chain, db }: TradeSources,
  vault: Address,
  head: Block,
): Promise<VaultAgentSummary> {
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: session => [session.prepare(COUNT_BY_STATUS).bind(vault), session.prepare(TRADING_AGENTS).bind(vault)],
    head: Promise.resolve(head),
    filter: {
      address: [chain.contracts.AgentRegistry, chain.trading.PositionManager],
      topics: [[AGENT_REGISTERED, AGENT_STATUS_CHANGED, POSITION_OPENED]],
    },
  })
  const [counts, indexed] = results.map(({ results }) => results) as [
    { status: number; agents: number }[],
    { agent_id: number }[],
  ]
  const byStatus = new Map(counts.map(({ status, agents }) => [status, agents]))
  const addTo = (status: number, count: number) => byStatus.set(status, (byStatus.get(status) ?? 0) + count)
  const members = await readMembers(db, vault, logs)
  for (const log of logs.filter(({ topics: [, id = '0x0'] }) => members.has(BigInt(id)))) {
    if (log.topics[0] === AGENT_REGISTERED) addTo(AgentStatus.Active, 1)
    const change = log.topics[0] === AGENT_STATUS_CHANGED ? decodeEvent(agentRegistryAbi, log) : undefined
    if (change?.eventName !== 'AgentStatusChanged') continue
    addTo(change.args.oldStatus, -1)
    addTo(change.args.newStatus, 1)
  }
  const opened = logs.filter(({ topics }) => topics[0] === POSITION_OPENED && isAddress(topics[3], vault))
  const trading = new Set([
    ...indexed.map(({ agent_id }) => BigInt(agent_id)),
    ...opened.map(({ topics }) => BigInt(topics[2] ?? 0)),
  ])
  return { byStatus, trading: [...trading], asOf, lagBlocks }
}

/** Returns which agents of the registry's logs belong to a vault. An agent never changes its vault. */
async function readMembers(db: D1Database, vault: Address, logs: readonly NodeLog[]): Promise<Set<bigint>> {
  const logsOf = (event: Hex) => logs.filter(({ topics }) => topics[0] === event)
  const idOf = ({ topics }: NodeLog) => BigInt(topics[1] ?? 0)
  const registered = logsOf(AGENT_REGISTERED).filter(({ topics }) => isAddress(topics[2], vault))
  const members = new Set(registered.map(idOf))
  const changed = logsOf(AGENT_STATUS_CHANGED).map(log => Number(idOf(log)))
  if (changed.length === 0) return members
  const { results } = await db
    .prepare(
      'SELECT agent_id FROM agents WHERE until IS NULL AND vault = ?1 AND agent_id IN (SELECT value FROM json_each(?2))',
    )
    .bind(vault, JSON.stringify(changed))
    .all<{ agent_id: number }>()
  for (const { agent_id } of results) members.add(BigInt(agent_id))
  return members
}

const isAddress = (topic: Hex | undefined, address: Address) => topic === pad(address).toLowerCase()
