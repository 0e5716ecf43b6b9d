import { tracing } from 'cloudflare:workers'

/**
 * Says in the trace of the current request or call what it was about, so that a log line leads to its trace. Does
 * nothing if it is not traced.
 */
export function annotateSpan(attributesOf: () => Record<string, string | number | undefined>): void {
  const span = tracing.getActiveSpan()
  if (span?.isTraced) span.setAttributes(attributesOf())
}
