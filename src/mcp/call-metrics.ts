import { toRefusal } from '../errors/refuse.ts'
import { annotateSpan } from '../metrics/active-span.ts'
import { count, observe } from '../metrics/recorder.ts'

/** Runs an operation for a tool or a resource, counts it and records how long it took. */
export async function measureCall<Output>(operation: string, run: () => Promise<Output>): Promise<Output> {
  const startedAt = performance.now()
  annotateSpan(() => ({ operation }))
  const record = (status: number) => {
    observe('ats_request_duration_seconds', { operation, surface: 'mcp' }, (performance.now() - startedAt) / 1_000)
    count('ats_requests', { operation, surface: 'mcp', status: `${Math.floor(status / 100)}xx` })
  }
  try {
    const output = await run()
    record(200)
    return output
  } catch (error) {
    record(toRefusal(error).status)
    throw error
  }
}
