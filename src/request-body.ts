import { withDeadline } from './concurrency.ts'

/** How long a client may take to send the body of a request. */
export const MAX_BODY_SECONDS = 5

/** A body is incomplete if the client hangs up before it ends. */
export type RequestBody =
  | { kind: 'complete'; text: string }
  | { kind: 'too large' }
  | { kind: 'too slow' }
  | { kind: 'incomplete' }

/** Whether the declared length of a request's body exceeds a limit. */
export const declaresMoreThan = (maxBytes: number, { headers }: Request) =>
  Number(headers.get('Content-Length')) > maxBytes

/** Reads the body of a request as text. Cancels the rest of one that is too large or takes too long. */
export async function readRequestBody(request: Request, maxBytes: number): Promise<RequestBody> {
  if (declaresMoreThan(maxBytes, request)) return { kind: 'too large' }
  if (request.body === null) return { kind: 'complete', text: '' }
  // The runtime reads no more than the declared length, so the text of such a body is one native read.
  const reader = request.headers.has('Content-Length') ? undefined : request.body.getReader()
  const reading = reader === undefined ? request.text().then(complete) : readChunks(reader, maxBytes)
  const body = await withDeadline(
    reading,
    Date.now() + 1_000 * MAX_BODY_SECONDS,
    (): RequestBody => ({ kind: 'too slow' }),
  ).catch((): RequestBody => ({ kind: 'incomplete' }))
  // A client that stalls may not notice it, so nothing waits for that.
  if (body.kind !== 'complete') reader?.cancel().catch(() => {})
  return body
}

const complete = (text: string): RequestBody => ({ kind: 'complete', text })

async function readChunks(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): Promise<RequestBody> {
  const decoder = new TextDecoder()
  let [bytes, text] = [0, '']
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return complete(text + decoder.decode())
    bytes += value.byteLength
    if (bytes > maxBytes) return { kind: 'too large' }
    text += decoder.decode(value, { stream: true })
  }
}
