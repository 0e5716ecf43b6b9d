import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parser } from '@prometheus-io/lezer-promql'
import { describe, expect, it } from 'vitest'
import { alertExpressions, alerts, dashboardExpressions } from '../../scripts/watch-expressions.ts'
import { sampleNames } from '../../src/metrics/open-metrics.ts'

const root = join(import.meta.dirname, '../..')
const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8')
/** What Prometheus itself records of a scrape. */
const OF_PROMETHEUS = ['up']

/** Returns the metrics that a PromQL expression selects. Throws if it is not PromQL. */
function metricsIn(query: string): string[] {
  const metrics: string[] = []
  parser.parse(query).iterate({
    enter({ type, from, to, name }) {
      if (type.isError) throw new Error(`not PromQL at ${from}: ${query}`)
      if (name === 'VectorSelector') metrics.push(/^[\w:]*/.exec(query.slice(from, to))?.[0] ?? '')
    },
  })
  return metrics
}

const expressions = [...dashboardExpressions(), ...alertExpressions()]

it.each(expressions)('$from selects metrics that the service exposes', ({ query }) => {
  const metrics = metricsIn(query)
  expect(metrics.length).toBeGreaterThan(0)
  for (const metric of metrics) expect([...sampleNames(), ...OF_PROMETHEUS]).toContain(metric)
})

it('the check finds a wrong metric and a wrong expression', () => {
  expect(metricsIn('sum(rate(ats_nothing_total{a="b"}[5m])) / ats_ready')).toEqual(['ats_nothing_total', 'ats_ready'])
  expect(() => metricsIn('sum(rate(ats_ready[5m])')).toThrow('not PromQL')
})

it('the dashboard shows every family', () => {
  const shown = new Set(dashboardExpressions().flatMap(({ query }) => metricsIn(query)))
  const familyOf = (name: string) => name.replace(/_(bucket|count|sum)$/, '')
  const shownFamilies = new Set([...shown].map(familyOf))
  expect(sampleNames().filter(name => !shownFamilies.has(familyOf(name)))).toEqual([])
})

describe.each(alerts())('$alert', ({ alert, labels, annotations }) => {
  it('has a severity, a summary, and a row in the runbook that it links', () => {
    expect(labels?.severity).toMatch(/^(critical|warning)$/)
    expect(annotations?.summary?.length).toBeGreaterThan(20)
    const [file, anchor] = (annotations?.runbook_url ?? '').split('#')
    expect(file).toBe('docs/operations.md')
    const headings = [...operations.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, '')
        .replaceAll(' ', '-'),
    )
    expect(headings).toContain(anchor)
    expect(operations).toContain(`| \`${alert}\` |`)
  })
})
