import { costOf, costOfDelay, lotsOf, randomProfits, rankAmong } from './random-entries.ts'
import type { AgentReport, PlayedMarket, Report } from './report.ts'
import {
  chanceOfMeanRank,
  deflatedSharpe,
  maxDrawdown,
  mean,
  minTrackRecord,
  probabilisticSharpe,
  quantile,
  returnsOf,
  sharpeOf,
  underWater,
  wilsonInterval,
} from './return-statistics.ts'

// What an examination says of an agent, as a function of its runs. Fractions, USDC and days are floats: statistics, not
// money.

/** The market of a run. `original` is the tape itself, which `disguised` ones are compared with. */
export type RunMarket =
  | { kind: 'generated'; generator: 'gbm' | 'jumps' | 'trend' | 'crash'; seed: number }
  | { kind: 'resampled'; seed: number }
  | { kind: 'window'; index: number }
  | { kind: 'original' }
  | { kind: 'disguised'; seed: number }

/** One run: its id, its market, and the seed that its agent gets as ATS_SEED. */
export type RunSpec = { id: string; market: RunMarket; seed: number }

/** What is kept of a run. The same tape, seed and agent give the same record. */
export type RunRecord = {
  spec: RunSpec
  tapeHash: string
  exitCode: number
  allocationUsdc: number
  /** The fall from the highest equity at which the track stops the agent; 0 without one. */
  maxDrawdownLimit: number
  return: number
  holdReturn: number
  drawdown: number
  underWater: { share: number; longestDays: number }
  /** Equity at the end of each day with prices, the first bar's before it. */
  dailyEquity: number[]
  trades: number
  refusals: number
  turnoverUsdc: number
  /** Execution cost by what it was paid for, in USDC. */
  costs: Costs
  /** The part of random agents with the same exposure and turnover that did worse. */
  rankAmongRandom: number
  /** The returns of those, as ten quantiles. */
  randomReturns: number[]
  /** The return if trading were dearer or later. */
  returnIf: Record<Sensitivity, number>
}

export type Costs = { poolFees: number; bounties: number; impact: number }

export const SENSITIVITIES = {
  '5 bps dearer': { bps: 5, bars: 0 },
  '20 bps dearer': { bps: 20, bars: 0 },
  'one bar later': { bps: 0, bars: 1 },
  'five bars later': { bps: 0, bars: 5 },
} as const
export type Sensitivity = keyof typeof SENSITIVITIES

const DAY = 86_400
const USDC = 1e6
const RANDOM_AGENTS = 200
const DECILE_MIDDLES = Array.from({ length: 10 }, (_, index) => (index + 0.5) / 10)
/** The pools of a rehearsal take 5 basis points, and a keeper 10 of what it sells, at most 5 USDC; nothing on paper. */
const POOL_FEE = 0.0005
const BOUNTY = { rate: 0.001, max: 5 }

/** Returns the record of a run of one agent. */
export function recordRun(spec: RunSpec, report: Report, market: PlayedMarket): RunRecord {
  const [agent] = report.agents as [AgentReport]
  const allocation = Number(agent.allocationUsdc) / USDC
  const equity = agent.equity.map(({ equityUsdc }) => Number(equityUsdc) / USDC)
  const hold = Number(agent.equity.at(-1)?.holdUsdc ?? 0n) / USDC
  const profit = (equity.at(-1) ?? allocation) - allocation
  const lots = lotsOf(agent.trades, market)
  const traded = agent.trades.reduce((sum, { usdcAmount }) => sum + Number(usdcAmount ?? 0), 0) / USDC
  const costs = costsOf(agent)
  const bought = lots.reduce((sum, { usdc }) => sum + usdc, 0)
  const total = costs.poolFees + costs.bounties + costs.impact
  const random = randomProfits(lots, market, {
    draws: RANDOM_AGENTS,
    seed: spec.seed,
    costRate: bought > 0 ? total / bought : 0,
  })
  const { share, longest } = underWater(equity)
  const span = (report.to - report.from) / DAY / Math.max(1, equity.length - 1)
  const returnIf = Object.fromEntries(
    Object.entries(SENSITIVITIES).map(([name, { bps, bars }]) => [
      name,
      (profit - costOf(agent.trades, bps) - costOfDelay(agent.trades, market, bars)) / allocation,
    ]),
  ) as RunRecord['returnIf']
  return {
    spec,
    tapeHash: report.tapeHash,
    exitCode: agent.exitCode,
    allocationUsdc: allocation,
    maxDrawdownLimit: agent.maxDrawdownBps / 10_000,
    return: profit / allocation,
    holdReturn: hold / allocation - 1,
    drawdown: maxDrawdown(equity),
    underWater: { share, longestDays: longest * span },
    dailyEquity: [
      allocation,
      ...lastOfDays(
        agent.equity.map(({ time }) => time),
        equity,
      ),
    ],
    trades: agent.trades.filter(({ usdcAmount }) => usdcAmount !== null).length,
    refusals: Object.values(agent.refusals).reduce((sum, count) => sum + count, 0),
    turnoverUsdc: traded,
    costs,
    randomReturns: DECILE_MIDDLES.map(p => quantile(random, p) / allocation),
    rankAmongRandom: lots.length === 0 ? 0.5 : rankAmong(profit, random),
    returnIf,
  }
}

