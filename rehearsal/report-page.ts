import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml } from '../reference/build/html.ts'
import { chartHtml, type Mark } from './chart-svg.ts'
import { figureText, percentText, timeText, usdcText } from './figure-text.ts'
import {
  type AgentReport,
  drawdowns,
  isPurchase,
  type PlayedMarket,
  type Report,
  type ReportedTrade,
} from './report.ts'
import type { Figure } from './requirement.ts'

/** The styles of the pages under /app, so that the report looks like them. */
const STYLES = ['theme', 'base', 'parts', 'chart', 'narrow'].map(name => `../web/src/styles/${name}.css`)
const OWN_STYLE = join(import.meta.dirname, 'report.css')

/** Browsers load nothing else: the page has its styles, no fonts and no scripts. */
const readStyles = (): string =>
  [...STYLES.map(path => join(import.meta.dirname, path)), OWN_STYLE]
    .map(path => readFileSync(path, 'utf8'))
    .join('\n')
    .replace(/@font-face\s*\{[^}]*\}/g, '')

const HEADLINES: [title: string, figure: Figure][] = [
  ['Return', 'return'],
  ['Against buy and hold', 'excess'],
  ['Deepest drawdown', 'drawdown'],
  ['Profit', 'pnl'],
  ['Execution cost', 'cost'],
  ['Trades', 'trades'],
  ['Win rate', 'winrate'],
  ['Score', 'score'],
]

