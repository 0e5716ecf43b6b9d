import type { ComponentChildren, RefObject } from 'preact'
import { useId, useRef } from 'preact/hooks'
import { useHeadingFocus } from '../router.tsx'
import { Guarded } from './guarded.tsx'

type PanelProps = {
  title: ComponentChildren
  aside?: ComponentChildren
  children: ComponentChildren
  /** No padding, for tables that reach the edges. */
  flush?: boolean
}

/** A titled section of a page. */
export function Panel({ title, aside, children, flush = false }: PanelProps) {
  const id = useId()
  return (
    <section class="panel" id={typeof title === 'string' ? anchorOf(title) : undefined} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside !== undefined && <div class="aside">{aside}</div>}
      </header>
      <div class={flush ? 'flush' : 'body'}>
        <Guarded what="This part">{children}</Guarded>
      </div>
    </section>
  )
}

const anchorOf = (title: string) => title.toLowerCase().replace(/\W+/g, '-')

/** Links to the panels of a long page by their titles, on a narrow screen. */
export const JumpLinks = ({ titles }: { titles: string[] }) => (
  <nav class="jump" aria-label="On this page">
    {titles.map(title => (
      <a key={title} href={`#${anchorOf(title)}`}>
        {title}
      </a>
    ))}
  </nav>
)

type Figure = { label: string; value: ComponentChildren; note?: ComponentChildren }

/** A row of figures: headlines, unless `look` names another class. */
export const Figures = ({ items, look = 'figures' }: { items: Figure[]; look?: string }) => (
  <dl class={look}>
    {items.map(({ label, value, note }) => (
      <div key={label}>
        <dt>{label}</dt>
        <dd>{value}</dd>
        {note !== undefined && <dd class="note">{note}</dd>}
      </div>
    ))}
  </dl>
)

/** Facts as pairs of a label and a value. */
export const Facts = ({ items }: { items: [label: string, value: ComponentChildren][] }) => (
  <dl class="facts">
    {items.map(([label, value]) => (
      <div key={label}>
        <dt>{label}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** A table that scrolls sideways by itself on a narrow screen. `label` names it for screen readers. */
export const TableScroll = ({ label, frame, children }: TableScrollProps) => (
  <div ref={frame ?? null} class="scroll" role="region" aria-label={label} tabIndex={0}>
    {children}
  </div>
)

type TableScrollProps = { label: string; frame?: RefObject<HTMLDivElement | null>; children: ComponentChildren }

type TitleProps = { title: ComponentChildren; kicker?: ComponentChildren; aside?: ComponentChildren }

/** The heading of a page. It gets the focus after a navigation. */
export function PageTitle({ title, kicker, aside }: TitleProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useHeadingFocus(heading)
  return (
    <div class="page-title">
      <div>
        {kicker !== undefined && <p class="kicker">{kicker}</p>}
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
      </div>
      {aside !== undefined && <div class="aside">{aside}</div>}
    </div>
  )
}
