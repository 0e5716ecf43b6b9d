import type { ComponentChildren } from 'preact'
import { toVisibleParts } from '../format/visible-text.ts'
import { Copy } from './copy.tsx'
import { useDeployment } from './deployment.tsx'

/**
 * A text that an agent wrote. Markup is text, and characters that hide or reorder others are shown by their code point.
 */
export function Untrusted({ text, fallback = 'unnamed' }: { text: string; fallback?: string }) {
  if (text === '') return <span class="none">{fallback}</span>
  return (
    <bdi class="untrusted">
      {toVisibleParts(text).map((part, index) =>
        part.kind === 'text' ? (
          part.text
        ) : (
          <span key={index} class="invisible" title="An invisible character in the text">
            {part.codePoint}
          </span>
        ),
      )}
    </bdi>
  )
}

type AgentNameProps = { agentId: string; name: string; children?: ComponentChildren }

/** An agent's name and id, as a link to its page. */
export const AgentName = ({ agentId, name, children }: AgentNameProps) => (
  <span class="agent-name">
    <a href={`/app/agents/${agentId}`}>
      <Untrusted text={name} /> <span class="fine">#{agentId}</span>
    </a>
    {children && <> {children}</>}
  </span>
)

export const shortened = (hex: string) => `${hex.slice(0, 6)}…${hex.slice(-4)}`

/** An address, shortened, with the whole in the tooltip; a link to the block explorer if the deployment has one. */
export function Address({ value, whole = false }: { value: string; whole?: boolean }) {
  const { explorer } = useDeployment()
  return (
    <>
      <MaybeLink href={explorer && `${explorer}/address/${value}`}>
        <span class={`hex${whole ? ' whole' : ''}`} title={value}>
          {whole ? value : shortened(value)}
        </span>
      </MaybeLink>
      {whole && (
        <>
          {' '}
          <Copy text={value} what={`address ${shortened(value)}`} />
        </>
      )}
    </>
  )
}

/** A whole hash with a button that copies it. */
export const Hash = ({ value }: { value: string }) => (
  <>
    <span class="hex whole">{value}</span> <Copy text={value} what={`hash ${shortened(value)}`} />
  </>
)

/** A transaction: a link to its page and, if the deployment has an explorer, to that. */
export function TransactionLink({ hash }: { hash: string }) {
  const { explorer } = useDeployment()
  return (
    <span class="tx">
      <a class="hex" href={`/app/transactions/${hash}`} title={hash}>
        {shortened(hash)}
      </a>
      {explorer && (
        <a class="external" href={`${explorer}/tx/${hash}`} target="_blank" rel="noreferrer noopener">
          explorer<span class="hidden"> for transaction {shortened(hash)}, opens a new tab</span>
        </a>
      )}
    </span>
  )
}

type CsvProps = {
  /** What the file holds, such as "the trades"; part of the link's name. */
  of: string
  path: string
  query?: Record<string, string | number>
}

/** The rows of a table as a file: the first page, as many as the service returns at once. */
export function CsvLink({ of, path, query = {} }: CsvProps) {
  const parameters = Object.entries({ ...query, format: 'csv' }).map(([name, value]) => [name, `${value}`])
  return (
    <a href={`${path}?${new URLSearchParams(parameters)}`} download>
      CSV<span class="hidden"> of {of}</span>
    </a>
  )
}

const MaybeLink = ({ href, children }: { href: string | undefined; children: ComponentChildren }) =>
  href ? (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ) : (
    children
  )

type BadgeTone = 'good' | 'bad' | 'warn' | 'quiet' | 'paper'

/** A short state in words. The color only repeats what the word says. */
export const Badge = ({ tone = 'quiet', children }: { tone?: BadgeTone; children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

/** Whether a position or an allocation is on paper. */
export function CapitalMode({ mode }: { mode: 'Simulated' | 'Real' | null }) {
  if (mode === null) return null
  return mode === 'Simulated' ? <Badge tone="paper">on paper</Badge> : <Badge>real capital</Badge>
}
