import { decodeEvent, eventTopic } from '@agent-trading-service/protocol/decode-event'
import { AgentStatus, CapitalMode } from '@agent-trading-service/protocol/enums'
import { type Address, type Hex, pad } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import type { Block } from '../chain/configured-chain.ts'
import { positionManager } from '../chain/contracts.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
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
  ] as const
).map(name => eventTopic(positionManagerAbi, name))
const [POSITION_OPENED] = POSITION_TOPICS

/** The number of a vault's agents by status, and what their open positions with real capital cost in USDC base units, at a block. */
export type VaultAgentSummary = { byStatus: Map<number, number>; used: bigint; asOf: Block; lagBlocks: number }

const COUNT_BY_STATUS = 'SELECT status, agents FROM vault_agents WHERE vault = ?1'
/** As digits, because numbers in results have only 53 bits. */
const USED = 'SELECT CAST(used AS TEXT) AS used FROM vault_use WHERE vault = ?1'

/** Reads the agents of a vault. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export async function readVaultAgentSummary(
  { snapshots, chain, db }: TradeSources,
  vault: Address,
  head: Block,
): Promise<VaultAgentSummary> {
  const { results, logs, asOf, lagBlocks } = await snapshots.readSnapshot({
    queries: session => [COUNT_BY_STATUS, USED].map(sql => session.prepare(sql).bind(vault)),
    head: Promise.resolve(head),
    filter: {
      address: [chain.contracts.AgentRegistry, chain.trading.PositionManager],
      topics: [[AGENT_REGISTERED, AGENT_STATUS_CHANGED, ...POSITION_TOPICS]],
    },
  })
  const [counts = [], uses = []] = results.map(({ results }) => results)
  const byStatus = new Map((counts as { status: number; agents: number }[]).map(row => [row.status, row.agents]))
  const addTo = (status: number, count: number) => byStatus.set(status, (byStatus.get(status) ?? 0) + count)
  let used = BigInt((uses[0]?.used ?? 0) as string | number)
  const members = await readMembers(db, vault, logs)
  const onPaper = await readPositionsOnPaper(chain, logs, head)
  for (const log of logs.filter(log => members.has(agentOf(log)))) {
    if (log.topics[0] === AGENT_REGISTERED) addTo(AgentStatus.Active, 1)
    const change = log.topics[0] === AGENT_STATUS_CHANGED ? decodeEvent(agentRegistryAbi, log) : undefined
    if (change?.eventName === 'AgentStatusChanged') {
      addTo(change.args.oldStatus, -1)
      addTo(change.args.newStatus, 1)
    }
    if (!isOfRegistry(log) && !onPaper.has(positionOf(log))) used += useChangeOf(log)
  }
  return { byStatus, used, asOf, lagBlocks }
}

/** Returns by how much a log of the position manager changes the cost of open positions. */
function useChangeOf(log: NodeLog): bigint {
  const { eventName, args } = decodeEvent(positionManagerAbi, log)
  switch (eventName) {
    case 'PositionOpened':
      return args.usdcCostBasis
    case 'PositionIncreased':
      return args.usdcAdded
    case 'PositionReduced':
    case 'PositionLadderExitApplied':
    case 'PositionLadderExitPartlyApplied':
      return -args.usdcReleased
    default:
      return 0n
  }
}

const isOfRegistry = ({ topics: [topic] }: NodeLog): boolean =>
  topic === AGENT_REGISTERED || topic === AGENT_STATUS_CHANGED
const positionOf = ({ topics: [, id] }: NodeLog): bigint => BigInt(id ?? 0)
const agentOf = (log: NodeLog): bigint => BigInt(log.topics[isOfRegistry(log) ? 1 : 2] ?? 0)

/** Returns which positions of the logs are in simulated capital: their events do not say. */
async function readPositionsOnPaper(
  chain: TradeSources['chain'],
  logs: readonly NodeLog[],
  head: Block,
): Promise<Set<bigint>> {
  const ids = [...new Set(logs.filter(log => !isOfRegistry(log)).map(positionOf))]
  if (ids.length === 0) return new Set()
  const capitalModeOf = (id: bigint) => optional(call(positionManager(chain), 'capitalModeOf', [id]))
  const { values } = await readTree(chain, ids.map(capitalModeOf), head)
  return new Set(ids.filter((_, index) => values[index] === CapitalMode.Simulated))
}

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
