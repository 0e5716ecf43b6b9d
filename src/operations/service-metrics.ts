import { withDeadline } from '../concurrency.ts'
import type { Context } from '../context.ts'
import { type GaugeSample, gauge, OPEN_METRICS_TYPE, openMetricsText } from '../metrics/open-metrics.ts'
import { assertOperator } from './bearer-check.ts'
import { readGauges } from './metric-gauges.ts'
import type { TextOperation } from './operation.ts'

/** A scrape responds in time whatever a node does; Prometheus gives up after ten seconds by default. */
const MAX_READ_MS = 4_000

export const getMetrics = {
  kind: 'text',
  id: 'getMetrics',
  method: 'get',
  path: '/metrics',
  tag: 'Operator',
  summary: 'Show the metrics of the deployment',
  description:
    "Returns counters of all isolates and the present state of every part, as OpenMetrics 1.0 text for Prometheus. A part that cannot be read within four seconds is 0 in `ats_part_up` and has no other gauges. The state is read at most every five seconds. Requires the operator's secret as a bearer token.",
  errors: [401, 503],
  contentType: OPEN_METRICS_TYPE,
  example:
    '# TYPE ats_requests counter\n# HELP ats_requests Requests.\nats_requests_total{operation="getHealth",surface="http",status="2xx"} 3\n# EOF\n',
  run: async (context, call) => {
    assertOperator(context, call)
    return context.metrics.share(() => writeMetrics(context))
  },
} as const satisfies TextOperation

async function writeMetrics(context: Context): Promise<string> {
  const deadline = Date.now() + MAX_READ_MS
  const totals = context.metrics.read().catch(() => undefined)
  const [gauges, deltas] = await Promise.all([
    readGauges(context, deadline),
    withDeadline(totals, deadline, () => undefined),
  ])
  const isComplete: GaugeSample = gauge('ats_part_up', { part: 'totals' }, deltas === undefined ? 0 : 1)
  return openMetricsText(deltas ?? [], [...gauges, isComplete])
}
