import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** A PromQL expression with the panel or alert that has it. */
export type Expression = { from: string; query: string }
export type Alert = {
  alert: string
  expr: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

type Panel = { title: string; targets?: { expr: string }[] }

const read = (file: string) => readFileSync(join(import.meta.dirname, '../ops', file), 'utf8')

/** Returns the alerts of every group. */
export const alerts = (): Alert[] =>
  (parse(read('prometheus/alerts.yml')) as { groups: { rules: Alert[] }[] }).groups.flatMap(({ rules }) => rules)

/** Returns the dashboard's expressions, with values in place of Grafana's variables. */
export const dashboardExpressions = (): Expression[] =>
  (JSON.parse(read('grafana/dashboard.json')) as { panels: Panel[] }).panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      from: `panel ${title}`,
      query: expr.replaceAll('$__rate_interval', '2m').replaceAll('$instance', '.*'),
    })),
  )

/** Returns the expressions of the alerts. */
export const alertExpressions = (): Expression[] =>
  alerts().map(({ alert, expr }) => ({ from: `alert ${alert}`, query: expr }))