/** Returns the report as one HTML page that loads nothing from elsewhere. */
export function reportPage(report: Report, market: PlayedMarket): string {
  const { agents, from, to, bars, symbols } = report
  const single = agents.length === 1 ? agents[0] : undefined
  const title = single ? `Rehearsal of ${single.name}` : `Rehearsal of ${agents.length} agents`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>
${readStyles()}</style>
</head>
<body>
<main class="report stack">
<header><p class="kicker">${bars} bars of ${escapeHtml(symbols.join(', '))}</p><h1>${escapeHtml(title)}</h1>
<p class="fine">${timeText(from)} to ${timeText(to)} UTC</p></header>
${single ? '' : leaderboard(agents)}
${agents.map((agent, index) => agentSection(agent, index, market, agents.length > 1)).join('\n')}
${panel('How to repeat it', facts(settingOf(report)))}
</main>
</body>
</html>
`
}

function settingOf({ market, seed, tapeHash, notes, versions }: Report): [string, string][] {
  return [
    ['Market', market],
    ['Seed', seed === null ? 'none: the tape is a file' : `${seed}`],
    ['Tape', tapeHash],
    ...notes.map((note): [string, string] => ['Note', note]),
    ...Object.entries(versions).map(([name, version]): [string, string] => [`Version of ${name}`, version]),
  ]
}

function leaderboard(agents: readonly AgentReport[]): string {
  const rows = agents.map((agent, index) => [
    `${index + 1}`,
    `<a href="#agent-${index}">${escapeHtml(agent.name)}</a>`,
    ...HEADLINES.map(([, figure]) => figureText(figure, agent.figures[figure])),
  ])
  return panel('Leaderboard', table(['', 'Agent', ...HEADLINES.map(([title]) => title)], rows, 2))
}

function agentSection(agent: AgentReport, index: number, market: PlayedMarket, isNamed: boolean): string {
  const { figures, equity, trades } = agent
  const times = equity.map(({ time }) => time)
  const depth = drawdowns(equity.map(({ equityUsdc }) => equityUsdc))
  const dollars = (value: number) => value.toFixed(Math.abs(value) < 10 ? 2 : 0)
  const headlines = HEADLINES.map(
    ([title, figure]) => `<div><dt>${title}</dt><dd class="num">${figureText(figure, figures[figure])}</dd></div>`,
  )
  const traded = market.times.length === 0 ? [] : [...new Set(trades.map(({ symbol }) => symbol))].sort()
  return `<section class="stack" id="agent-${index}">
${isNamed ? `<h2 class="agent-name">${escapeHtml(agent.name)}</h2>` : ''}
${agent.exitCode === 0 ? '' : `<p class="down">Its program ended with exit code ${agent.exitCode}.</p>`}
<dl class="figures">${headlines.join('')}</dl>
${verdictsOf(agent)}
${panel(
  'Equity',
  chartHtml({
    title: 'Equity against buy and hold, in USDC',
    times,
    lines: [
      { label: 'Agent', className: 'series-1', values: equity.map(({ equityUsdc }) => Number(equityUsdc) / 1e6) },
      { label: 'Buy and hold', className: 'series-3', values: equity.map(({ holdUsdc }) => Number(holdUsdc) / 1e6) },
    ],
    valueText: dollars,
  }),
)}
${panel(
  'Drawdown',
  chartHtml({
    title: 'Drawdown in percent',
    times,
    lines: [{ label: 'Below the peak', className: 'series-2', values: depth.map(ppm => -Number(ppm) / 10_000) }],
    valueText: value => `${value.toFixed(2)} %`,
  }),
)}
${traded.map(symbol => panel(escapeHtml(symbol), priceChart(symbol, agent, index, market))).join('\n')}
${panel('Trades', tradeTable(agent, index))}
<div class="halves">
${panel('Limits hit and refusals', stopsOf(agent))}
${panel('Promotion', promotionOf(agent))}
</div>
${panel('Statistics', facts(statisticsOf(agent.statistics)))}
</section>`
}

function verdictsOf({ verdicts }: AgentReport): string {
  if (verdicts.length === 0) return ''
  const rows = verdicts.map(
    ({ text, pass, actual }) =>
      `<li class="${pass ? 'up' : 'down'}">${pass ? 'Met' : 'Missed'}: ${escapeHtml(text)}${actual === null ? ' (not defined)' : ''}</li>`,
  )
  return panel('Required', `<ul>${rows.join('')}</ul>`)
}

function priceChart(symbol: string, { trades }: AgentReport, agent: number, market: PlayedMarket): string {
  const marks = trades.flatMap((trade, index): Mark[] => {
    if (trade.symbol !== symbol || trade.priceUsdc === null) return []
    const text = `${describe(trade)}${trade.note === null ? '' : `: ${trade.note}`}`
    return [
      {
        time: Number(trade.timestamp),
        value: Number(trade.priceUsdc) / 1e6,
        className: kindOf(trade),
        text: `${timeText(Number(trade.timestamp))} ${text}`,
        href: `#trade-${agent}-${index}`,
      },
    ]
  })
  return chartHtml({
    title: `Price of ${symbol} in USD, with the trades`,
    times: market.times,
    lines: [
      {
        label: `${symbol}, USD`,
        className: 'series-6',
        values: (market.prices[symbol] ?? []).map(p => Number(p) / 1e8),
      },
    ],
    marks,
    valueText: value => value.toFixed(value < 10 ? 4 : 2),
  })
}

const kindOf = ({ type, source }: ReportedTrade): 'buy' | 'sell' | 'fired' =>
  isPurchase(type) ? 'buy' : source === 'intent' ? 'sell' : 'fired'

/** Returns what a trade did, such as `Stop-loss at -8 %`. */
function describe({ type, source, triggerType, triggerBps }: ReportedTrade): string {
  if (type === 'ExitLadderUpdated') return 'Ladder set'
  if (isPurchase(type)) return type === 'PositionOpened' ? 'Opened' : 'Increased'
  if (triggerType !== null && triggerBps !== null)
    return `${triggerType === 'StopLoss' ? 'Stop-loss' : 'Take-profit'} at ${triggerBps / 100} %`
  return source === 'intent' ? 'Sold' : `Closed by ${source}`
}

