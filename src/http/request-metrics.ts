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

/** Wraps the HTTP surface: counts each request and records how long its response took. */
export function withRequestMetrics(serve: Serve): Serve {
  return request => {
    const startedAt = performance.now()
    function record(response: Response): Response {
      const operation = operationIdOf(request)
      observe('ats_request_duration_seconds', { operation, surface: 'http' }, (performance.now() - startedAt) / 1_000)
      annotateSpan({ operation, requestId: response.headers.get('X-Request-Id') ?? undefined })
      count('ats_requests', { operation, surface: 'http', status: `${Math.floor(response.status / 100)}xx` })
      return response
    }
    const response = serve(request)
    // A cached response is there at once.
    return response instanceof Promise ? response.then(record) : record(response)
  }
}
