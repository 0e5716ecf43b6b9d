import type { AgentTradingError } from '@agent-trading-service/client'
import type { ComponentChildren } from 'preact'
import { isOutage } from '../data/live.ts'
import type { Reading } from '../data/use-read.ts'
import { NoValue } from './figures.tsx'
import { PageTitle } from './panel.tsx'
import { Time } from './times.tsx'

type WhenReadyProps<T> = {
  resource: Reading<T>
  /** What is being read, such as "the positions"; part of a sentence. */
  what: string
  children: (data: T) => ComponentChildren
  lines?: number
  /** What a placeholder stands for if it is no list of lines. */
  shape?: 'figures'
  /** The heading of a page that is nothing without the resource. */
  title?: string
}

/** Shows a resource, or that it is loading, failed or stale. Data that was read before stays in view. */
export function WhenReady<T>({ resource, what, children, lines = 3, shape, title }: WhenReadyProps<T>) {
  const { data, error, readAt, reload } = resource
  if (data === undefined)
    return (
      <>
        {title !== undefined && <PageTitle title={title} />}
        {error ? (
          <Failure error={error} what={what} retry={reload} />
        ) : (
          <Loading what={what} lines={lines} shape={shape} />
        )}
      </>
    )
  return (
    <>
      {error && !isOutage(error.code) && (
        <p class="note-line warn" role="status">
          Not read since <Time value={Math.floor((readAt ?? 0) / 1000)} withSeconds />: {error.message}{' '}
          <button type="button" class="link" onClick={reload}>
            Try again
          </button>
        </p>
      )}
      {children(data)}
    </>
  )
}

/** Placeholder lines in the shape of what follows. */
export const Loading = ({ what, lines, shape }: LoadingProps) => (
  <div class={shape ? `loading ${shape}-shape` : 'loading'}>
    <span class="hidden" role="status">
      Loading {what}
    </span>
    {Array.from({ length: lines }, (_, line) => (
      <span key={line} class="skeleton" />
    ))}
  </div>
)

type LoadingProps = { what: string; lines: number; shape?: 'figures' | undefined }

/** A figure that is being read, or that could not be read. */
export const Placeholder = ({ of }: { of: Reading<unknown> }) =>
  of.error ? (
    <NoValue />
  ) : (
    <span class="skeleton figure">
      <span class="hidden">being read</span>
    </span>
  )

type FailureProps = { error: AgentTradingError; what: string; retry: () => void }

/** A refusal in its own words, with what to do about it. The page says once what it does not reach. */
export const Failure = ({ error, what, retry }: FailureProps) =>
  isOutage(error.code) ? (
    <p class="inset none">Could not read {what} yet.</p>
  ) : (
    <div class={error.status === 404 ? 'failure unknown' : 'failure'} role="alert">
      <strong>{error.status === 404 ? `The service does not know ${what}.` : `Could not read ${what}.`}</strong>
      {error.status === 404 ? (
        <p>
          Check the address, or find what you look for from <a href="/">the start page</a> or{' '}
          <a href="/app/leaderboard?period=all">the leaderboard</a>.
        </p>
      ) : (
        <>
          <p>{error.message}</p>
          {error.remedy && <p>{error.remedy}</p>}
          <p class="fine">
            <span class="hex">{error.code}</span>
            {error.requestId && (
              <>
                {' · request '}
                <span class="hex">{error.requestId}</span>
              </>
            )}
          </p>
          <button type="button" onClick={retry}>
            Try again
          </button>
        </>
      )}
    </div>
  )

/** What to show in place of an empty list: why it is empty, and what fills it. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <strong>{title}</strong>
    {children !== undefined && <p>{children}</p>}
  </div>
)
