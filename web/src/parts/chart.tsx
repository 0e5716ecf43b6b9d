import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { formatLocal } from '../format/time.ts'
import { RANGES } from './chart-range.ts'
import { nearestIndex, roundValues, timeTicks } from './chart-scale.ts'
import { TableScroll } from './panel.tsx'
import { Time } from './times.tsx'

/** One line of a chart. Lines of pane 1 are drawn below the main pane. All lines have the same times. */
export type Line = {
  name: string
  /** `benchmark` is what the value is compared with, as a dashed line. */
  values: { time: number; value: number; benchmark?: number | undefined }[]
  color: 'accent' | 'loss'
  pane: 0 | 1
  format: (value: number) => string
  /** Drawn in place of the line: several of the same scale, each with its number. */
  series?: Series[]
  /** Drawn in place of the line. */
  candles?: Candle[]
  levels?: Level[]
  marks?: Mark[]
}
/** A line among others, at the times of its `Line`; undefined before it begins. */
export type Series = { name: string; values: (number | undefined)[] }
/** Prices of an interval around `time`; `seconds` is its length. */
export type Candle = { time: number; seconds: number; open: number; high: number; low: number; close: number }
/** A value to compare with, across the chart. */
export type Level = { value: number; text: string; tone: 'entry' | 'stop' | 'profit' }
/** Something that happened: an entry points up from below the value, an exit down from above it. */
export type Mark = { time: number; value: number; text: string; tone: 'entry' | 'exit' | 'stop' | 'profit' | 'action' }

export type ChartProps = {
  /** In words, what the lines show and where they end. */
  summary: string
  lines: Line[]
  /** The values at a time, or the latest; shown above the chart. */
  legend: (time?: number) => ComponentChildren
  /** The same data as a table, which is rendered once it is opened, and as a file. */
  table: () => ComponentChildren
  csv?: ComponentChildren
  size?: 'tall' | 'low'
  /** The length of the shown period, and of the whole series, in seconds. */
  period: number
  span: number
  onPeriod: (period: number) => void
}

/** A chart with a legend that follows the pointer or the arrow keys, and the same data as a table. */
export function Chart(props: ChartProps) {
  const { summary, lines, legend, table, csv, size = 'tall', period, span, onPeriod } = props
  const [chosen, setChosen] = useState<number>()
  const [isTable, setTable] = useState(false)
  const offered = RANGES.filter(([, , seconds]) => seconds < span || seconds === Number.POSITIVE_INFINITY)
  const from = (lines[0]?.values.at(-1)?.time ?? 0) - period
  const hidden = Math.max(0, lines[0]?.values.findIndex(({ time }) => time >= from) ?? 0)
  const shown = lines.map(({ series, candles, ...line }) => ({
    ...line,
    values: line.values.slice(hidden),
    ...(candles && { candles: candles.slice(hidden) }),
    ...(series && { series: series.map(each => ({ ...each, values: each.values.slice(hidden) })) }),
  }))
  return (
    <div class="chart">
      <div class="chart-head">
        <div class="chart-legend">{legend(chosen)}</div>
        {offered.length > 1 && (
          <fieldset class="ranges">
            <legend class="hidden">Period of the chart</legend>
            {offered.map(([label, name, seconds]) => (
              <button key={label} type="button" aria-pressed={period === seconds} onClick={() => onPeriod(seconds)}>
                {label}
                {label !== name && <span class="hidden">, {name}</span>}
              </button>
            ))}
          </fieldset>
        )}
      </div>
      <Drawing summary={summary} lines={shown} size={size} chosen={chosen} onChoose={setChosen} />
      <details onToggle={event => setTable(event.currentTarget.open)}>
        <summary>Show as a table</summary>
        {isTable && (
          <>
            <TableScroll label={`${summary} As a table.`}>{table()}</TableScroll>
            {csv && <p class="fine">{csv}</p>}
          </>
        )}
      </details>
    </div>
  )
}

