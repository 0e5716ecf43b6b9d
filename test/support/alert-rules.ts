import { parser } from '@prometheus-io/lezer-promql'

// Evaluates alert rules over series with a sample a minute, as Prometheus does: the part of PromQL that the rules use.
// The tests of ops/prometheus/alerts.test.yml, which promtool runs too, hold it.

type Labels = Readonly<Record<string, string>>
/** A series with a value for each minute; undefined where there is none. */
export type Series = { name: string; labels: Labels; values: readonly (number | undefined)[] }
type Sample = { labels: Labels; value: number }
type Value = number | Sample[]
type Evaluate = (minute: number) => Value
type Node = ReturnType<typeof parser.parse>['topNode']

export type Rule = { alert: string; expr: string; for?: string; labels?: Record<string, string> }
/** When an alert fired: minutes from the first to the last, inclusive, and the labels of its sample. */
export type Firing = { alert: string; labels: Labels; from: number; to: number }

const MINUTE = 60
/** A series without a sample for longer than this is gone. */
const LOOKBACK_MINUTES = 5

/** Returns when each rule fired in the minutes of the series. */
export function evaluateRules(rules: readonly Rule[], series: readonly Series[]): Firing[] {
  const minutes = Math.max(...series.map(({ values }) => values.length))
  return rules.flatMap(({ alert, expr, for: pending = '0m' }) => {
    const evaluate = compile(expr, series)
    const wait = secondsOf(pending) / MINUTE
    const activeSince = new Map<string, number>()
    const firings = new Map<string, Firing>()
    const ended: Firing[] = []
    for (let minute = 0; minute < minutes; minute++) {
      const active = new Map(asVector(evaluate(minute)).map(({ labels }) => [keyOf(labels), labels]))
      for (const key of [...activeSince.keys()].filter(key => !active.has(key))) {
        activeSince.delete(key)
        ended.push(...(firings.get(key) ? [firings.get(key) as Firing] : []))
        firings.delete(key)
      }
      for (const [key, labels] of active) {
        const since = activeSince.get(key) ?? minute
        activeSince.set(key, since)
        if (minute - since >= wait)
          firings.set(key, { alert, labels, from: firings.get(key)?.from ?? minute, to: minute })
      }
    }
    return [...ended, ...firings.values()]
  })
}

/** Returns the samples that an expression selects in a minute. */
export const evaluateAt = (query: string, series: readonly Series[], minute: number): Sample[] =>
  asVector(compile(query, series)(minute))

