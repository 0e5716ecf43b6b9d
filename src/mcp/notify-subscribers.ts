import { hubOf } from './hub-object.ts'
import { agentUris } from './resources.ts'

/** Tells the hub's listeners that what agents hold, or risk, has changed. */
export const announce = (agentIds: readonly number[], env: Pick<Env, 'MCP_HUB'>): Promise<void> =>
  hubOf(env).resourcesUpdated(agentIds.flatMap(agentUris))
