import type { Context } from '../context.ts'
import { withAdmission } from './admission.ts'
import { createApp } from './app.ts'
import type { Assets } from './docs-routes.ts'
import { withResponseCache } from './in-memory-response-cache.ts'
import { withRequestMetrics } from './request-metrics.ts'

/** Creates the HTTP surface as the Worker serves it: the app behind admission, response cache and metrics. */
export function createHttpSurface(contextOf: () => Context, assets?: Assets, workerVersion?: string) {
  const app = createApp(contextOf, assets, workerVersion)
  const admitted = withAdmission(request => app.fetch(request), contextOf)
  return withRequestMetrics(withResponseCache(admitted, contextOf))
}
