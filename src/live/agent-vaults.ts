import type { Address } from 'viem'
import { getAgents } from '../chain/agents.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { withDeadline } from '../concurrency.ts'
import { readCurrentAgents } from '../history/tables/agents.ts'

export type AgentVaults = ReturnType<typeof createAgentVaults>

/** How long the index may take before the chain is read instead. */
const MAX_INDEX_READ_MS = 1_000

/** Caches each agent's vault. It is fixed at registration. */
export function createAgentVaults() {
  const vaults = new Map<number, Address>()
  const missingOf = (agentIds: readonly number[]) => [...new Set(agentIds)].filter(agentId => !vaults.has(agentId))

  /** Reads the vaults of those agents that are not cached from the index. */
  async function load(db: D1Database, agentIds: readonly number[]): Promise<void> {
    for (const { agentId, vault } of await readCurrentAgents(db, missingOf(agentIds))) vaults.set(agentId, vault)
  }

  return {
    get: (agentId: number): Address | undefined => vaults.get(agentId),
    set(agentId: number, vault: Address) {
      vaults.set(agentId, vault)
    },
    load,
    /**
     * Like `load`, but reads from the chain what the index does not return: it can be unreachable, and lacks agents that
     * registered just now. Throws CHAIN_UNREACHABLE.
     */
    async loadFromIndexOrChain(db: D1Database, chain: Chain, agentIds: readonly number[]): Promise<void> {
      if (missingOf(agentIds).length === 0) return
      const loaded = load(db, agentIds).catch(() => {})
      await withDeadline(loaded, Date.now() + MAX_INDEX_READ_MS, () => undefined)
      const missing = missingOf(agentIds)
      if (missing.length === 0) return
      const { agents } = await getAgents(chain, missing.map(BigInt))
      for (const { agentId, agent } of agents) vaults.set(Number(agentId), agent.vault)
    },
  }
}
