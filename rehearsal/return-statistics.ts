import { normalCdf, normalQuantile } from './normal-distribution.ts'

// Statistics of returns, as fractions per period. A figure that is not defined is null. `npm run test:quant` compares
// them with quantstats and SciPy.

/** Returns the change from each value to the next; 0 after ruin, as of nothing. */
export const returnsOf = (values: readonly number[]): number[] =>
  values.slice(1).map((value, index) => {
    const before = values[index] ?? value
    return before > 0 ? value / before - 1 : 0
  })

export const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

const centralMoment = (values: readonly number[], order: number): number => {
  const center = mean(values)
  return mean(values.map(value => (value - center) ** order))
}

/** Returns the standard deviation of a sample, which divides by n − 1. */
export const deviation = (values: readonly number[]): number =>
  Math.sqrt((centralMoment(values, 2) * values.length) / (values.length - 1))

/** A smaller part of the mean is the rounding of equal returns, not variation. */
const MIN_VARIATION = 1e-12

/** Returns the Sharpe ratio per period with a risk-free rate of 0; null without variation. */
export function sharpeOf(returns: readonly number[]): number | null {
  if (returns.length < 2) return null
  const [spread, center] = [deviation(returns), mean(returns)]
  return spread > MIN_VARIATION * Math.abs(center) ? center / spread : null
}

/** Returns the quantile of a sample by linear interpolation (Hyndman and Fan 1996, type 7). */
export function quantile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  const place = (sorted.length - 1) * p
  const [below, above] = [sorted[Math.floor(place)] ?? Number.NaN, sorted[Math.ceil(place)] ?? Number.NaN]
  return below + (above - below) * (place - Math.floor(place))
}

/** Returns the deepest fall from the highest value before it, as a fraction, never negative. */
export const maxDrawdown = (values: readonly number[]): number =>
  belowPeak(values).reduce((deepest, each) => Math.max(deepest, each), 0)

function belowPeak(values: readonly number[]): number[] {
  let peak = Number.NEGATIVE_INFINITY
  return values.map(value => {
    peak = Math.max(peak, value)
    return peak > 0 ? 1 - value / peak : 0
  })
}

/** Returns the part of the periods that end below an earlier value, and the longest run of them. */
export function underWater(values: readonly number[]): { share: number; longest: number } {
  const depths = belowPeak(values)
  let [run, longest, below] = [0, 0, 0]
  for (const depth of depths) {
    run = depth > 0 ? run + 1 : 0
    longest = Math.max(longest, run)
    if (depth > 0) below++
  }
  return { share: values.length === 0 ? 0 : below / values.length, longest }
}

/**
 * Returns the standard error of a Sharpe ratio per period times √(n − 1), with skewness and kurtosis of the sample
 * (Mertens 2002; Bailey and López de Prado, The Sharpe Ratio Efficient Frontier, 2012, eq. 8).
 */
function sharpeError(returns: readonly number[], sharpe: number): number {
  const variance = centralMoment(returns, 2)
  const skewness = centralMoment(returns, 3) / variance ** 1.5
  const kurtosis = centralMoment(returns, 4) / variance ** 2
  return Math.sqrt(Math.max(0, 1 - skewness * sharpe + ((kurtosis - 1) / 4) * sharpe ** 2))
}

/**
 * Returns the probability that the true Sharpe ratio exceeds a benchmark, both per period (Bailey and López de Prado
 * 2012, eq. 9).
 */
export function probabilisticSharpe(returns: readonly number[], benchmark = 0): number | null {
  const sharpe = sharpeOf(returns)
  if (sharpe === null) return null
  return normalCdf(((sharpe - benchmark) * Math.sqrt(returns.length - 1)) / sharpeError(returns, sharpe))
}

const EULER_MASCHERONI = 0.577_215_664_901_532_9

/**
 * Returns the highest Sharpe ratio to expect of trials without any skill, whose ratios have this standard deviation
 * (Bailey and López de Prado, The Deflated Sharpe Ratio, 2014, eq. 1).
 */
export function expectedMaxSharpe(trials: number, spread: number): number {
  if (trials < 2) return 0
  const first = normalQuantile(1 - 1 / trials)
  const second = normalQuantile(1 - 1 / (trials * Math.E))
  return spread * ((1 - EULER_MASCHERONI) * first + EULER_MASCHERONI * second)
}

/**
 * Returns the probability that the true Sharpe ratio is above 0, given that this is the best of several trials (Bailey
 * and López de Prado 2014, eq. 2). `sharpes` has the ratio per period of every trial, this one included. If they are
 * too few to show how they spread, the error of a ratio without skill, 1/√(n − 1), is their spread.
 */
export function deflatedSharpe(returns: readonly number[], sharpes: readonly number[]): number | null {
  const spread = Math.max(sharpes.length < 2 ? 0 : deviation(sharpes), 1 / Math.sqrt(returns.length - 1))
  return probabilisticSharpe(returns, expectedMaxSharpe(sharpes.length, spread))
}

/**
 * Returns how many returns are needed until the Sharpe ratio is above a benchmark with this confidence (Bailey and
 * López de Prado 2012, eq. 11); null if it is not above it at all.
 */
export function minTrackRecord(returns: readonly number[], confidence = 0.95, benchmark = 0): number | null {
  const sharpe = sharpeOf(returns)
  if (sharpe === null || sharpe <= benchmark) return null
  return 1 + ((sharpeError(returns, sharpe) * normalQuantile(confidence)) / (sharpe - benchmark)) ** 2
}

/** Returns the interval of a probability that was met `met` times in `trials` (Wilson 1927). */
export function wilsonInterval(met: number, trials: number, confidence = 0.95): { low: number; high: number } {
  const z = normalQuantile((1 + confidence) / 2)
  const share = met / trials
  const center = (share + z ** 2 / (2 * trials)) / (1 + z ** 2 / trials)
  const half = (z * Math.sqrt((share * (1 - share)) / trials + z ** 2 / (4 * trials ** 2))) / (1 + z ** 2 / trials)
  return { low: Math.max(0, center - half), high: Math.min(1, center + half) }
}

/**
 * Returns the probability that the mean of so many ranks, each uniform between 0 and 1, is at least `rank` (a normal
 * approximation of the Irwin–Hall distribution).
 */
export const chanceOfMeanRank = (rank: number, ranks: number): number =>
  1 - normalCdf((rank - 0.5) * Math.sqrt(12 * ranks))
