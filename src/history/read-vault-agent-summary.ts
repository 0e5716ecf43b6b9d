import type { Address } from 'viem'
import type { Block } from '../chain/configured-chain.ts'
import type { SnapshotFacts, SnapshotReader } from './read-snapshot.ts'

/** A vault's agents by status, and what their open positions with real capital cost in USDC base units. */
type VaultAgentSummary = { byStatus: Map<number, number>; used: bigint } & SnapshotFacts

const COUNT_BY_STATUS = 'SELECT status, agents FROM vault_agents WHERE vault = ?1'
/** As digits, because numbers in results have only 53 bits. */
const USED = 'SELECT CAST(used AS TEXT) AS used FROM vault_use WHERE vault = ?1'

/** Reads the agents of a vault. Throws HISTORY_UNAVAILABLE. */
export async function readVaultAgentSummary(
  snapshots: SnapshotReader,
  vault: Address,
  head: Block,
): Promise<VaultAgentSummary> {
  const { results, facts } = await snapshots.readSnapshot(head, db =>
    [COUNT_BY_STATUS, USED].map(sql => db.prepare(sql).bind(vault)),
  )
  const [counts = [], uses = []] = results.map(({ results }) => results)
  return {
    byStatus: new Map((counts as { status: number; agents: number }[]).map(row => [row.status, row.agents])),
    used: BigInt((uses as { used: string }[])[0]?.used ?? 0),
    ...facts,
  }
}
