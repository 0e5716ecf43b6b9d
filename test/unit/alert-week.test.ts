import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { alerts } from '../../scripts/watch-expressions.ts'
import { evaluateAt, evaluateRules, type Series } from '../support/alert-rules.ts'
import { INCIDENTS, type Incident, minuteOf, timeOf, weekOfMetrics } from '../support/alert-week.ts'

// The alert rules over a week that is simulated, and over the cases that promtool runs too.

type Case = {
  name: string
  input_series: { series: string; values: string }[]
  alert_rule_test?: { eval_time: string; alertname: string; exp_alerts: { exp_labels: Record<string, string> }[] }[]
  promql_expr_test?: { expr: string; eval_time: string; exp_samples: { value: number }[] }[]
}

const { tests } = parse(readFileSync(join(import.meta.dirname, '../../ops/prometheus/alerts.test.yml'), 'utf8')) as {
  tests: Case[]
}

/** Returns a series of promtool: its labels, and values such as `0+6x20` or `_x10`. */
function seriesOf({ series, values }: Case['input_series'][number]): Series {
  const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? []
  const expand = (part: string): (number | undefined)[] => {
    const [, start = '', step = '0', times = '0'] = /^(_|[\d.]+)(?:([+-][\d.]+))?(?:x(\d+))?$/.exec(part) ?? []
    if (start === '_') return Array.from({ length: Number(times) }, () => undefined)
    return Array.from({ length: Number(times) + 1 }, (_, index) => Number(start) + index * Number(step))
  }
  const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [label, value])
  return { name, labels: Object.fromEntries(pairs), values: values.split(' ').flatMap(expand) }
}
const minutesOf = (time: string) => Number(time.replace('m', ''))

describe.each(tests)('$name', ({ input_series, alert_rule_test = [], promql_expr_test = [] }) => {
  const series = input_series.map(seriesOf)
  const firings = evaluateRules(alerts(), series)
  it.each(alert_rule_test)('$alertname after $eval_time', ({ alertname, eval_time, exp_alerts }) => {
    const minute = minutesOf(eval_time)
    const firing = firings.filter(({ alert, from, to }) => alert === alertname && from <= minute && minute <= to)
    expect(firing).toHaveLength(exp_alerts.length)
    for (const { exp_labels } of exp_alerts)
      expect({ ...alerts().find(({ alert }) => alert === alertname)?.labels, ...firing[0]?.labels }).toMatchObject(
        exp_labels,
      )
  })
  it.each(promql_expr_test)('$expr', ({ expr, eval_time, exp_samples }) => {
    const inner = expr.replace(/^round\((.+), [\d.]+\)$/, '$1')
    const values = evaluateAt(inner, series, minutesOf(eval_time)).map(({ value }) => Math.round(value * 10) / 10)
    expect(values).toEqual(exp_samples.map(({ value }) => value))
  })
})

describe('a week with a holiday and incidents', () => {
  const firings = evaluateRules(alerts(), weekOfMetrics())
  /** An alert may fire until its rule no longer looks back at the incident. */
  const LOOKBACK_MINUTES = 60
  const isOf = ({ from, minutes }: Incident, firing: { from: number }) =>
    firing.from >= minuteOf(from) && firing.from < minuteOf(from) + minutes + LOOKBACK_MINUTES

  it.each(Object.values<Incident>(INCIDENTS))('$name raises $alerts, because $why', incident => {
    const raised = firings.filter(firing => isOf(incident, firing)).map(({ alert }) => alert)
    expect([...new Set(raised)].toSorted()).toEqual([...incident.alerts].toSorted())
  })

  it('no alert fires outside of an incident', () => {
    const others = firings.filter(
      firing => !Object.values<Incident>(INCIDENTS).some(incident => isOf(incident, firing)),
    )
    expect(others.map(({ alert, from }) => `${alert} ${timeOf(from)}`)).toEqual([])
  })

  it('every alert ends with what raised it', () => {
    const incidentOf = (from: number) => Object.values<Incident>(INCIDENTS).find(incident => isOf(incident, { from }))
    for (const { alert, from, to } of firings) {
      const { from: start = '', minutes = 0 } = incidentOf(from) ?? {}
      expect({ alert, lateMinutes: Math.max(0, to - minuteOf(start) - minutes - LOOKBACK_MINUTES) }).toEqual({
        alert,
        lateMinutes: 0,
      })
    }
  })
})
