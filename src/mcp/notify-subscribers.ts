import { agentUris } from './resources.ts'
import { hubOf } from './subscription-hub-object.ts'

/** Notifies the subscribers of all resources of these agents. */
export const notifySubscribers = (agentIds: readonly number[], env: Pick<Env, 'MCP_HUB'>): Promise<void> =>
  hubOf(env).resourcesUpdated(agentIds.flatMap(agentUris))
