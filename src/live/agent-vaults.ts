import type { Address } from 'viem'
import { readCurrentAgents } from '../history/tables/agents.ts'

export type AgentVaults = ReturnType<typeof createAgentVaults>

/** Caches each agent's vault. It is fixed at registration. */
export function createAgentVaults() {
  const vaults = new Map<number, Address>()
  return {
    get: (agentId: number): Address | undefined => vaults.get(agentId),
    set(agentId: number, vault: Address) {
      vaults.set(agentId, vault)
    },
    /** Reads the vaults of those agents that are not cached. */
    async load(db: D1Database, agentIds: readonly number[]): Promise<void> {
      const missing = [...new Set(agentIds)].filter(agentId => !vaults.has(agentId))
      for (const { agentId, vault } of await readCurrentAgents(db, missing)) vaults.set(agentId, vault)
    },
  }
}
