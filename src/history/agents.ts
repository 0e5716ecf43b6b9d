import { type Address, type Hex, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import type { Block, Chain } from '../chain/chain.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { Viewer } from './consistent-read.ts'

export type AgentFilter = { vault?: Address | undefined; track?: number | undefined; status?: number | undefined }
export type AgentQuery = AgentFilter & { limit: number; below?: bigint | undefined }

/** Agents that may be of a page, newest first; `end` is the last of them where there may be more below it. */
export type Candidates = { ids: bigint[]; end: bigint | undefined; asOf: Block; lagBlocks: number }

const selectorOf = (name: 'AgentRegistered' | 'AgentStatusChanged' | 'AgentPromoted') =>
  toEventSelector(agentRegistryAbi.find(item => item.type === 'event' && item.name === name) as never)
const FILTERED_BY: Hex[] = [
  ...[selectorOf('AgentRegistered'), selectorOf('AgentStatusChanged'), selectorOf('AgentPromoted')],
]

/**
 * Ids of the agents that may belong to a page at `asOf`, newest first: those of the index, one more than the page, and
 * those that have become something else since. Throws HISTORY_UNAVAILABLE or CHAIN_UNREACHABLE.
 */
export async function readCandidates(
  { viewer, chain }: { viewer: Viewer; chain: Chain },
  query: AgentQuery,
  head: Promise<Block>,
): Promise<Candidates> {
  const { below, limit } = query
  const isAsked = below === undefined || below <= Number.MAX_SAFE_INTEGER
  const { results, logs, asOf, lagBlocks } = await viewer.view({
    queries: db => [pageOf(db, isAsked ? query : { ...query, below: undefined })],
    head,
    filter: { address: [chain.contracts.AgentRegistry], topics: [FILTERED_BY] },
  })
  const indexed = ((results[0]?.results ?? []) as { agent_id: number }[]).map(({ agent_id }) => BigInt(agent_id))
  // Beyond the last one of a full page the index may have more: what is older belongs to the next page.
  const end = indexed.length > limit ? indexed.at(-1) : undefined
  const recent = logs.map(idOf).filter(id => id >= (end ?? 0n) && (below === undefined || id < below))
  const ids = [...new Set([...indexed, ...recent])].sort((a, b) => (a < b ? 1 : -1))
  return { ids, end, asOf, lagBlocks }
}

/** One more than the page, so that it is known whether there is another; each set of filters has its index. */
export function pageOf(db: Pick<D1Database, 'prepare'>, { vault, track, status, below, limit }: AgentQuery) {
  const filters: [column: string, value: Address | number][] = []
  if (vault !== undefined) filters.push(['vault', vault])
  if (track !== undefined) filters.push(['track', track])
  if (status !== undefined) filters.push(['status', status])
  const named = filters.map(([column]) => column).join('_')
  const where = [...filters.map(([column]) => `${column} = ?`), 'until IS NULL', ...(below ? ['agent_id < ?'] : [])]
  return db
    .prepare(
      `SELECT agent_id FROM agents INDEXED BY ${indexes[named]} WHERE ${where.join(' AND ')} ORDER BY agent_id DESC LIMIT ?`,
    )
    .bind(...filters.map(([, value]) => value), ...(below ? [Number(below)] : []), limit + 1)
}

/** A planner without statistics would have to guess. */
const indexes: Record<string, string> = {
  '': 'agents_now',
  vault: 'agents_vault_now',
  track: 'agents_track_now',
  status: 'agents_status',
  vault_track: 'agents_vault_track',
  vault_status: 'agents_vault_status',
  track_status: 'agents_track',
  vault_track_status: 'agents_vault',
}

const idOf = ({ topics }: NodeLog) => BigInt(topics[1] ?? 0)

/** Whether an agent, as it is now, is one that was asked for. */
export const isWanted = (agent: Required<AgentFilter>, { vault, track, status }: AgentFilter): boolean =>
  (vault === undefined || agent.vault === vault) &&
  (track === undefined || agent.track === track) &&
  (status === undefined || agent.status === status)
