import type { Schema } from './schema.ts'

/** A refusal of the service, or a request that got no response (status 0). */
export class RequestFailed extends Error {
  readonly status: number
  readonly code: string
  readonly remedy: string | undefined
  readonly requestId: string | undefined
  readonly details: Record<string, unknown>

  constructor(status: number, body: Partial<Schema['Error']>) {
    super(body.error ?? 'The service did not respond.')
    this.status = status
    this.code = body.code ?? 'NO_RESPONSE'
    this.remedy = body.remedy
    this.requestId = body.requestId
    this.details = body.details ?? {}
  }
}

/** Sends a request and returns the JSON of the response. Throws RequestFailed. */
async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  const headers = { Accept: 'application/json', ...(init.body ? { 'Content-Type': 'application/json' } : {}) }
  const response = await fetch(path, { ...init, headers }).catch((cause: unknown) => {
    if (init.signal?.aborted) throw cause
    throw new RequestFailed(0, {})
  })
  const body = await response.json().catch(() => ({}))
  if (!response.ok) throw new RequestFailed(response.status, body)
  return body as T
}

type Query = Record<string, string | number | undefined>

/** Returns a path with a query; parameters that are undefined are left out. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, `${value}`]]))
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

export const read = <T>(path: string, signal?: AbortSignal): Promise<T> => request<T>(path, signal ? { signal } : {})

export const send = <T>(method: 'POST' | 'PUT', path: string, body: unknown): Promise<T> =>
  request<T>(path, { method, body: JSON.stringify(body) })
