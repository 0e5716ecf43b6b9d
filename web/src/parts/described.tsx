import type { Schema } from '../data/client.ts'
import { useRead } from '../data/use-read.ts'
import { Facts } from './panel.tsx'
import { Address, AgentName, Untrusted } from './text.tsx'
import { Time } from './times.tsx'

type Described = Schema['Described']
type Term = Described['terms'][number]

/** Calls of the contracts in words, with links to what they name. The page has the title of the only one. */
export const Calls = ({ calls }: { calls: Described[] }) => (
  <div class="described">
    {calls.map(({ title, contract, terms }, index) => (
      <section key={index}>
        {calls.length > 1 && (
          <h3>
            {title} <span class="fine">{contract}</span>
          </h3>
        )}
        <Facts items={terms.map(term => [term.name, <Value key={term.field} term={term} of={terms} />])} />
      </section>
    ))}
  </div>
)

/** The events of a transaction, each in a line that repeats nothing of its calls. */
export function Effects({ effects, calls = [] }: { effects: Described[]; calls?: Described[] | undefined }) {
  const said = calls.flatMap(({ terms }) => terms.map(({ field, value }) => `${field} ${value}`))
  return (
    <div class="described">
      <Facts
        items={effects.map(({ title, terms }) => [
          title,
          terms
            .filter(({ field, value }) => !said.includes(`${field} ${value}`))
            .map((term, index) => (
              <>
                {index > 0 && ', '}
                {term.name} <Value key={term.field} term={term} of={terms} isShort />
              </>
            )),
        ])}
      />
    </div>
  )
}

/** The page of what a term names. */
const pages: Record<string, (value: string, agentId?: string) => string | undefined> = {
  token: symbol => `/app/tokens/${symbol}`,
  asset: symbol => `/app/tokens/${symbol}`,
  vault: slug => `/app/vaults/${slug}`,
  orderId: digest => `/app/intents/${digest}`,
  positionId: (id, agentId) => agentId && `/app/agents/${agentId}/positions/${id}`,
}

type ValueProps = { term: Term; of: Term[]; isShort?: boolean }

function Value({ term: { field, value }, of, isShort = false }: ValueProps) {
  if (field === 'agentId') return <Agent agentId={value} />
  if (/^0x[0-9a-fA-F]{40}$/.test(value)) return <Address value={value} whole={!isShort} />
  if (/^\d{4}-\d\d-\d\dT[\d:]+Z$/.test(value)) return <Time value={Date.parse(value) / 1000} withSeconds />
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
