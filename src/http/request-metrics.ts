import { annotateSpan } from '../metrics/active-span.ts'
import { count, observe } from '../metrics/recorder.ts'

type Serve = (request: Request) => Response | Promise<Response>

// The operation behind a request, for who records it.
const operationIds = new WeakMap<Request, string>()

/** Notes which operation a request is for. */
export function markOperation(request: Request, id: string): void {
  operationIds.set(request, id)
}

/** Returns the operation that a request is for; `none` for pages, documents and unknown paths. */
export const operationIdOf = (request: Request): string => operationIds.get(request) ?? 'none'

/**
 * Wraps the HTTP surface: counts each request, records how long its response took and says in its trace what it was about.
 * A cached response, which is there at once, is only counted: its trace leads to nothing.
 */
export function withRequestMetrics(serve: Serve): Serve {
  return request => {
    const startedAt = performance.now()
    function record(response: Response): Response {
      const operation = operationIdOf(request)
      observe('ats_request_duration_seconds', { operation, surface: 'http' }, (performance.now() - startedAt) / 1_000)
      count('ats_requests', { operation, surface: 'http', status: `${Math.floor(response.status / 100)}xx` })
      return response
    }
    function annotate(response: Response): Response {
      annotateSpan(() => ({
        operation: operationIdOf(request),
        requestId: response.headers.get('X-Request-Id') ?? undefined,
      }))
      return record(response)
    }
    const response = serve(request)
    return response instanceof Promise ? response.then(annotate) : record(response)
  }
}