function compile(query: string, all: readonly Series[]): Evaluate {
  const text = ({ from, to }: Node) => query.slice(from, to)
  const childrenOf = (node: Node): Node[] => {
    const children: Node[] = []
    for (let child = node.firstChild; child; child = child.nextSibling) children.push(child)
    return children
  }
  const labelsIn = (node: Node | null) => (node === null ? [] : node.getChildren('LabelName').map(text))

  function selected(node: Node): Series[] {
    const name = text(node.getChild('Identifier') as Node)
    const matchers = (node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []).map(matcher => {
      const [label, operator, value] = childrenOf(matcher).map(text) as [string, string, string]
      const expected = JSON.parse(value)
      const pattern = new RegExp(`^(?:${expected})$`)
      const matches: Record<string, (found: string) => boolean> = {
        '=': found => found === expected,
        '!=': found => found !== expected,
        '=~': found => pattern.test(found),
        '!~': found => !pattern.test(found),
      }
      return ({ labels }: Series) => matches[operator]?.(labels[label] ?? '') ?? false
    })
    return all.filter(series => series.name === name && matchers.every(matches => matches(series)))
  }

  function vectorSelector(node: Node): Evaluate {
    const found = selected(node)
    return minute =>
      found.flatMap(({ name, labels, values }) => {
        const recent = values.slice(Math.max(0, minute - LOOKBACK_MINUTES + 1), minute + 1)
        const value = recent.findLast(each => each !== undefined)
        return value === undefined ? [] : [{ labels: { ...labels, __name__: name }, value }]
      })
  }

  function call(node: Node): Evaluate {
    const name = text(node.getChild('FunctionIdentifier') as Node)
    const [first, second] = childrenOf(node.getChild('FunctionCallBody') as Node)
    if (first === undefined) throw new Error(`no argument: ${text(node)}`)
    switch (name) {
      case 'absent': {
        const [argument, found] = [of(first), equalities(first)]
        return minute => (asVector(argument(minute)).length === 0 ? [{ labels: found, value: 1 }] : [])
      }
      case 'rate':
      case 'increase': {
        const seconds = secondsOf(text(first.getChild('DurationExpr') as Node))
        const found = selected(first.getChild('VectorSelector') as Node)
        return minute =>
          found.flatMap(({ labels, values }) => {
            const increase = increaseOf(values, minute, seconds)
            return increase === undefined ? [] : [{ labels, value: name === 'rate' ? increase / seconds : increase }]
          })
      }
      case 'histogram_quantile': {
        const [quantile, buckets] = [Number(text(first)), of(second as Node)]
        return minute => quantilesOf(quantile, asVector(buckets(minute)))
      }
      default:
        throw new Error(`not a function that the rules use: ${name}`)
    }
  }

  const equalities = (node: Node): Labels =>
    Object.fromEntries(
      (node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []).flatMap(matcher => {
        const [label = '', operator, value = ''] = childrenOf(matcher).map(text)
        return operator === '=' ? [[label, JSON.parse(value)]] : []
      }),
    )

  function aggregate(node: Node): Evaluate {
    const operator = text(node.getChild('AggregateOp') as Node)
    const by = labelsIn(node.getChild('AggregateModifier')?.getChild('GroupingLabels') ?? null)
    const [body] = childrenOf(node.getChild('FunctionCallBody') as Node)
    const argument = of(body as Node)
    const combine = { sum: (a: number, b: number) => a + b, max: Math.max, min: Math.min }[operator]
    if (combine === undefined) throw new Error(`not an aggregation that the rules use: ${operator}`)
    return minute => {
      const groups = Map.groupBy(asVector(argument(minute)), ({ labels }) => keyOf(only(labels, by)))
      return [...groups.values()].map(samples => ({
        labels: only(samples[0]?.labels ?? {}, by),
        value: samples.map(({ value }) => value).reduce((a, b) => combine(a, b)),
      }))
    }
  }

  function binary(node: Node): Evaluate {
    const [leftNode, operator, ...rest] = childrenOf(node)
    const on = node.getChild('MatchingModifierClause')
    const names = on === null ? undefined : labelsIn(on.getChild('GroupingLabels'))
    const [left, right] = [of(leftNode as Node), of(rest.at(-1) as Node)]
    const matchKey = ({ labels }: Sample) =>
      keyOf(
        names
          ? only(labels, names)
          : Object.fromEntries(Object.entries(labels).filter(([name]) => name !== '__name__')),
      )
    const name = text(operator as Node)
    if (name === 'and' || name === 'or')
      return minute => {
        const [one, other] = [asVector(left(minute)), asVector(right(minute))]
        const keys = new Set((name === 'and' ? other : one).map(matchKey))
        return name === 'and'
          ? one.filter(sample => keys.has(matchKey(sample)))
          : [...one, ...other.filter(sample => !keys.has(matchKey(sample)))]
      }
    const arithmetic = ARITHMETIC[name]
    const comparison = COMPARISONS[name]
    return minute => {
      const [one, other] = [left(minute), right(minute)]
      const pairs: { labels: Labels; values: [number, number] }[] = []
      if (typeof one === 'number' && typeof other === 'number') return arithmetic?.(one, other) ?? Number.NaN
      if (typeof one === 'number') throw new Error(`a number on the left: ${text(node)}`)
      const byKey =
        typeof other === 'number' ? undefined : new Map(other.map(sample => [matchKey(sample), sample.value]))
      for (const sample of one) {
        const value = byKey === undefined ? (other as number) : byKey.get(matchKey(sample))
        if (value !== undefined) pairs.push({ labels: sample.labels, values: [sample.value, value] })
      }
      if (comparison)
        return pairs.flatMap(({ labels, values: [a, b] }) => (comparison(a, b) ? [{ labels, value: a }] : []))
      if (arithmetic === undefined) throw new Error(`not an operator that the rules use: ${name}`)
      return pairs.map(({ labels, values: [a, b] }) => ({ labels: withoutName(labels), value: arithmetic(a, b) }))
    }
  }

  function of(node: Node): Evaluate {
    switch (node.name) {
      case 'PromQL':
      case 'ParenExpr':
        return of(node.firstChild as Node)
      case 'NumberDurationLiteral':
        return () => Number(text(node))
      case 'VectorSelector':
        return vectorSelector(node)
      case 'FunctionCall':
        return call(node)
      case 'AggregateExpr':
        return aggregate(node)
      case 'BinaryExpr':
        return binary(node)
      default:
        throw new Error(`not a part of PromQL that the rules use: ${node.name} in ${query}`)
    }
  }
  return of(parser.parse(query).topNode)
}

