import { operations } from '../operations/index.ts'
import type { Operation } from '../operations/operation.ts'

type Route = { segments: readonly string[]; operation: Operation }

const isParameter = (segment: string) => segment.startsWith('{')
const parametersOf = ({ segments }: Route) => segments.filter(isParameter).length

const routes = Map.groupBy(
  (operations as readonly Operation[]).map((operation): Route => ({ segments: operation.path.split('/'), operation })),
  ({ segments, operation }) => `${operation.method} ${segments.length}`,
)
for (const ofSameLength of routes.values()) ofSameLength.sort((a, b) => parametersOf(a) - parametersOf(b))

/**
 * Returns the operation that a request is for, without the cost of the app's router; undefined for pages, documents and unknown
 * paths. `pathname` is the path as the app's router reads it: with the escaped characters decoded.
 */
export function operationAt(method: string, pathname: string): Operation | undefined {
  const given = pathname.split('/')
  const candidates = routes.get(`${method === 'HEAD' ? 'get' : method.toLowerCase()} ${given.length}`)
  return candidates?.find(({ segments }) =>
    segments.every((segment, index) => isParameter(segment) || segment === given[index]),
  )?.operation
}
