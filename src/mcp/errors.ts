import type { ServerContext } from '@modelcontextprotocol/server'
import { requestIdOf } from '../call.ts'
import { toRefusal } from '../errors/refuse.ts'
import { logRefusal } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import { toolRemedy } from './replace-endpoints-with-tools.ts'

/**
 * Returns the error body of a failed call, the same as over HTTP with tools in place of endpoints. Logs it if the
 * caller is not at fault.
 */
export function errorBodyOf(error: unknown, subject: string, { http }: ServerContext) {
  const refusal = toRefusal(error)
  const requestId = requestIdOf(http?.req?.headers)
  count('ats_refusals', { code: refusal.body.code, surface: 'mcp' })
  if (refusal.status >= 500) logRefusal(refusal, { requestId, path: `/mcp ${subject}` })
  return { ...refusal.body, remedy: toolRemedy(refusal.body.code, refusal.body.remedy), requestId }
}

/** Returns a JSON-RPC error response, without a request id unless it is given, as the transport sends it. */
export const rpcError = (
  status: number,
  code: number,
  message: string,
  headers: HeadersInit = {},
  id: string | number | null = null,
): Response => Response.json({ jsonrpc: '2.0', id, error: { code, message } }, { status, headers })

/** Returns the response to a client for which there is no place now. */
export const noPlace = (message: string, retryAfterSeconds: number): Response =>
  rpcError(429, -32000, message, { 'retry-after': `${retryAfterSeconds}` })

export const sessionNotFound = () => rpcError(404, -32001, 'Session not found')