/** Returns the last value of each UTC day. */
function lastOfDays(times: readonly number[], values: readonly number[]): number[] {
  const byDay = new Map<number, number>()
  for (const [index, time] of times.entries()) byDay.set(Math.floor(time / DAY), values[index] ?? 0)
  return [...byDay.values()]
}

/** Splits what execution cost: fees and bounties follow from the amounts, and the rest is price impact. */
function costsOf({ trades, statistics }: AgentReport): Costs {
  const costs = { poolFees: 0, bounties: 0 }
  const isReal = statistics.capital === 'real'
  for (const { usdcAmount, source } of trades) {
    const amount = Number(usdcAmount ?? 0) / USDC
    costs.poolFees += amount * POOL_FEE
    if (isReal && (source === 'automation' || source === 'order'))
      costs.bounties += Math.min(amount * BOUNTY.rate, BOUNTY.max)
  }
  const total = Number(statistics.executionCost.costUsdc) / USDC
  return { ...costs, impact: total - costs.poolFees - costs.bounties }
}

/** The quantiles of a figure over the runs. */
export type Distribution = { p5: number; p25: number; median: number; p75: number; p95: number; mean: number }

export function distributionOf(values: readonly number[]): Distribution {
  const [p5, p25, median, p75, p95] = [0.05, 0.25, 0.5, 0.75, 0.95].map(p => quantile(values, p)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  return { p5, p25, median, p75, p95, mean: mean(values) }
}

/** A share of the runs, with the interval in which the true one is at a confidence of 95 %. */
export type Share = { share: number; low: number; high: number }

const shareOf = (records: readonly RunRecord[], isMet: (record: RunRecord) => boolean): Share => {
  const met = records.filter(isMet).length
  return { share: met / records.length, ...wilsonInterval(met, records.length) }
}

export type ExaminationStatistics = {
  runs: number
  failed: number
  trades: number
  return: Distribution
  drawdown: Distribution
  /** Per day and annualized by √252, of the runs in which it is defined. */
  sharpe: Distribution | null
  timeUnderWater: Distribution
  longestUnderWaterDays: Distribution
  profitable: Share
  beatsHolding: Share
  /** Runs whose drawdown reached the limit of the track. */
  ruined: Share
  excessOverHolding: Distribution
  /** The mean rank among random agents: 0.5 is chance. */
  rankAmongRandom: number
  /** How likely at least this mean rank is for agents that choose at random. */
  chanceOfRank: number
  /** Of the daily returns of all distinct runs together. */
  probabilisticSharpe: number | null
  deflatedSharpe: number | null
  /** How many agents were examined on these markets, this one included. */
  variants: number
  minTrackRecordDays: number | null
  /** Mean cost of a run in USDC, and of its turnover in basis points. */
  costs: Costs & { turnoverUsdc: number; bps: number }
  returnIf: Record<Sensitivity, Distribution>
  /** By kind of market, the mean return and the number of runs. */
  byMarket: Record<string, { runs: number; return: number; holdReturn: number }>
}

export const SESSIONS_PER_YEAR = 252

const dailyReturns = (records: readonly RunRecord[]): number[] =>
  distinctRuns(records).flatMap(({ dailyEquity }) => returnsOf(dailyEquity))

/**
 * Returns the runs whose markets repeat no other one. A tape in disguise, and the whole one next to its windows, would
 * count the same luck again.
 */
function distinctRuns(records: readonly RunRecord[]): RunRecord[] {
  const kindOf = ({ spec }: RunRecord) => spec.market.kind
  const repeated = records.some(each => kindOf(each) === 'window') ? ['disguised', 'original'] : ['disguised']
  return records.filter(each => !repeated.includes(kindOf(each)))
}

/** Returns the Sharpe ratio per day of all distinct runs together; null without variation. */
export const pooledSharpe = (records: readonly RunRecord[]): number | null => sharpeOf(dailyReturns(records))

const GENERATORS = { gbm: 'random walk', jumps: 'with jumps', trend: 'trending', crash: 'with a crash' }

/** Returns the name of a kind of market. */
export const marketName = ({ market }: RunSpec): string =>
  market.kind === 'generated' ? `generated, ${GENERATORS[market.generator]}` : market.kind

/**
 * Returns the statistics of an examination with at least one run. All but its counts and the figures by market are of
 * the runs whose markets repeat no other one. `variantSharpes` has the pooled Sharpe ratio of every agent that was
 * examined on the same markets, this one included.
 */
export function statisticsOf(all: readonly RunRecord[], variantSharpes: readonly number[]): ExaminationStatistics {
  const records = distinctRuns(all)
  const of = (figure: (record: RunRecord) => number) => distributionOf(records.map(figure))
  const daily = dailyReturns(records)
  const sharpes = records.flatMap(({ dailyEquity }) => sharpeOf(returnsOf(dailyEquity)) ?? [])
  const rank = mean(records.map(({ rankAmongRandom }) => rankAmongRandom))
  const turnover = mean(records.map(({ turnoverUsdc }) => turnoverUsdc))
  const cost = (name: keyof Costs) => mean(records.map(({ costs }) => costs[name]))
  const costs = { poolFees: cost('poolFees'), bounties: cost('bounties'), impact: cost('impact') }
  const total = costs.poolFees + costs.bounties + costs.impact
  const groups = Map.groupBy(all, ({ spec }) => marketName(spec))
  return {
    runs: all.length,
    failed: all.filter(({ exitCode }) => exitCode !== 0).length,
    trades: all.reduce((sum, { trades }) => sum + trades, 0),
    return: of(record => record.return),
    drawdown: of(({ drawdown }) => drawdown),
    sharpe: sharpes.length === 0 ? null : distributionOf(sharpes.map(sharpe => sharpe * Math.sqrt(SESSIONS_PER_YEAR))),
    timeUnderWater: of(({ underWater }) => underWater.share),
    longestUnderWaterDays: of(({ underWater }) => underWater.longestDays),
    profitable: shareOf(records, record => record.return > 0),
    beatsHolding: shareOf(records, record => record.return > record.holdReturn),
    ruined: shareOf(records, ({ drawdown, maxDrawdownLimit }) => maxDrawdownLimit > 0 && drawdown >= maxDrawdownLimit),
    excessOverHolding: of(record => record.return - record.holdReturn),
    rankAmongRandom: rank,
    chanceOfRank: chanceOfMeanRank(rank, records.length),
    probabilisticSharpe: probabilisticSharpe(daily),
    deflatedSharpe: deflatedSharpe(daily, variantSharpes),
    variants: variantSharpes.length,
    minTrackRecordDays: minTrackRecord(daily),
    costs: { ...costs, turnoverUsdc: turnover, bps: turnover > 0 ? (total / turnover) * 10_000 : 0 },
    returnIf: Object.fromEntries(
      Object.keys(SENSITIVITIES).map(name => [name, of(({ returnIf }) => returnIf[name as Sensitivity])]),
    ) as ExaminationStatistics['returnIf'],
    byMarket: Object.fromEntries(
      [...groups].map(([name, own]) => [
        name,
        {
          runs: own.length,
          return: mean(own.map(record => record.return)),
          holdReturn: mean(own.map(({ holdReturn }) => holdReturn)),
        },
      ]),
    ),
  }
}