const HEIGHTS = { tall: 300, low: 210 }
const AXIS_WIDTH = 58
/** Room for the number of a line among others. */
const SERIES_AXIS_WIDTH = 72
const AXIS_HEIGHT = 24
const PANE_GAP = 18
const TICK_WIDTH = 96
const TOP = 8

type DrawingProps = {
  summary: string
  lines: Line[]
  size: 'tall' | 'low'
  chosen: number | undefined
  onChoose: (time?: number) => void
}

/** The chart itself. The arrow keys, Home and End move its cursor as a pointer does. */
function Drawing({ summary, lines, size, chosen, onChoose }: DrawingProps) {
  const element = useRef<HTMLDivElement>(null)
  const width = useWidth(element)
  const times = lines[0]?.values.map(({ time }) => time) ?? []
  // A candle needs half of its width on either side.
  const margin = (lines[0]?.candles?.[0]?.seconds ?? 0) / 2
  const [from, to] = [(times[0] ?? 0) - margin, (times.at(-1) ?? 0) + margin]
  const axisWidth = lines.some(({ series }) => series) ? SERIES_AXIS_WIDTH : AXIS_WIDTH
  const plotWidth = Math.max(1, width - axisWidth)
  const x = (time: number) => (to === from ? plotWidth : ((time - from) / (to - from)) * plotWidth)
  const index = chosen === undefined ? times.length - 1 : nearestIndex(times, chosen)
  const bottom = HEIGHTS[size] - AXIS_HEIGHT
  const hasSecond = lines.some(({ pane }) => pane === 1)
  const divide = hasSecond ? Math.round(bottom * 0.7) : bottom

  const choose = (next: number) => onChoose(times[Math.min(times.length - 1, Math.max(0, next))])
  function onKeyDown(event: KeyboardEvent) {
    const moves: Record<string, number | undefined> = {
      ArrowLeft: index - 1,
      ArrowRight: index + 1,
      Home: 0,
      End: times.length - 1,
    }
    if (event.key === 'Escape') onChoose(undefined)
    const next = moves[event.key]
    if (next === undefined) return
    event.preventDefault()
    choose(next)
  }
  function onPointerMove(event: PointerEvent) {
    const left = element.current?.getBoundingClientRect().left ?? 0
    choose(nearestIndex(times, from + ((event.clientX - left) / plotWidth) * (to - from)))
  }
  const valueText = lines.flatMap(({ name, values, format, series }) =>
    series
      ? series.flatMap(each => {
          const value = each.values[index]
          return value === undefined ? [] : [`${each.name} ${format(value)}`]
        })
      : [`${name} ${format(values[index]?.value ?? 0)}`],
  )
  return (
    <div
      ref={element}
      class={`chart-canvas ${size}`}
      role="slider"
      tabIndex={0}
      aria-label={summary}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, times.length - 1)}
      aria-valuenow={index}
      aria-valuetext={`${formatLocal(times[index] ?? 0)}: ${valueText.join(', ')}`}
      onKeyDown={onKeyDown}
      onPointerMove={onPointerMove}
      onPointerDown={onPointerMove}
      onPointerLeave={event => event.pointerType === 'mouse' && onChoose(undefined)}
      onBlur={() => onChoose(undefined)}
    >
      {width > 0 && (
        <svg width={width} height={HEIGHTS[size]} aria-hidden="true">
          {timeTicks(from, to, plotWidth / TICK_WIDTH).map(({ at, text, isMajor }) => (
            <text
              key={at}
              class={isMajor ? 'tick major' : 'tick'}
              x={Math.min(plotWidth - 16, Math.max(16, x(at)))}
              y={HEIGHTS[size] - 6}
            >
              {text}
            </text>
          ))}
          {lines.map(line => (
            <Pane
              key={line.name}
              line={line}
              x={x}
              width={plotWidth}
              axisWidth={axisWidth}
              top={line.pane === 0 ? TOP : divide + PANE_GAP}
              bottom={line.pane === 0 ? divide : bottom}
              index={chosen === undefined ? undefined : index}
            />
          ))}
          {chosen !== undefined && <path class="cursor" d={`M${x(times[index] ?? 0)} ${TOP}V${bottom}`} />}
        </svg>
      )}
    </div>
  )
}