function tradeTable({ trades }: AgentReport, agent: number): string {
  if (trades.length === 0) return '<p class="none">It did not trade.</p>'
  const amount = (base: string | null) => (base === null ? '' : usdcText(BigInt(base)).replace(' USDC', ''))
  const rows = trades.map(
    (trade, index) =>
      `<tr id="trade-${agent}-${index}"><td class="num">${timeText(Number(trade.timestamp))}</td><td><span class="dot ${kindOf(trade)}"></span>${describe(trade)}</td><td>${escapeHtml(trade.symbol)}</td><td class="num right">${amount(trade.usdcAmount)}</td><td class="num right">${amount(trade.priceUsdc)}</td><td class="num right">${amount(trade.realizedPnlUsdc)}</td><td class="wrap note">${escapeHtml(trade.note ?? '')}</td></tr>`,
  )
  const titles = ['Time, UTC', 'What', 'Token', 'USDC', 'Price', 'Realized', 'Note']
  const heads = titles.map((title, column) => `<th${column > 2 && column < 6 ? ' class="right"' : ''}>${title}</th>`)
  return `<div class="scroll trades" tabindex="0" role="region" aria-label="Trades"><table><thead><tr>${heads.join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

function stopsOf({ refusals, limits }: AgentReport): string {
  const rows = [
    ...Object.entries(limits).map(([rule, count]) => [
      `${escapeHtml(rule)} <span class="fine">limit</span>`,
      `${count}`,
    ]),
    ...Object.entries(refusals).map(([code, count]) => [
      `${escapeHtml(code)} <span class="fine">refused</span>`,
      `${count}`,
    ]),
  ]
  return rows.length === 0 ? '<p class="none">None.</p>' : table(['Code', 'Times'], rows, 1)
}

function promotionOf({ promotion }: AgentReport): string {
  const { eligible, alphaScore, blockers } = promotion
  const open = blockers.map(blocker => `<li>${escapeHtml(blocker)}</li>`)
  return `<p>${eligible ? 'Every criterion of the contracts is met.' : 'Not yet eligible. The contracts miss:'}</p><ul class="blockers">${open.join('')}</ul>
<p class="fine">Score ${alphaScore ?? 'not computed'}</p>`
}

/** Returns the single figures of the statistics; lists are in the JSON. */
function statisticsOf(statistics: AgentReport['statistics']): [string, string][] {
  return Object.entries(statistics).flatMap(([name, value]): [string, string][] => {
    if (value !== null && typeof value === 'object') return []
    return [
      [
        name.replace(/(Usdc|Ppm|Bps|Milli|Seconds)$/, '').replace(/[A-Z]/g, c => ` ${c.toLowerCase()}`),
        statisticText(name, value),
      ],
    ]
  })
}

function statisticText(name: string, value: unknown): string {
  if (value === null) return '–'
  if (name.endsWith('Usdc')) return usdcText(BigInt(`${value}`))
  if (name.endsWith('Ppm')) return percentText(BigInt(`${value}`))
  if (name.endsWith('Bps')) return percentText(BigInt(`${value}`) * 100n)
  if (name.endsWith('Milli')) return `${Number(value) / 1000}`
  if (name.endsWith('Seconds')) return `${value} s`
  return `${value}`
}

const panel = (title: string, body: string) =>
  `<section class="panel"><header><h2>${title}</h2></header><div class="body">${body}</div></section>`

const facts = (rows: [string, string][]) =>
  `<dl class="figure-list">${rows.map(([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd class="num">${escapeHtml(value)}</dd></div>`).join('')}</dl>`

/** Returns a table whose cells are HTML; columns from `firstNumber` on are figures. */
function table(titles: string[], rows: string[][], firstNumber: number): string {
  const cell = (tag: 'th' | 'td') => (html: string, column: number) =>
    `<${tag}${column >= firstNumber ? ' class="num right"' : ''}>${html}</${tag}>`
  const lines = rows.map(row => `<tr>${row.map(cell('td')).join('')}</tr>`)
  return `<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><thead><tr>${titles.map(cell('th')).join('')}</tr></thead><tbody>${lines.join('')}</tbody></table></div>`
}
