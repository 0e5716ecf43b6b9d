import { decodeEvent, eventTopic } from '@agent-trading-service/protocol/decode-event'
import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { type Address, type Hex, pad } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import type { Block } from '../chain/configured-chain.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { TradeSources } from './read-trades.ts'

const AGENT_REGISTERED = eventTopic(agentRegistryAbi, 'AgentRegistered')
const AGENT_STATUS_CHANGED = eventTopic(agentRegistryAbi, 'AgentStatusChanged')
/** The events that change how much of its cap an agent uses. All name the agent in their third topic. */
const POSITION_TOPICS = (
  [
    'PositionOpened',
    'PositionIncreased',
    'PositionReduced',
    'PositionLadderExitApplied',
    'PositionLadderExitPartlyApplied',
    'PositionClosed',
  ] as const
).map(name => eventTopic(positionManagerAbi, name))
const [POSITION_OPENED] = POSITION_TOPICS

/** The number of a vault's agents by status, and the used part of their caps. */
export type VaultAgentSummary = {
  byStatus: Map<number, number>
  /** The agents that may have traded since their last sample. */
  changed: bigint[]
  /** The agents that changed above the cursor: `usedByOthers` includes their last samples. */
  uncounted: bigint[]
  /** The used allocation of all but the changed agents, in USDC base units; undefined if too many have changed. */
  usedByOthers: bigint | undefined
  asOf: Block
  lagBlocks: number
}

/** More agents change between two samplings only after a long downtime. */
const MAX_CHANGED_AGENTS = 2_000

const COUNT_BY_STATUS = 'SELECT status, agents FROM vault_agents WHERE vault = ?1'
/** The given agents, and agents that traded or lost samples in a reorg since the last sampling. */
const CHANGED_AGENTS = `SELECT agent_id FROM (
    SELECT DISTINCT agent_id FROM trades INDEXED BY trades_place
    WHERE block > coalesce((SELECT changed_to FROM sampling), -1) AND vault = ?1 LIMIT ${MAX_CHANGED_AGENTS})
  UNION SELECT agents.agent_id FROM unsampled CROSS JOIN agents INDEXED BY agents_now
    ON agents.agent_id = unsampled.agent_id AND until IS NULL WHERE agents.vault = ?1
  UNION SELECT value FROM json_each(?2)`
/** As digits, because numbers in results have only 53 bits. */
const USED_BY_OTHERS = `SELECT CAST(coalesce((SELECT used FROM vault_use WHERE vault = ?1), 0) - coalesce((
    SELECT sum(CAST(equity.used AS INTEGER)) FROM (${CHANGED_AGENTS}) AS changed
    CROSS JOIN equity INDEXED BY equity_newest ON equity.agent_id = changed.agent_id AND equity.until IS NULL), 0)
  AS TEXT) AS used`

/**
 * Reads the agents of a vault. `changed` are further agents to treat as changed. Throws HISTORY_UNAVAILABLE or
 * CHAIN_UNREACHABLE.
 */
export async function readVaultAgentSummary(
  { snapshots, chain, db }: TradeSources,
  vault: Address,
  head: Block,
  changed: readonly bigint[] = [],
): Promise<VaultAgentSummary> {
  const given = JSON.stringify(changed.map(Number))
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: session => [
      session.prepare(COUNT_BY_STATUS).bind(vault),
      session.prepare(CHANGED_AGENTS).bind(vault, given),
      session.prepare(USED_BY_OTHERS).bind(vault, given),
    ],
    head: Promise.resolve(head),
    filter: {
      address: [chain.contracts.AgentRegistry, chain.trading.PositionManager],
      topics: [[AGENT_REGISTERED, AGENT_STATUS_CHANGED, ...POSITION_TOPICS]],
    },
  })
  const [counts, indexed, [others]] = results.map(({ results }) => results) as [
    { status: number; agents: number }[],
    { agent_id: number }[],
    [{ used: string }],
  ]
  const byStatus = new Map(counts.map(({ status, agents }) => [status, agents]))
  const addTo = (status: number, count: number) => byStatus.set(status, (byStatus.get(status) ?? 0) + count)
  const members = await readMembers(db, vault, logs)
  for (const log of logs.filter(log => isOfRegistry(log) && members.has(agentOf(log)))) {
    if (log.topics[0] === AGENT_REGISTERED) addTo(AgentStatus.Active, 1)
    const change = log.topics[0] === AGENT_STATUS_CHANGED ? decodeEvent(agentRegistryAbi, log) : undefined
    if (change?.eventName !== 'AgentStatusChanged') continue
    addTo(change.args.oldStatus, -1)
    addTo(change.args.newStatus, 1)
  }
  const traded = logs.filter(log => !isOfRegistry(log)).map(agentOf)
  const counted = indexed.map(({ agent_id }) => BigInt(agent_id))
  const uncounted = [...new Set(traded)].filter(id => members.has(id) && !counted.includes(id))
  return {
    byStatus,
    changed: [...counted, ...uncounted],
    uncounted,
    usedByOthers: counted.length < MAX_CHANGED_AGENTS ? BigInt(others.used) : undefined,
    asOf,
    lagBlocks,
  }
}

const isOfRegistry = ({ topics: [topic] }: NodeLog): boolean =>
  topic === AGENT_REGISTERED || topic === AGENT_STATUS_CHANGED
const agentOf = (log: NodeLog): bigint => BigInt(log.topics[isOfRegistry(log) ? 1 : 2] ?? 0)

/** Returns the agents of the logs that belong to a vault. An agent never changes its vault. */
async function readMembers(db: D1Database, vault: Address, logs: readonly NodeLog[]): Promise<Set<bigint>> {
  const namesVault = ({ topics }: NodeLog) =>
    (topics[0] === AGENT_REGISTERED && isAddress(topics[2], vault)) ||
    (topics[0] === POSITION_OPENED && isAddress(topics[3], vault))
  const members = new Set(logs.filter(namesVault).map(agentOf))
  const others = new Set(logs.map(agentOf).filter(id => !members.has(id)))
  if (others.size === 0) return members
  const { results } = await db
    .prepare(
      'SELECT agent_id FROM agents INDEXED BY agents_now WHERE until IS NULL AND vault = ?1 AND agent_id IN (SELECT value FROM json_each(?2))',
    )
    .bind(vault, JSON.stringify([...others].map(Number)))
    .all<{ agent_id: number }>()
  for (const { agent_id } of results) members.add(BigInt(agent_id))
  return members
}

const isAddress = (topic: Hex | undefined, address: Address) => topic === pad(address).toLowerCase()
