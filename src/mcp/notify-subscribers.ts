import { hubOf } from './hub-object.ts'
import { agentUris } from './resources.ts'

/** Notifies the subscribers of all resources of these agents. */
export const notifySubscribers = (agentIds: readonly number[], env: Pick<Env, 'MCP_HUB'>): Promise<void> =>
  hubOf(env).resourcesUpdated(agentIds.flatMap(agentUris))
