import type { RecordedExamples, RecordedOperation } from '../src/http/openapi-document.ts'

export type DescribedOperation = {
  id: string
  method: string
  path: string
  parameters: { name: string; in: string; required?: boolean }[]
  hasBody: boolean
  responses: string[]
}

const JSON_TYPE = 'application/json'
const REQUEST_ID = '5e7ad1ca-6fc2-4a5f-8b8a-3d6f0f2f7f11'
/** How many entries of a long list or map an example keeps. */
const KEPT = 2
const LONG = 4
/** Fields whose lists are kept whole, because a part of them would be wrong. */
const WHOLE = ['typedData', 'exits', 'exitRules', 'pendingRules', 'body', 'types']

/** Records what an API responds to requests, by operation. The first response of each kind is kept. */
export function exampleRecorder(operations: readonly DescribedOperation[]) {
  const recorded: RecordedExamples = { operations: {}, errors: {} }
  // Literal segments win over parameters: /agents/register/quote is not an agent.
  const byParameters = [...operations].sort((a, b) => a.path.split('{').length - b.path.split('{').length)

  const matchOf = (method: string, path: string) => {
    for (const operation of byParameters) {
      const pattern = new RegExp(`^${operation.path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
      const match = pattern.exec(path)
      if (operation.method === method.toLowerCase() && match) return { operation, params: { ...match.groups } }
    }
    return undefined
  }

  function record(request: Request, requestBody: string, status: number, mediaType: string, body: unknown) {
    const { pathname, searchParams } = new URL(request.url)
    const match = matchOf(request.method, pathname)
    const isError = status >= 400
    if (isError && status !== 402) recorded.errors[status] ??= body
    if (match === undefined) return
    recorded.operations[match.operation.id] ??= { responses: {} }
    const entry = recorded.operations[match.operation.id] as RecordedOperation
    entry.responses[status] ??= {}
    const media = entry.responses[status] as Record<string, unknown>
    media[mediaType] ??= body
    if (isError || entry.request !== undefined) return
    entry.request = {
      parameters: { ...match.params, ...Object.fromEntries(searchParams) },
      ...(requestBody !== '' && { body: JSON.parse(requestBody) }),
    }
  }

  return {
    recorded,
    /** Sends a request and records its response. */
    async fetch(request: Request): Promise<Response> {
      const requestBody = await request.clone().text()
      const response = await fetch(request)
      const copy = response.clone()
      const mediaType = (response.headers.get('content-type') ?? '').split(';')[0] ?? ''
      if (mediaType === JSON_TYPE) record(request, requestBody, response.status, mediaType, trimmed(await copy.json()))
      else if (mediaType.startsWith('text/') && mediaType !== 'text/event-stream')
        record(request, requestBody, response.status, mediaType, firstLines(await copy.text(), mediaType))
      else if (mediaType === 'application/openmetrics-text')
        // OpenAPI names the media type with its parameters.
        record(
          request,
          requestBody,
          response.status,
          `${response.headers.get('content-type')}`,
          someMetrics(await copy.text()),
        )
      else await copy.body?.cancel()
      return response
    },
    /** Records the text of the first events of a stream. */
    recordStream(request: Request, events: string) {
      record(request, '', 200, 'text/event-stream', events)
    },
  }
}

/** Returns a CSV's header and first rows, or the first section of a Markdown text. */
const firstLines = (text: string, mediaType: string) =>
  mediaType === 'text/csv' ? `${text.split('\r\n').slice(0, 3).join('\r\n')}\r\n` : text.slice(0, 1_200)

/** Returns the first families of a scrape that have samples, and its end. */
function someMetrics(text: string): string {
  const families = text.split(/(?=^# TYPE )/m).filter(family => !/^# EOF/m.test(family) && /^[^#]/m.test(family))
  const shortened = families.slice(0, KEPT).map(family => family.trimEnd().split('\n').slice(0, 5).join('\n'))
  return `${shortened.join('\n')}\n# EOF\n`
}

/** Returns a body whose long lists and maps have only their first entries, with one request id for all. */
export function trimmed(value: unknown, key = ''): unknown {
  if (key === 'requestId') return REQUEST_ID
  if (WHOLE.includes(key) || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return (value.length > LONG ? value.slice(0, KEPT) : value).map(entry => trimmed(entry))
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, trimmed(entry, name)]))
}
