import { durationText } from '@agent-trading-service/protocol/duration'
import { useEffect, useState } from 'preact/hooks'
import { formatLocal, formatUtc } from '../format/time.ts'
import { NoValue } from './figures.tsx'

/** A time in the reader's zone; UTC is in the tooltip. `value` is Unix seconds. */
export function Time({ value, withSeconds = false }: { value: string | number | null; withSeconds?: boolean }) {
  if (value === null || Number(value) === 0) return <NoValue />
  const seconds = Number(value)
  return (
    <time class="num" dateTime={new Date(seconds * 1000).toISOString()} title={formatUtc(seconds)}>
      {formatLocal(seconds, { withSeconds })}
    </time>
  )
}

/** A duration in seconds with its two largest units. */
export const Duration = ({ seconds }: { seconds: string | number }) => (
  <span class="num" title={`${Number(seconds).toLocaleString('en')} seconds`}>
    {durationText(Number(seconds))}
  </span>
)

/** Returns the current time in milliseconds, and renders again at the given interval. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
  return now
}
