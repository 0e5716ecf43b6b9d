import { figureText, inWords, timeText, withoutCode } from './figure-text.ts'
import { type AgentReport, exitsByCause, isPurchase, orderOutcomes, type Report } from './report.ts'
import type { Figure } from './requirement.ts'

const COLUMNS: [title: string, figure: Figure][] = [
  ['return', 'return'],
  ['vs hold', 'excess'],
  ['drawdown', 'drawdown'],
  ['trades', 'trades'],
  ['refused', 'refusals'],
  ['score', 'score'],
]

/**
 * Returns the report for a terminal, at most 80 columns wide: one row for each agent, then what stopped or refused it.
 */
export function summaryOf(report: Report): string {
  const { agents, bars, symbols, from, to, market, seed, tapeHash, notes, versions } = report
  const rows = [
    ['', 'agent', ...COLUMNS.map(([title]) => title)],
    ...agents.map((agent, index) => [
      `${index + 1}`,
      shortened(agent.name, 18),
      ...COLUMNS.map(([, figure]) => figureText(figure, agent.figures[figure])),
    ]),
  ]
  const built = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return [
    `${bars} bars of ${symbols.length} tokens, ${timeText(from)} to ${timeText(to)} UTC`,
    '',
    ...aligned(rows),
    '',
    ...agents.flatMap(linesOf),
    `market    ${market}${seed === null ? '' : `, seed ${seed}`}`,
    `tape      ${tapeHash}`,
    ...notes.map(note => `note      ${note}`),
    `versions  ${built.join(', ')}`,
  ].join('\n')
}

function linesOf({ name, trades, orders, refusals, limits, promotion, verdicts, exitCode }: AgentReport): string[] {
  const { ladder, order, hand, others } = exitsByCause(trades)
  const bought = trades.filter(({ type }) => isPurchase(type)).length
  const counts = (of: Record<string, number>) =>
    Object.entries(of).map(([name, count]) => `${inWords(name)} (${name} ×${count})`)
  const outcomes = [...orderOutcomes(orders)].map(([outcome, count]) => `${count} ${outcome}`)
  const lines = [
    `${bought} purchases; exits: ${ladder} by the ladder, ${order} by orders, ${hand} by hand${others > 0 ? `, ${others} by others` : ''}`,
    ...(orders.length > 0 ? [`orders: ${outcomes.join(', ')}`] : []),
    ...(Object.keys(refusals).length > 0 ? [`refused: ${counts(refusals).join(', ')}`] : []),
    ...(Object.keys(limits).length > 0 ? [`limits hit: ${counts(limits).join(', ')}`] : []),
    ...(promotion.eligible
      ? ['promotion: every criterion is met']
      : promotion.blockers.map(each => `promotion: ${withoutCode(each)}`)),
    ...(exitCode === 0 ? [] : [`its program ended with exit code ${exitCode}`]),
    ...verdicts.map(
      ({ text, pass, actual }) => `${pass ? 'met' : 'MISSED'}: ${text}${actual === null ? ' (not defined)' : ''}`,
    ),
  ]
  return [shortened(name, 78), ...lines.flatMap(wrapped), '']
}

/** Breaks a line at spaces, with the continuation indented. */
function wrapped(text: string): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && line.length + word.length > 74) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.map((line, index) => `${index === 0 ? '  ' : '    '}${line}`)
}

/** Pads the columns: names to the left, figures to the right. */
function aligned(rows: string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows.map(row =>
    row
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

const shortened = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text)
