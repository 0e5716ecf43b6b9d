import type { Schema } from '../../data/schema.ts'
import { useResource } from '../../data/use-resource.ts'
import { WhenReady } from '../../parts/states.tsx'
import { AgentTable } from '../vault.tsx'

/** The newest agents, until there is a leaderboard. */
export function TopAgents() {
  const agents = useResource<Schema['AgentList']>('/agents?limit=5')
  return (
    <WhenReady resource={agents} what="the agents">
      {({ agents }) => <AgentTable agents={agents} />}
    </WhenReady>
  )
}
