import { escapeHtml } from '../reference/build/html.ts'
import { roundValues } from '../web/src/parts/chart-scale.ts'
import { timeText } from './figure-text.ts'

/** A line of a chart, with a value for each time. `className` decides its color and pattern. */
export type Line = { label: string; className: string; values: readonly number[] }
/** A mark on a chart. `text` is what it says, `href` where it leads. */
export type Mark = { time: number; value: number; className: string; text: string; href: string }
export type Chart = {
  title: string
  times: readonly number[]
  lines: readonly Line[]
  marks?: readonly Mark[]
  valueText: (value: number) => string
}

const WIDTH = 1_000
const HEIGHT = 100
/** More points than a wide screen has pixels are not drawn. */
const MAX_POINTS = 1_200
const DAY = 86_400

/**
 * Returns a chart as HTML: lines in an SVG that stretches, and labels and marks around it that do not. Times are in
 * UTC, so that the page is the same everywhere.
 */
export function chartHtml({ title, times, lines, marks = [], valueText }: Chart): string {
  const [from = 0, to = 0] = [times[0], times.at(-1)]
  const drawn = [...lines.flatMap(({ values }) => values), ...marks.map(({ value }) => value)]
  const [low, high] = padded(drawn)
  const x = (time: number) => (to === from ? 0 : (time - from) / (to - from))
  const y = (value: number) => (high - value) / (high - low)
  const paths = lines.map(({ className, values }) => {
    const points = outline(values).map(
      index => `${fixed(x(times[index] ?? from) * WIDTH)} ${fixed(y(values[index] ?? low) * HEIGHT)}`,
    )
    return `<path class="line ${className}" d="M${points.join('L')}"/>`
  })
  const ticks = roundValues(low, high, 4)
  const grid = ticks.map(value => `<path class="grid" d="M0 ${fixed(y(value) * HEIGHT)}H${WIDTH}"/>`)
  const valueLabels = ticks.map(
    value => `<span class="value" style="top:${percent(y(value))}">${escapeHtml(valueText(value))}</span>`,
  )
  const timeLabels = dayTicks(from, to).map(
    time => `<span class="time" style="left:${percent(x(time))}">${timeText(time).slice(5, 10)}</span>`,
  )
  const links = marks.map(
    ({ time, value, className, text, href }) =>
      `<a class="mark ${className}" href="${escapeHtml(href)}" style="left:${percent(x(time))};top:${percent(y(value))}" title="${escapeHtml(text)}" aria-label="${escapeHtml(text)}"></a>`,
  )
  const keys = lines.map(({ label, className }) => `<span class="key ${className}">${escapeHtml(label)}</span>`)
  return `<figure class="chart" aria-label="${escapeHtml(title)}">
<figcaption class="chart-legend">${keys.join('')}</figcaption>
<div class="plot"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${grid.join('')}${paths.join('')}</svg>${valueLabels.join('')}${links.join('')}</div>
<div class="times">${timeLabels.join('')}</div>
</figure>`
}

/** Returns the range of the values with some room, so that a flat line is drawn in the middle. */
function padded(values: readonly number[]): [low: number, high: number] {
  const low = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY)
  const high = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY)
  if (!Number.isFinite(low)) return [0, 1]
  const room = (high - low) * 0.06 || Math.abs(high) * 0.01 || 1
  return [low - room, high + room]
}

/**
 * Returns the indices of a line's outline: of each part the lowest and the highest value, and the first and last of
 * all.
 */
function outline(values: readonly number[]): number[] {
  if (values.length <= MAX_POINTS) return values.map((_, index) => index)
  const size = Math.ceil((values.length * 2) / MAX_POINTS)
  const kept = new Set([0, values.length - 1])
  for (let start = 0; start < values.length; start += size) {
    let [lowest, highest] = [start, start]
    for (let index = start; index < Math.min(start + size, values.length); index++) {
      if ((values[index] ?? 0) < (values[lowest] ?? 0)) lowest = index
      if ((values[index] ?? 0) > (values[highest] ?? 0)) highest = index
    }
    kept.add(lowest).add(highest)
  }
  return [...kept].sort((a, b) => a - b)
}

/** Returns at most five midnights in UTC between two times; the first time if there is none. */
function dayTicks(from: number, to: number): number[] {
  const step = DAY * Math.max(1, Math.ceil((to - from) / DAY / 5))
  const ticks: number[] = []
  for (let time = Math.ceil(from / DAY) * DAY; time <= to; time += step) ticks.push(time)
  return ticks.length > 0 ? ticks : [from]
}

const fixed = (value: number) => `${Math.round(value * 100) / 100}`
const percent = (part: number) => `${fixed(part * 100)}%`
