import {
  AreaSeries,
  ColorType,
  createChart,
  type IChartApi,
  type ISeriesApi,
  LineType,
  type MouseEventParams,
  TickMarkType,
  type UTCTimestamp,
} from 'lightweight-charts'
import { formatLocal } from '../format/time.ts'

/** One line of a chart. `pane` 0 is the main one; lines of pane 1 are drawn below it. */
export type Line = {
  values: { time: number; value: number }[]
  color: 'accent' | 'loss'
  pane: 0 | 1
  format: (value: number) => string
}

export type DrawnChart = {
  update(lines: Line[]): void
  recolor(): void
  remove(): void
}

/** The theme's colors, read from the style sheet: canvases know no CSS variables. */
function themeColors(element: Element) {
  const style = getComputedStyle(element)
  const resolve = (name: string) => style.getPropertyValue(`--chart-${name}`).trim()
  return {
    accent: resolve('accent'),
    'accent-fill': resolve('accent-fill'),
    loss: resolve('loss'),
    'loss-fill': resolve('loss-fill'),
    text: resolve('text'),
    grid: resolve('grid'),
  }
}

/** Shortens `22 Nov, 10:05` to the day or to the time of day. */
function tickText(text: string, type: TickMarkType): string {
  const [day = '', time = ''] = text.split(', ')
  return type >= TickMarkType.Time ? time : day
}

/**
 * Draws lines into an element. `onHover` is called with the time under the pointer, or undefined when it leaves. The
 * library's logo is off because it brings an inline style; the footer has its notice.
 */
export function drawChart(element: HTMLElement, lines: Line[], onHover: (time?: number) => void): DrawnChart {
  const chart: IChartApi = createChart(element, {
    autoSize: true,
    layout: { attributionLogo: false, fontSize: 11, fontFamily: getComputedStyle(element).fontFamily },
    handleScroll: false,
    handleScale: false,
    rightPriceScale: { borderVisible: false },
    timeScale: {
      borderVisible: false,
      timeVisible: true,
      fixLeftEdge: true,
      fixRightEdge: true,
      tickMarkFormatter: (time: UTCTimestamp, type: TickMarkType) => tickText(formatLocal(time), type),
    },
    localization: { timeFormatter: (time: UTCTimestamp) => formatLocal(time) },
    crosshair: { horzLine: { visible: false, labelVisible: false } },
  })
  const series: ISeriesApi<'Area'>[] = lines.map(({ pane, format }) =>
    chart.addSeries(
      AreaSeries,
      {
        lineWidth: 2,
        lineType: LineType.WithSteps,
        priceLineVisible: false,
        lastValueVisible: true,
        invertFilledArea: pane === 1,
        priceFormat: { type: 'custom', formatter: format, minMove: 0.000001 },
      },
      pane,
    ),
  )
  chart.panes()[1]?.setStretchFactor(0.35)
  chart.panes()[0]?.setStretchFactor(1)

  function recolor() {
    const colors = themeColors(element)
    chart.applyOptions({
      layout: {
        background: { type: ColorType.Solid, color: 'transparent' },
        textColor: colors.text,
        panes: { separatorColor: colors.grid, enableResize: false },
      },
      grid: { vertLines: { visible: false }, horzLines: { color: colors.grid } },
      crosshair: { vertLine: { color: colors.text, labelVisible: false } },
    })
    for (const [index, { color }] of lines.entries())
      series[index]?.applyOptions({
        lineColor: colors[color],
        topColor: color === 'loss' ? 'transparent' : colors['accent-fill'],
        bottomColor: color === 'loss' ? colors['loss-fill'] : 'transparent',
      })
  }
  function update(next: Line[]) {
    for (const [index, { values }] of next.entries())
      series[index]?.setData(values.map(({ time, value }) => ({ time: time as UTCTimestamp, value })))
    chart.timeScale().fitContent()
  }

  const follow = ({ time }: MouseEventParams) => onHover(typeof time === 'number' ? time : undefined)
  chart.subscribeCrosshairMove(follow)
  recolor()
  update(lines)
  return { update, recolor, remove: () => chart.remove() }
}
