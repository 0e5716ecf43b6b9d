/** Beyond this, the distribution is 0 or 1 to all digits of a double. */
const FARTHEST = 38
/** From here on the continued fraction takes fewer terms than the series. */
const TAIL = 3
const FRACTION_TERMS = 80

const density = (x: number) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)

/**
 * Returns the probability that a standard normal variable is at most `x`, to 1e-14 (Abramowitz and Stegun, Handbook of
 * Mathematical Functions, 26.2.11 and 26.2.14).
 */
export function normalCdf(x: number): number {
  if (x < -TAIL) return upperTail(-x)
  if (x > TAIL) return 1 - upperTail(x)
  let [sum, term] = [x, x]
  for (let divisor = 3; Math.abs(term) > Number.EPSILON * Math.abs(sum); divisor += 2) {
    term *= (x * x) / divisor
    sum += term
  }
  return 0.5 + density(x) * sum
}

function upperTail(x: number): number {
  if (x > FARTHEST) return 0
  let fraction = x
  for (let term = FRACTION_TERMS; term > 0; term--) fraction = x + term / fraction
  return density(x) / fraction
}

/** Returns the value that a standard normal variable exceeds with probability 1 − `p`. Throws outside of 0 to 1. */
export function normalQuantile(p: number): number {
  if (!(p > 0 && p < 1)) throw new RangeError(`A probability between 0 and 1 is expected, not ${p}.`)
  if (p > 0.5) return -normalQuantile(1 - p)
  let [low, high] = [-FARTHEST, 0]
  for (;;) {
    const middle = (low + high) / 2
    if (middle === low || middle === high) return middle
    if (normalCdf(middle) < p) low = middle
    else high = middle
  }
}
