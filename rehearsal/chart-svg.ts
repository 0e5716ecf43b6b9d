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
 * Returns a chart as HTML: lines in an SVG that stretches, and labels and marks around it that do not. Bars are equally
 * wide, so that nights and weekends take no room, and a line is interrupted at each. Times are in UTC, so that the page
 * is the same everywhere.
 */
export function chartHtml({ title, times, lines, marks = [], valueText }: Chart): string {
  const starts = sessionStarts(times)
  const drawn = [...lines.flatMap(({ values }) => values), ...marks.map(({ value }) => value)]
  const [low, high] = padded(drawn)
  const xOf = (index: number) => (times.length < 2 ? 0 : index / (times.length - 1))
  const y = (value: number) => (high - value) / (high - low)
  const paths = lines.map(({ className, values }) => {
    let path = ''
    for (const index of outline(values, starts)) {
      const command = starts.has(index) || path === '' ? 'M' : 'L'
      path += `${command}${fixed(xOf(index) * WIDTH)} ${fixed(y(values[index] ?? low) * HEIGHT)}`
    }
    return `<path class="line ${className}" d="${path}"/>`
  })
  const ticks = roundValues(low, high, 4)
  const grid = ticks.map(value => `<path class="grid" d="M0 ${fixed(y(value) * HEIGHT)}H${WIDTH}"/>`)
  const valueLabels = ticks.map(
    value => `<span class="value" style="top:${percent(y(value))}">${escapeHtml(valueText(value))}</span>`,
  )
  const timeLabels = dayTicks(times).map(
    index =>
      `<span class="time" style="left:${percent(xOf(index))}">${timeText(times[index] ?? 0).slice(5, 10)}</span>`,
  )
  const links = marks.map(
    ({ time, value, className, text, href }) =>
      `<a class="mark ${className}" href="${escapeHtml(href)}" style="left:${percent(xOf(placeOf(times, time)))};top:${percent(y(value))}" title="${escapeHtml(text)}" aria-label="${escapeHtml(text)}"></a>`,
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

/** A longer pause than this many usual distances between bars is a night, a weekend or a halt. */
const PAUSE = 4

/** Returns the indices of the bars that follow a pause. */
function sessionStarts(times: readonly number[]): Set<number> {
  const distances = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  const usual = [...distances].sort((a, b) => a - b)[distances.length >> 1] ?? 0
  return new Set(distances.flatMap((distance, index) => (distance > PAUSE * usual ? [index + 1] : [])))
}

/** Returns where a time is among bars, as an index with a fraction. */
function placeOf(times: readonly number[], time: number): number {
  const next = times.findIndex(each => each >= time)
  if (next <= 0) return next === 0 ? 0 : times.length - 1
  const [from, to] = [times[next - 1] ?? 0, times[next] ?? 0]
  return next - 1 + (time - from) / (to - from)
}

/**
 * Returns the indices of a line's outline: of each part the lowest and the highest value, the first and last of all,
 * and those next to a pause.
 */
function outline(values: readonly number[], starts: ReadonlySet<number>): number[] {
  if (values.length <= MAX_POINTS) return values.map((_, index) => index)
  const size = Math.ceil((values.length * 2) / MAX_POINTS)
  const kept = new Set([0, values.length - 1])
  for (const start of starts) kept.add(start - 1).add(start)
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

/** Returns the first bars of at most five days in UTC; the first bar if there is only one day. */
function dayTicks(times: readonly number[]): number[] {
  const days = times.flatMap((time, index) =>
    index === 0 || Math.floor(time / DAY) !== Math.floor((times[index - 1] ?? 0) / DAY) ? [index] : [],
  )
  const step = Math.max(1, Math.ceil(days.length / 5))
  return days.filter((_, index) => index % step === 0)
}

const fixed = (value: number) => `${Math.round(value * 100) / 100}`
const percent = (part: number) => `${fixed(part * 100)}%`
