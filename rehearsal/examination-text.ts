import type { Distribution, ExaminationStatistics, Share } from './examination.ts'

// What an examination says, in the terminal and on the page.

/** Returns a fraction in percent; zero has no sign. */
export const percent = (fraction: number): string => `${(fraction * 100).toFixed(2).replace(/^-(?=[0.]+$)/, '')} %`
export const decimal = (value: number | null): string => (value === null ? '–' : value.toFixed(2))
const days = (value: number) => `${value.toFixed(1)} d`
const whole = (fraction: number) => `${Math.round(fraction * 100)} %`
/** Returns a probability that is never rounded to certainty. */
export const chance = (probability: number | null): string => {
  if (probability === null) return '–'
  if (probability < 0.001) return 'below 0.1 %'
  return probability > 0.999 ? 'above 99.9 %' : `${(probability * 100).toFixed(1)} %`
}
export const share = ({ share, low, high }: Share): string => `${whole(share)} (${whole(low)} to ${whole(high)})`

/** The confidence that counts as an edge. */
const CONFIDENCE = 0.95

/** Returns what the figures say about luck, in one or two sentences. */
export function conclusionOf(statistics: ExaminationStatistics): string {
  const { trades, deflatedSharpe, chanceOfRank, variants, minTrackRecordDays, ruined } = statistics
  if (trades === 0) return 'The agent did not trade, so there is nothing to examine.'
  const tried = variants === 1 ? 'the only variant tried' : `the best of ${variants} variants tried`
  const isProfitable = deflatedSharpe !== null && deflatedSharpe >= CONFIDENCE
  const isBetterThanRandom = chanceOfRank <= 1 - CONFIDENCE
  const track =
    minTrackRecordDays === null
      ? ''
      : ` A track record of ${Math.ceil(minTrackRecordDays)} days would show a Sharpe ratio like this one.`
  const ruin = ruined.share > 0 ? ` ${whole(ruined.share)} of the runs reached the drawdown limit of the track.` : ''
  if (isProfitable && isBetterThanRandom)
    return `An edge: the return is above zero even as ${tried}, and its entries beat random ones.${track}${ruin}`
  if (isProfitable)
    return `No edge in its choices: it earns, but random entries with the same exposure and turnover do as well.${ruin}`
  if (isBetterThanRandom)
    return `Better than random entries, but the return is not distinguishable from zero as ${tried}.${track}${ruin}`
  return `Luck is enough to explain this result: neither return nor entries are distinguishable from chance.${ruin}`
}

const QUANTILES = ['p5', 'median', 'p95', 'mean'] as const

/** The distributions over the runs: title, figure and how its values are written. */
export function distributionRows(statistics: ExaminationStatistics): [title: string, values: string[]][] {
  const row = (title: string, figure: Distribution, text: (value: number) => string): [string, string[]] => [
    title,
    QUANTILES.map(name => text(figure[name])),
  ]
  const { sharpe } = statistics
  return [
    row('return', statistics.return, percent),
    row('above holding', statistics.excessOverHolding, percent),
    row('deepest drawdown', statistics.drawdown, percent),
    ...(sharpe === null ? [] : [row('Sharpe ratio, a year', sharpe, decimal)]),
    row('time under water', statistics.timeUnderWater, percent),
    row('longest under water', statistics.longestUnderWaterDays, days),
    ...Object.entries(statistics.returnIf).map(([name, figure]) => row(`return, ${name}`, figure, percent)),
  ]
}
export const DISTRIBUTION_HEAD = ['5 %', 'median', '95 %', 'mean']

/** The figures of all runs together. */
export function figureRows(statistics: ExaminationStatistics): [title: string, value: string][] {
  const { costs, variants, minTrackRecordDays } = statistics
  const usdc = (value: number) => `${value.toFixed(2)} USDC`
  return [
    ['profitable runs', share(statistics.profitable)],
    ['better than holding', share(statistics.beatsHolding)],
    ['reached the drawdown limit', share(statistics.ruined)],
    ['rank among random entries', `${whole(statistics.rankAmongRandom)}, by chance ${chance(statistics.chanceOfRank)}`],
    ['Sharpe ratio above 0', chance(statistics.probabilisticSharpe)],
    [`the same, ${variants} ${variants === 1 ? 'variant' : 'variants'} tried`, chance(statistics.deflatedSharpe)],
    ['days until that is shown', minTrackRecordDays === null ? '–' : `${Math.ceil(minTrackRecordDays)}`],
    [
      'cost of a run',
      `${usdc(costs.poolFees + costs.impact + costs.bounties)}, ${costs.bps.toFixed(1)} bps of turnover`,
    ],
    ['pool fees', usdc(costs.poolFees)],
    ['price impact', usdc(costs.impact)],
    ["keeper's bounties", usdc(costs.bounties)],
  ]
}

/** The mean return by kind of market. */
export const marketRows = ({ byMarket }: ExaminationStatistics): [title: string, values: string[]][] =>
  Object.entries(byMarket).map(([name, { runs, return: own, holdReturn }]) => [
    name,
    [`${runs}`, percent(own), percent(holdReturn)],
  ])
export const MARKET_HEAD = ['runs', 'return', 'holding']

/** Returns an examination for a terminal, at most 80 columns wide. */
export function examinationText(name: string, statistics: ExaminationStatistics): string {
  const { runs, failed, trades } = statistics
  return [
    `${runs} runs of ${name}, ${trades} trades`.slice(0, 80),
    ...(failed > 0 ? [`In ${failed} of them its program failed; their logs are next to the runs.`] : []),
    '',
    ...wrapped(conclusionOf(statistics)),
    '',
    ...aligned([['over the runs', DISTRIBUTION_HEAD], ...distributionRows(statistics)]),
    '',
    ...aligned([['by market', MARKET_HEAD], ...marketRows(statistics)]),
    '',
    ...figureRows(statistics).map(([title, value]) => `${title.padEnd(28)}${value}`),
  ].join('\n')
}

const WIDTH = 80

function wrapped(text: string): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length < WIDTH) lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
    else lines.push(word)
  }
  return lines
}

const aligned = (rows: [title: string, values: string[]][]): string[] =>
  rows.map(([title, values]) => title.padEnd(26) + values.map(value => value.padStart(12)).join(''))
