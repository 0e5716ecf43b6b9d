import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useStore } from '../data/store.ts'
import { theme } from '../theme.ts'
import type { DrawnChart, Line } from './draw-chart.ts'
import { TableScroll } from './panel.tsx'

type ChartProps = {
  /** In words, what the lines show and where they end. */
  summary: string
  lines: Line[]
  /** The values at a time, or the latest; shown above the chart. */
  legend: (time?: number) => ComponentChildren
  /** The same data as a table. */
  table: ComponentChildren
  size?: 'tall' | 'low'
}

/** A chart with a legend that follows the pointer, and the same data as a table. */
export function Chart({ summary, lines, legend, table, size = 'tall' }: ChartProps) {
  const element = useRef<HTMLDivElement>(null)
  const drawn = useRef<DrawnChart>(undefined)
  const [hovered, setHovered] = useState<number>()
  const chosen = useStore(theme)
  const latest = useRef(lines)
  latest.current = lines

  useEffect(() => {
    let isGone = false
    import('./draw-chart.ts').then(({ drawChart }) => {
      if (!isGone && element.current) drawn.current = drawChart(element.current, latest.current, setHovered)
    })
    const scheme = window.matchMedia('(prefers-color-scheme: dark)')
    const recolor = () => drawn.current?.recolor()
    scheme.addEventListener('change', recolor)
    return () => {
      isGone = true
      scheme.removeEventListener('change', recolor)
      drawn.current?.remove()
      drawn.current = undefined
    }
  }, [])
  useEffect(() => drawn.current?.update(lines), [lines])
  useEffect(() => drawn.current?.recolor(), [chosen])

  return (
    <div class="chart">
      <div class="chart-legend">{legend(hovered)}</div>
      <div class={`chart-canvas ${size}`} role="img" aria-label={summary}>
        <div ref={element} aria-hidden="true" />
      </div>
      <details>
        <summary>Show as a table</summary>
        <TableScroll label={`${summary} As a table.`}>{table}</TableScroll>
      </details>
    </div>
  )
}