const ARITHMETIC: Record<string, (a: number, b: number) => number> = { '/': (a, b) => a / b, '*': (a, b) => a * b }
const COMPARISONS: Record<string, (a: number, b: number) => boolean> = {
  '>': (a, b) => a > b,
  '<': (a, b) => a < b,
  '>=': (a, b) => a >= b,
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
}

/** Returns the increase of a counter over the seconds before a minute, extrapolated to them; resets count from zero. */
function increaseOf(values: Series['values'], minute: number, seconds: number): number | undefined {
  const start = minute - seconds / MINUTE
  const samples: { at: number; value: number }[] = []
  for (let at = Math.max(0, Math.ceil(start)); at <= minute; at++) {
    const value = values[at]
    if (value !== undefined) samples.push({ at, value })
  }
  const [first, last] = [samples[0], samples.at(-1)]
  if (first === undefined || last === undefined || first === last) return undefined
  let increase = 0
  let before = first.value
  for (const { value } of samples.slice(1)) {
    increase += value < before ? value : value - before
    before = value
  }
  const covered = last.at - first.at
  const interval = covered / (samples.length - 1)
  const extend = (gap: number) => (gap < interval * 1.1 ? gap : interval / 2)
  const toZero = increase > 0 ? covered * (first.value / increase) : Number.POSITIVE_INFINITY
  const before0 = Math.min(first.at - start, toZero)
  return (increase * (covered + extend(before0) + extend(minute - last.at))) / covered
}

/** Returns a quantile of cumulative buckets, interpolated within the bucket that has it. */
function quantilesOf(quantile: number, buckets: readonly Sample[]): Sample[] {
  const sorted = buckets
    .map(({ labels: { le = '' }, value }) => ({ bound: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), value }))
    .toSorted((a, b) => a.bound - b.bound)
  const total = sorted.at(-1)?.value ?? 0
  if (!(total > 0)) return []
  const rank = quantile * total
  const index = sorted.findIndex(({ value }) => value >= rank)
  const [lower, upper] = [sorted[index - 1] ?? { bound: 0, value: 0 }, sorted[index]]
  if (upper === undefined || upper.bound === Number.POSITIVE_INFINITY) return [{ labels: {}, value: lower.bound }]
  const share = (rank - lower.value) / (upper.value - lower.value)
  return [{ labels: {}, value: lower.bound + (upper.bound - lower.bound) * share }]
}

const asVector = (value: Value): Sample[] => {
  if (typeof value === 'number') throw new Error('a number in place of samples')
  return value
}
const withoutName = ({ __name__: _, ...labels }: Labels): Labels => labels
const only = (labels: Labels, names: readonly string[]): Labels =>
  Object.fromEntries(names.flatMap(name => (labels[name] === undefined ? [] : [[name, labels[name]]])))
const keyOf = (labels: Labels): string =>
  JSON.stringify(Object.entries(labels).toSorted(([one], [other]) => (one < other ? -1 : 1)))

/** Returns the seconds of a duration such as 5m. */
function secondsOf(text: string): number {
  const [, amount, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  const seconds = { s: 1, m: 60, h: 3_600, d: 86_400 }[unit]
  if (seconds === undefined) throw new Error(`not a duration: ${text}`)
  return Number(amount) * seconds
}
