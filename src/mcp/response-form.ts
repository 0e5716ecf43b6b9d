import { mediaRangesOf, qualityOf } from '../requests/accept.ts'
import { rpcError } from './errors.ts'

const JSON_TYPE = 'application/json'
const STREAM_TYPE = 'text/event-stream'

/** Which of the two forms of a response a client accepts. Without an Accept header it accepts both. */
type AcceptedForms = { json: boolean; stream: boolean }

export function acceptedForms({ headers }: Request): AcceptedForms {
  const ranges = mediaRangesOf(headers.get('accept'))
  if (ranges.length === 0) return { json: true, stream: true }
  return { json: qualityOf(ranges, JSON_TYPE) > 0, stream: qualityOf(ranges, STREAM_TYPE) > 0 }
}

/** Returns headers that accept what the SDK's transports require, which is both forms. */
export function acceptingBoth(given: Headers): Headers {
  const headers = new Headers(given)
  headers.set('accept', `${JSON_TYPE}, ${STREAM_TYPE}`)
  return headers
}

/**
 * Returns the response to a POST in a form that its client accepts: JSON waits for the end of a stream, without its
 * progress.
 */
export async function inAcceptedForm(response: Response, { json, stream }: AcceptedForms): Promise<Response> {
  const type = response.headers.get('content-type') ?? ''
  if (!stream && type.startsWith(STREAM_TYPE)) return toJson(response)
  if (!json && response.status === 200 && type.startsWith(JSON_TYPE))
    return withBody(response, STREAM_TYPE, `event: message\ndata: ${await response.text()}\n\n`)
  return response
}

type Message = { id?: unknown; result?: unknown; error?: unknown }

async function toJson(response: Response): Promise<Response> {
  const text = await response.text()
  const messages = [...text.matchAll(/^data: ?(\{.*\})\s*$/gm)].map(([, data = '']) => JSON.parse(data) as Message)
  const responses = messages.filter(({ result, error }) => result !== undefined || error !== undefined)
  const [first] = responses
  if (first === undefined) return rpcError(500, -32603, 'The request ended without a response')
  return withBody(response, JSON_TYPE, JSON.stringify(responses.length === 1 ? first : responses))
}

function withBody({ status, headers: given }: Response, type: string, body: string): Response {
  const headers = new Headers(given)
  headers.set('content-type', type)
  headers.delete('content-length')
  return new Response(body, { status, headers })
}
