import { tracing } from 'cloudflare:workers'

/** Says in the trace of the current request or call what it was about, so that a log line leads to its trace. */
export function annotateSpan(attributes: Record<string, string | number | undefined>): void {
  tracing.getActiveSpan()?.setAttributes(attributes)
}
