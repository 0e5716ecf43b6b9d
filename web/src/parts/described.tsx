import type { Schema } from '../data/client.ts'
import { useRead } from '../data/use-read.ts'
import { Facts } from './panel.tsx'
import { Address, AgentName, Untrusted } from './text.tsx'

type Described = Schema['Described']
type Term = Described['terms'][number]

/** Calls of the contracts or their events in words, with links to what they name. A page may have the only title. */
export const InWords = ({ of, hasTitles = of.length > 1 }: { of: Described[]; hasTitles?: boolean }) => (
  <div class="described">
    {of.map(({ title, terms }, index) => (
      <section key={index}>
        {hasTitles && <h3>{title}</h3>}
        <Facts items={terms.map(term => [term.name, <Value key={term.field} term={term} of={terms} />])} />
      </section>
    ))}
  </div>
)

/** The page of what a term names. */
const pages: Record<string, (value: string, agentId?: string) => string | undefined> = {
  token: symbol => `/app/tokens/${symbol}`,
  asset: symbol => `/app/tokens/${symbol}`,
  vault: slug => `/app/vaults/${slug}`,
  orderId: digest => `/app/intents/${digest}`,
  positionId: (id, agentId) => agentId && `/app/agents/${agentId}/positions/${id}`,
}

function Value({ term: { field, value }, of }: { term: Term; of: Term[] }) {
  if (field === 'agentId') return <Agent agentId={value} />
  if (/^0x[0-9a-fA-F]{40}$/.test(value)) return <Address value={value} whole />
  const page = pages[field]?.(value, of.find(each => each.field === 'agentId')?.value)
  return page ? <a href={page}>{value}</a> : <Untrusted text={value} />
}

function Agent({ agentId }: { agentId: string }) {
  const { data } = useRead('getAgent', { agentId })
  return data ? (
    <AgentName agentId={agentId} name={data.agent.name} />
  ) : (
    <a href={`/app/agents/${agentId}`}>#{agentId}</a>
  )
}
