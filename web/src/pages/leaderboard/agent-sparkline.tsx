import { useEffect, useRef, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { DAY_SECONDS } from '../../parts/chart-range.ts'
import { NoValue } from '../../parts/figures.tsx'
import { Sparkline } from '../../parts/sparkline.tsx'

type Period = Schema['Leaderboard']['period']

const HOUR_MS = 3_600_000
/** What the line of a period shows: few points, because points count as reads of the visitor. */
export const SPANS: Record<Period, { name: string; interval: '1h' | '1d'; seconds: number }> = {
  day: { name: '24 hours', interval: '1h', seconds: DAY_SECONDS },
  week: { name: '7 days', interval: '1d', seconds: 7 * DAY_SECONDS },
  month: { name: '30 days', interval: '1d', seconds: 30 * DAY_SECONDS },
  all: { name: '30 days', interval: '1d', seconds: 30 * DAY_SECONDS },
}

/** The equity of an agent up to a time in Unix seconds. It is read once the row is in view, and then once an hour. */
export function AgentSparkline({ agentId, period, until }: { agentId: string; period: Period; until: number }) {
  const element = useRef<HTMLSpanElement>(null)
  const [isSeen, setSeen] = useState(false)
  useEffect(() => {
    const observer = new IntersectionObserver(entries => entries.some(entry => entry.isIntersecting) && setSeen(true))
    if (element.current) observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  const { name, interval, seconds } = SPANS[period]
  const size = interval === '1h' ? 3_600 : DAY_SECONDS
  const from = `${Math.floor((until - seconds) / size) * size}`
  const history = useRead('getEquityHistory', isSeen ? { agentId, interval, from } : undefined, {
    pollMs: HOUR_MS,
    isTouched: false,
  })
  const { opening, points = [] } = history.data ?? {}
  const all = opening ? [opening, ...points] : points
  return (
    <span ref={element} class="row-line">
      {history.data && all.length < 2 && <NoValue />}
      {all.length >= 2 && (
        <Sparkline
          label={`Equity of agent ${agentId}, ${name}`}
          points={all.map(({ timestamp, equityUsdc }) => ({ time: Number(timestamp), value: Number(equityUsdc) }))}
        />
      )}
    </span>
  )
}
