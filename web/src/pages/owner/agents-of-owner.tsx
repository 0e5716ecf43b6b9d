import { useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { AgentName } from '../../parts/text.tsx'
import { SignedAction } from '../../wallet/signed-action.tsx'
import { titleCase } from '../vault/tracks.tsx'
import { AgentStatus } from '../vault.tsx'
import { ownerOf } from './owner-client.ts'

const PAGE_SIZE = 20
/** As many as one message may stop. */
const MAX_STOPPED = 64

type OwnedAgent = Schema['AgentList']['agents'][number]
type Props = {
  owner: string
  /** The agent whose controls are shown. */
  shown: string | undefined
  /** The address that shows the controls of an agent. */
  pathOf: (agentId: string) => string
}

/** The agents of an owner, a page at a time, and what stops several of them. */
export function AgentsOfOwner({ owner, shown, pathOf }: Props) {
  const agents = useRead('listAgentsByOwner', { owner })
  const page = useListPage('agents')
  const [chosen, choose] = useState<readonly string[]>([])
  const start = Number(page.cursor) || 0
  return (
    <WhenReady resource={agents} what="the agents of this owner">
      {({ agents, given, hasMoreGiven }) => {
        const unasked = given.length > 0 && <Given agents={given} hasMore={hasMoreGiven} pathOf={pathOf} />
        if (agents.length === 0)
          return (
            <>
              <Empty title="This address owns no agent.">An agent that was offered to it can be accepted below.</Empty>
              {unasked}
            </>
          )
        const marked = agents.map(({ agentId }) => agentId).filter(id => chosen.includes(id))
        const mark = (agentId: string, isMarked: boolean) =>
          choose(isMarked ? [...marked, agentId] : marked.filter(id => id !== agentId))
        const end = start + PAGE_SIZE
        return (
          <>
            <DataTable
              label="Agents of this owner"
              columns={[...columnsOf(shown, pathOf), ...(agents.length > 1 ? [markColumn(marked, mark)] : [])]}
              rows={agents.slice(start, end)}
              keyOf={({ agentId }) => agentId}
              isChosen={({ agentId }) => agentId === shown}
            />
            <Pages page={page} nextCursor={end < agents.length ? `${end}` : null} labels={['Before', 'After']} />
            {marked.length > 0 && <StopSeveral owner={owner} agentIds={marked} />}
            {unasked}
          </>
        )
      }}
    </WhenReady>
  )
}

/** Agents that others transferred to this owner, without the names that they gave them. */
const Given = ({ agents, hasMore, pathOf }: { agents: OwnedAgent[]; hasMore: boolean } & Pick<Props, 'pathOf'>) => (
  <p class="sub">
    Given by others, not accepted:{' '}
    {agents.map(({ agentId }, index) => (
      <>
        {index > 0 && ', '}
        <a href={pathOf(agentId)}>agent {agentId}</a>
      </>
    ))}
    {hasMore && ' and more'}
  </p>
)

const columnsOf = (shown: string | undefined, pathOf: Props['pathOf']): Column<OwnedAgent>[] => [
  {
    head: 'Agent',
    part: 'name',
    cell: ({ agentId, agent }) => <AgentName agentId={agentId} name={agent.name} />,
  },
  { head: 'Track', cell: ({ agent }) => titleCase(agent.trackName) },
  { head: 'Status', cell: ({ agent }) => <AgentStatus name={agent.statusName} /> },
  {
    head: 'Choose',
    part: 'lead',
    isNumber: true,
    isHeadHidden: true,
    cell: ({ agentId }) =>
      agentId === shown ? (
        'chosen'
      ) : (
        <a href={pathOf(agentId)}>
          Control<span class="hidden"> agent {agentId}</span>
        </a>
      ),
  },
]

const markColumn = (
  marked: readonly string[],
  mark: (agentId: string, isMarked: boolean) => void,
): Column<OwnedAgent> => ({
  head: 'Stop',
  isNumber: true,
  cell: ({ agentId }) => (
    <input
      type="checkbox"
      aria-label={`Stop agent ${agentId}`}
      checked={marked.includes(agentId)}
      disabled={marked.length >= MAX_STOPPED && !marked.includes(agentId)}
      onChange={event => mark(agentId, event.currentTarget.checked)}
    />
  ),
})

/** Stops several agents with one signature. */
function StopSeveral({ owner, agentIds }: { owner: string; agentIds: readonly string[] }) {
  const [action, setAction] = useState<'reduceOnly' | 'flatten'>('reduceOnly')
  const [first = '', ...others] = agentIds
  return (
    <div class="inset">
      <SignedAction
        title={`Stop ${agentIds.length === 1 ? 'the chosen agent' : `${agentIds.length} agents`}`}
        text={`One signature stops up to ${MAX_STOPPED} agents of this owner.`}
        review="Review"
        tone="danger"
        owner={owner}
        prepare={async () => (await ownerOf(first)).prepareStop({ action, otherAgentIds: others })}
      >
        <label class="field narrow">
          <span>What they do</span>
          <select value={action} onChange={event => setAction(event.currentTarget.value as typeof action)}>
            <option value="reduceOnly">Stop buying</option>
            <option value="flatten">Stop and sell everything</option>
          </select>
        </label>
      </SignedAction>
    </div>
  )
}