type PaneProps = {
  line: Line
  x: (time: number) => number
  width: number
  axisWidth: number
  top: number
  bottom: number
  /** The value under the cursor. */
  index: number | undefined
}

/** Half of the width of a mark. */
const MARK_WIDTH = 6

/** A line over its grid, with its last value on the axis. Values hold until the next one, so the line has steps. */
function Pane({ line, x, width, axisWidth, top, bottom, index }: PaneProps) {
  const { values, color, pane, format, candles, series, levels = [], marks = [] } = line
  const fill = useId()
  const last = values.at(-1)
  if (last === undefined) return null
  const numbers = [
    ...values.flatMap(({ value, benchmark = value }) => [value, benchmark]),
    ...(series ?? []).flatMap(each => each.values.filter(value => value !== undefined)),
    ...(candles ?? []).flatMap(({ high, low }) => [high, low]),
    ...[...levels, ...marks].map(({ value }) => value),
  ]
  const [lowest, highest] = [Math.min(...numbers), Math.max(...numbers)]
  const room = (highest - lowest || Math.abs(highest) * 0.01 || 1) * 0.08
  const [low, high] = [lowest - room, pane === 1 ? highest : highest + room]
  const y = (value: number) => bottom - ((value - low) / (high - low)) * (bottom - top)
  const [first] = values
  const steps = stepsOf(values, x, y)
  const base = pane === 1 ? top : bottom
  const ends = series ? endsOf(series, y) : [{ number: 0, value: last.value, y: y(last.value) }]
  const marked = index === undefined ? last : values[index]
  // Values so near to each other that they read the same need one line.
  const round = roundValues(low, high, pane === 1 ? 2 : Math.max(3, Math.round((bottom - top) / 50)))
  const grid = round.filter((value, index) => index === 0 || format(value) !== format(round[index - 1] ?? value))
  return (
    <g class={`pane ${color}`}>
      <linearGradient id={fill} x1="0" x2="0" y1={pane === 1 ? '1' : '0'} y2={pane === 1 ? '0' : '1'}>
        <stop offset="0" class="fill-strong" />
        <stop offset="1" class="fill-none" />
      </linearGradient>
      {grid.map(value => (
        <g key={value}>
          <path class="grid" d={`M0 ${y(value).toFixed(1)}H${width}`} />
          {ends.every(end => Math.abs(y(value) - end.y) > 15) && (
            <text class="tick value" x={width + 10} y={y(value) + 4}>
              {format(value)}
            </text>
          )}
        </g>
      ))}
      {series ? (
        series.map((each, number) => (
          <path
            key={number}
            class={`line series-${number + 1}`}
            d={stepsOf(
              values.map(({ time }, at) => ({ time, value: each.values[at] })),
              x,
              y,
            )}
          />
        ))
      ) : candles ? (
        <Candles candles={candles} x={x} y={y} />
      ) : (
        <>
          <path d={`${steps}V${base}H${x(first?.time ?? 0).toFixed(1)}Z`} fill={`url(#${fill})`} />
          <path class="line" d={steps} />
          <path
            class="line benchmark"
            d={stepsOf(
              values.map(({ time, benchmark }) => ({ time, value: benchmark })),
              x,
              y,
            )}
          />
        </>
      )}
      {levels.map(({ value, text, tone }, position) => (
        <g key={position} class={`level ${tone}`}>
          <path d={`M0 ${y(value).toFixed(1)}H${width}`} />
          <text x="4" y={y(value) - 4}>
            {text}
          </text>
        </g>
      ))}
      {marks.map(({ time, value, text, tone }, position) => (
        <path
          key={position}
          class={`happened ${tone}`}
          d={`M${Math.min(width - MARK_WIDTH, Math.max(MARK_WIDTH, x(time))).toFixed(1)} ${y(value).toFixed(1)}${tone === 'entry' ? 'l6 10h-12z' : 'l6 -10h-12z'}`}
        >
          <title>{text}</title>
        </path>
      ))}
      {ends.map(end => (
        <g key={end.number} class={end.number > 0 ? `series-${end.number}` : undefined}>
          <rect class="last" x={width + 4} y={end.y - 9} width={axisWidth - 4} height="18" rx="4" />
          <text class="last-text" x={width + 10} y={end.y + 4}>
            {end.number > 0 && `${end.number} `}
            {format(end.value)}
          </text>
        </g>
      ))}
      {marked && !series && <circle class="dot" cx={x(marked.time)} cy={y(marked.value)} r="4" />}
    </g>
  )
}

