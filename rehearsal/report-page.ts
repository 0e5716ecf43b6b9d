import { escapeHtml } from '../reference/build/html.ts'
import { chartHtml, type Mark } from './chart-svg.ts'
import { durationText, figureText, inWords, percentText, timeText, usdcText, withoutCode } from './figure-text.ts'
import { facts, pageHtml, panel, table } from './page-parts.ts'
import {
  type AgentReport,
  drawdowns,
  exitsByCause,
  isPurchase,
  outcomeOf,
  type PlayedMarket,
  type Report,
  type ReportedOrder,
  type ReportedTrade,
  type Statistics,
} from './report.ts'
import type { Figure } from './requirement.ts'

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
  const kicker = `${bars} bars of ${symbols.join(', ')}`
  return pageHtml(
    { title, kicker, fine: `${timeText(from)} to ${timeText(to)} UTC` },
    `${single ? '' : leaderboard(agents)}
${agents.map((agent, index) => agentSection(agent, index, market, agents.length > 1)).join('\n')}
${panel('How to repeat it', facts(settingOf(report)))}`,
  )
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
${panel('Trades', `${exitsOf(agent)}${tradeTable(agent, index)}`)}
${agent.orders.length === 0 ? '' : panel('Orders', orderTable(agent))}
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
  if (isPurchase(type))
    return `${type === 'PositionOpened' ? 'Opened' : 'Increased'}${source === 'order' ? ' by an order' : ''}`
  if (triggerType !== null && triggerBps !== null)
    return `${triggerType === 'StopLoss' ? 'Stop-loss' : 'Take-profit'} at ${triggerBps / 100} %`
  if (source === 'order') return 'Sold by an order'
  return source === 'intent' ? 'Sold' : `Closed by the ${source}`
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

function exitsOf({ trades }: AgentReport): string {
  const { ladder, order, hand, others } = exitsByCause(trades)
  const counts = [`${ladder} by the ladder`, `${order} by orders`, `${hand} by hand`]
  return `<p class="fine">Exits: ${[...counts, ...(others > 0 ? [`${others} by others`] : [])].join(', ')}.</p>`
}

function orderTable({ orders }: AgentReport): string {
  const rows = orders.map(order => [
    timeText(Number(order.placedAt)),
    escapeHtml(termsOf(order)),
    `${escapeHtml(outcomeOf(order))}${order.endedAt === null ? '' : `<br><span class="fine">${timeText(Number(order.endedAt))}</span>`}`,
    `${order.partsDone} of ${order.parts}`,
    escapeHtml(order.waitsFor ?? order.note ?? ''),
  ])
  return table(
    ['Placed, UTC', 'Order', 'What became of it', 'Parts', 'Waits for, or note'],
    rows,
    Number.POSITIVE_INFINITY,
  )
}

const CONDITIONS: Record<string, (price: string) => string> = {
  none: () => 'at any price',
  atOrBelow: price => `at ${price} or less`,
  atOrAbove: price => `at ${price} or more`,
}

/** Returns what an order asks for, such as `Buy NVDA for 90.00 USDC at 120.5 or less`. */
function termsOf({ side, symbol, usdcAmount, exitBps, condition, price, trailBps }: ReportedOrder): string {
  const what =
    side === 'reduce'
      ? `Sell ${exitBps / 100} % of ${symbol}`
      : `${side === 'add' ? 'Add' : 'Buy'} ${symbol} for ${usdcText(BigInt(usdcAmount ?? 0))}`
  if (trailBps > 0)
    return `${what} ${trailBps / 100} % below its highest price${price === null ? '' : `, from ${price} on`}`
  return `${what} ${(CONDITIONS[condition] ?? CONDITIONS.none)?.(price ?? '')}`
}

function stopsOf({ refusals, limits }: AgentReport): string {
  const rowsOf = (counts: Record<string, number>, kind: string) =>
    Object.entries(counts).map(([name, count]) => [
      `<span title="${escapeHtml(name)}">${escapeHtml(inWords(name))}</span> <span class="fine">${kind}</span>`,
      `${count}`,
    ])
  const rows = [...rowsOf(limits, 'limit'), ...rowsOf(refusals, 'refused')]
  return rows.length === 0 ? '<p class="none">None.</p>' : table(['What', 'Times'], rows, 1)
}

function promotionOf({ promotion }: AgentReport): string {
  const { eligible, alphaScore, blockers } = promotion
  const open = blockers.map(blocker => `<li>${escapeHtml(inSentence(withoutCode(blocker)))}</li>`)
  return `<p>${eligible ? 'Every criterion of the contracts is met.' : 'Not yet eligible. The contracts miss:'}</p><ul class="blockers">${open.join('')}</ul>
<p class="fine">Score ${alphaScore ?? 'not computed'}</p>`
}

const inSentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

type FigureOf = (value: never) => string
const usdcOf = (base: string) => usdcText(BigInt(base))
const ppmOf = (ppm: number) => percentText(BigInt(ppm))
const bpsOf = (bps: number) => percentText(BigInt(bps) * 100n)
const milliOf = (milli: number) => `${milli / 1000}`
const countOf = (count: number) => `${count}`
/** The figures of the statistics, with their names in words. */
const STATISTICS: Record<string, [title: string, text: FigureOf]> = {
  capital: ['Capital', (kind: string) => kind],
  pnlUsdc: ['Profit', usdcOf],
  realizedPnlUsdc: ['Realized profit', usdcOf],
  returnPpm: ['Return', ppmOf],
  trades: ['Purchases and sales', countOf],
  closedPositions: ['Closed positions', countOf],
  wins: ['With a profit', countOf],
  losses: ['With a loss', countOf],
  winRateBps: ['Win rate', bpsOf],
  grossProfitUsdc: ['Sum of the profits', usdcOf],
  grossLossUsdc: ['Sum of the losses', usdcOf],
  profitFactorMilli: ['Profits over losses', milliOf],
  averageHoldingSeconds: ['Average holding time', durationText],
  longestHolding: ['Longest holding time', ({ seconds }: { seconds: number }) => durationText(seconds)],
  best: ['Best position', ({ pnlUsdc }: { pnlUsdc: string }) => usdcOf(pnlUsdc)],
  worst: ['Worst position', ({ pnlUsdc }: { pnlUsdc: string }) => usdcOf(pnlUsdc)],
  maxDrawdown: [
    'Deepest drawdown, by hours',
    ({ ppm, from, to }: NonNullable<Statistics['maxDrawdown']>) =>
      `${ppmOf(ppm)}, ${timeText(Number(from))} to ${timeText(Number(to))}`,
  ],
  sharpeMilli: ['Sharpe ratio, a year', milliOf],
  sortinoMilli: ['Sortino ratio, a year', milliOf],
  exposurePpm: ['Average part invested', ppmOf],
  hours: ['Hours counted', countOf],
  gapHours: ['Hours without a price', countOf],
  executionCost: [
    'Execution cost',
    ({ costUsdc, costBps }: Statistics['executionCost']) =>
      `${usdcOf(costUsdc)}${costBps === null ? '' : `, ${bpsOf(costBps)}`}`,
  ],
}

/** Returns the statistics that have a name in words; the JSON has all. */
const statisticsOf = (statistics: Statistics): [string, string][] =>
  Object.entries(STATISTICS).flatMap(([name, [title, text]]): [string, string][] => {
    const value = statistics[name]
    if (value === undefined) return []
    return [[title, value === null ? '–' : (text as (value: unknown) => string)(value)]]
  })
