import { type Address, type Hex, pad, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import type { Block, TradingChain } from '../chain/chain.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { Viewer } from './consistent-read.ts'

const selectorOf = (abi: typeof agentRegistryAbi | typeof positionManagerAbi, name: string) =>
  toEventSelector(abi.find(item => item.type === 'event' && item.name === name) as never)
const REGISTERED = selectorOf(agentRegistryAbi, 'AgentRegistered')
const STATUS_CHANGED = selectorOf(agentRegistryAbi, 'AgentStatusChanged')
const POSITION_OPENED = selectorOf(positionManagerAbi, 'PositionOpened')

/** An agent is active from its registration on. */
const ACTIVE = 1

/** How many agents of a vault have which status, and all those that may have an open position. */
export type VaultAgents = { byStatus: Map<number, number>; trading: bigint[]; asOf: Block; lagBlocks: number }

/** Reads who trades in a vault. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE. */
export async function readVaultAgents(
  { viewer, chain, db }: { viewer: Viewer; chain: TradingChain; db: D1Database },
  vault: Address,
  head: Block,
): Promise<VaultAgents> {
  const { results, logs, asOf, lagBlocks } = await viewer.view({
    queries: session => [session.prepare(BY_STATUS).bind(vault), session.prepare(TRADING).bind(vault)],
    head: Promise.resolve(head),
    filter: {
      address: [chain.contracts.AgentRegistry, chain.trading.PositionManager],
      topics: [[REGISTERED, STATUS_CHANGED, POSITION_OPENED]],
    },
  })
  const [counts, indexed] = results.map(({ results }) => results) as [
    { status: number; agents: number }[],
    { agent_id: number }[],
  ]
  const byStatus = new Map(counts.map(({ status, agents }) => [status, agents]))
  const count = (status: number, by: number) => byStatus.set(status, (byStatus.get(status) ?? 0) + by)
  const members = await membersOf(db, vault, logs)
  for (const { topics, data } of logs.filter(({ topics: [, id = '0x0'] }) => members.has(BigInt(id)))) {
    if (topics[0] === REGISTERED) count(ACTIVE, 1)
    if (topics[0] === STATUS_CHANGED) count(wordOf(data, 0), -1)
    if (topics[0] === STATUS_CHANGED) count(wordOf(data, 1), 1)
  }
  const opened = logs.filter(({ topics }) => topics[0] === POSITION_OPENED && isOf(topics[3], vault))
  const trading = new Set([
    ...indexed.map(({ agent_id }) => BigInt(agent_id)),
    ...opened.map(({ topics }) => BigInt(topics[2] ?? 0)),
  ])
  return { byStatus, trading: [...trading], asOf, lagBlocks }
}

const BY_STATUS = `SELECT status, count(*) AS agents FROM agents INDEXED BY agents_vault_status
  WHERE vault = ?1 AND until IS NULL GROUP BY status`

/** Who had an open position when sampled last, or has traded since. */
const TRADING = `SELECT agent_id FROM equity INDEXED BY equity_open WHERE vault = ?1 AND until IS NULL AND open_count > 0
  UNION SELECT agent_id FROM trades INDEXED BY trades_place
  WHERE block > coalesce((SELECT changed_to FROM sampling), -1) AND vault = ?1`

/** The agents of a vault that the registry's logs speak of; an agent never changes its vault. */
async function membersOf(db: D1Database, vault: Address, logs: readonly NodeLog[]): Promise<Set<bigint>> {
  const idsOf = (event: Hex) =>
    logs.flatMap(({ topics }) => (topics[0] === event && topics[1] ? { id: BigInt(topics[1]), of: topics[2] } : []))
  const changed = idsOf(STATUS_CHANGED).map(({ id }) => Number(id))
  const registered = idsOf(REGISTERED).flatMap(({ id, of }) => (isOf(of, vault) ? id : []))
  if (changed.length === 0) return new Set(registered)
  const { results } = await db
    .prepare(
      'SELECT agent_id FROM agents WHERE until IS NULL AND vault = ?1 AND agent_id IN (SELECT value FROM json_each(?2))',
    )
    .bind(vault, JSON.stringify(changed))
    .all<{ agent_id: number }>()
  return new Set([...registered, ...results.map(({ agent_id }) => BigInt(agent_id))])
}

const isOf = (topic: Hex | undefined, vault: Address) => topic === pad(vault).toLowerCase()
const wordOf = (data: Hex, index: number) => Number(`0x${data.slice(2 + 64 * index, 66 + 64 * index)}`)
