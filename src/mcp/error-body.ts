import type { ServerContext } from '@modelcontextprotocol/server'
import { logRefusal } from '../errors/log-refusal.ts'
import { toRefusal } from '../errors/refuse.ts'
import { count } from '../metrics/recorder.ts'
import { toolRemedy } from './replace-endpoints-with-tools.ts'

const REQUEST_ID = /^[\w=-]{1,255}$/

/** Returns the error body of a failed call, the same as over HTTP with tools in place of endpoints. Logs it if the caller is not at fault. */
export function errorBodyOf(error: unknown, subject: string, { http }: ServerContext) {
  const refusal = toRefusal(error)
  const requestId = requestIdOf(http?.req)
  count('ats_refusals', { code: refusal.body.code, surface: 'mcp' })
  if (refusal.status >= 500) logRefusal(refusal, { requestId, path: `/mcp ${subject}` })
  return { ...refusal.body, remedy: toolRemedy(refusal.body.code, refusal.body.remedy), requestId }
}

/** Returns the request id that the client chose, if it is valid, or a new one. */
export function requestIdOf(request: Request | undefined): string {
  const given = request?.headers.get('x-request-id')
  return given && REQUEST_ID.test(given) ? given : crypto.randomUUID()
}
