import { escapeHtml } from '../reference/build/html.ts'
import { type ExaminationStatistics, marketName, type RunRecord } from './examination.ts'
import {
  conclusionOf,
  DISTRIBUTION_HEAD,
  decimal,
  distributionRows,
  figureRows,
  MARKET_HEAD,
  marketRows,
  percent,
} from './examination-text.ts'
import { facts, pageHtml, panel, table } from './page-parts.ts'
import { quantile } from './return-statistics.ts'

const BINS = 24
const HEIGHT = 100

/** Returns an examination as one HTML page that loads nothing from elsewhere. */
export function examinationPage(
  name: string,
  records: readonly RunRecord[],
  statistics: ExaminationStatistics,
): string {
  const { runs, failed, trades } = statistics
  const failures = failed === 0 ? '' : `<p class="down">In ${failed} runs its program failed.</p>`
  return pageHtml(
    { title: `Examination of ${name}`, kicker: 'Edge or luck?', fine: `${runs} runs, ${trades} trades` },
    `${failures}
${panel('What the runs say', `<p class="conclusion">${escapeHtml(conclusionOf(statistics))}</p>${facts(figureRows(statistics).map(([title, value]) => [capitalized(title), value]))}`)}
${panel('Returns of the runs', histogram(records))}
${panel('Over the runs', table(['', ...DISTRIBUTION_HEAD], cells(distributionRows(statistics)), 1))}
${panel('By market', table(['', ...MARKET_HEAD], cells(marketRows(statistics)), 1))}
${panel('Runs', runTable(records))}`,
  )
}

const cells = (rows: readonly [title: string, values: string[]][]) =>
  rows.map(([title, values]) => [escapeHtml(capitalized(title)), ...values.map(escapeHtml)])

const capitalized = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Returns which part of the runs had each return, next to random entries with the same exposure and turnover. */
function histogram(records: readonly RunRecord[]): string {
  const [own, random] = [records.map(record => record.return), records.flatMap(({ randomReturns }) => randomReturns)]
  const all = [...own, ...random]
  const [low, high] = [quantile(all, 0), quantile(all, 1)]
  const width = (high - low) / BINS || 1
  const sharesOf = (values: readonly number[]) => {
    const shares = Array.from({ length: BINS }, () => 0)
    for (const value of values) {
      const bin = Math.min(BINS - 1, Math.floor((value - low) / width))
      shares[bin] = (shares[bin] ?? 0) + 1 / values.length
    }
    return shares
  }
  const series = [
    { label: 'Agent', className: 'series-1', shares: sharesOf(own) },
    { label: 'Random entries', className: 'series-3', shares: sharesOf(random) },
  ]
  const most = Math.max(...series.flatMap(({ shares }) => shares))
  const bars = series.flatMap(({ className, shares }, index) =>
    shares.map((share, bin) => {
      const height = (share / most) * HEIGHT
      return `<rect class="bar ${className}" x="${bin * 10 + 1 + index * 4}" y="${HEIGHT - height}" width="4" height="${height}"/>`
    }),
  )
  const zero = (0 - low) / (width * BINS)
  const labels = [0.1, 0.3, 0.5, 0.7, 0.9].map(
    part => `<span class="time" style="left:${part * 100}%">${percent(low + (high - low) * part)}</span>`,
  )
  const keys = series.map(({ label, className }) => `<span class="key ${className}">${label}</span>`)
  const isZeroShown = zero > 0 && zero < 1
  return `<figure class="chart" aria-label="Share of runs by return">
<figcaption class="chart-legend">${keys.join('')}</figcaption>
<div class="plot"><svg viewBox="0 0 ${BINS * 10} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">${bars.join('')}${isZeroShown ? `<path class="grid zero" d="M${zero * BINS * 10} 0V${HEIGHT}"/>` : ''}</svg><span class="value" style="top:0">${percent(most)}</span></div>
<div class="times">${labels.join('')}</div>
</figure>`
}

function runTable(records: readonly RunRecord[]): string {
  const rows = records.map(record => [
    escapeHtml(record.spec.id),
    escapeHtml(marketName(record.spec)),
    percent(record.return),
    percent(record.holdReturn),
    percent(record.drawdown),
    `${record.trades}`,
    `${record.refusals}`,
    decimal(record.rankAmongRandom),
  ])
  const titles = ['Run', 'Market', 'Return', 'Holding', 'Drawdown', 'Trades', 'Refused', 'Rank among random']
  return table(titles, rows, 2)
}