/** Returns the path of values that hold until the next one. */
function stepsOf(
  values: { time: number; value: number | undefined }[],
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  let path = ''
  for (const { time, value } of values)
    if (value !== undefined)
      path +=
        path === '' ? `M${x(time).toFixed(1)} ${y(value).toFixed(1)}` : `H${x(time).toFixed(1)}V${y(value).toFixed(1)}`
  return path
}

const LABEL_HEIGHT = 19

/** Returns the last value of each series with its number, and where its label goes, so that no two overlap. */
function endsOf(series: Series[], y: (value: number) => number): { number: number; value: number; y: number }[] {
  const ends = series.flatMap(({ values }, index) => {
    const value = values.at(-1)
    return value === undefined ? [] : [{ number: index + 1, value, y: y(value) }]
  })
  let above = Number.NEGATIVE_INFINITY
  return ends
    .sort((a, b) => a.y - b.y)
    .map(end => {
      above = Math.max(end.y, above + LABEL_HEIGHT)
      return { ...end, y: above }
    })
}

const MAX_CANDLE_WIDTH = 24

type CandlesProps = { candles: Candle[]; x: (time: number) => number; y: (value: number) => number }

/** Candles as one path for rises and one for falls. */
function Candles({ candles, x, y }: CandlesProps) {
  const pathOf = ({ time, seconds, open, high, low, close }: Candle) => {
    const width = Math.min(MAX_CANDLE_WIDTH, Math.max(1, (x(time + seconds) - x(time)) * 0.7))
    const [middle, half] = [x(time), width / 2]
    const [upper, lower] = [y(Math.max(open, close)), y(Math.min(open, close))]
    const body = `M${(middle - half).toFixed(1)} ${upper.toFixed(1)}h${(2 * half).toFixed(1)}V${Math.max(lower, upper + 1).toFixed(1)}h${(-2 * half).toFixed(1)}z`
    return `M${middle.toFixed(1)} ${y(high).toFixed(1)}V${y(low).toFixed(1)}${body}`
  }
  const isRise = ({ open, close }: Candle) => close >= open
  return (
    <>
      <path class="candles up" d={candles.filter(isRise).map(pathOf).join('')} />
      <path
        class="candles down"
        d={candles
          .filter(candle => !isRise(candle))
          .map(pathOf)
          .join('')}
      />
    </>
  )
}

/** Returns the width of an element in pixels, and renders again when it changes; 0 at first. */
function useWidth(element: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const { current } = element
    if (current === null) return
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(current)
    return () => observer.disconnect()
  }, [])
  return width
}

type PointTableProps<Point> = { points: readonly Point[]; columns: Record<string, (point: Point) => ComponentChildren> }

/** The points of a chart as a table, newest first. */
export const PointTable = <Point extends { timestamp: string }>({ points, columns }: PointTableProps<Point>) => (
  <table>
    <thead>
      <tr>
        <th scope="col">Time</th>
        {Object.keys(columns).map(title => (
          <th key={title} scope="col" class="right">
            {title}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {points.toReversed().map(point => (
        <tr key={point.timestamp}>
          <td>
            <Time value={point.timestamp} />
          </td>
          {Object.entries(columns).map(([title, cell]) => (
            <td key={title} class="right">
              {cell(point)}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
)
