import { withDeadline } from './timeout.ts'

/** How long a client may take to send the body of a request. */
export const MAX_BODY_SECONDS = 5

export type RequestBody = { kind: 'complete'; text: string } | { kind: 'too large' } | { kind: 'too slow' }

/** Whether the declared length of a request's body exceeds a limit. */
export const declaresMoreThan = (maxBytes: number, { headers }: Request) =>
  Number(headers.get('Content-Length')) > maxBytes

/** Reads the body of a request as text. Cancels the rest of one that is too large or takes too long. */
export async function readRequestBody(request: Request, maxBytes: number): Promise<RequestBody> {
  const { body } = request
  if (declaresMoreThan(maxBytes, request)) return { kind: 'too large' }
  if (body === null) return { kind: 'complete', text: '' }
  const deadline = Date.now() + 1_000 * MAX_BODY_SECONDS
  const inTime = <Value>(reading: Promise<Value>) => withDeadline(reading, deadline, () => 'too slow' as const)
  if (request.headers.has('Content-Length')) {
    // One native read: the runtime reads no more than the declared length.
    const text = await inTime(request.text().then(text => ({ text })))
    return text === 'too slow' ? { kind: text } : { kind: 'complete', ...text }
  }
  const reader = body.getReader()
  const result = await inTime(readText(reader, maxBytes))
  if (typeof result === 'object') return { kind: 'complete', ...result }
  // A client that stalls may not notice it, so nothing waits for that.
  reader.cancel().catch(() => {})
  return { kind: result }
}

async function readText(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
): Promise<{ text: string } | 'too large'> {
  const decoder = new TextDecoder()
  let [bytes, text] = [0, '']
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { text: text + decoder.decode() }
    bytes += value.byteLength
    if (bytes > maxBytes) return 'too large'
    text += decoder.decode(value, { stream: true })
  }
}
