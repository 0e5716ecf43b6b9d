import { withDeadline } from '../concurrency.ts'

/** How long a client may take to send the body of a request. */
export const MAX_BODY_SECONDS = 5

/** A body is incomplete if the client hangs up before it ends. */
type RequestBody =
  | { kind: 'complete'; text: string }
  | { kind: 'too large' }
  | { kind: 'too slow' }
  | { kind: 'incomplete' }

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

/** Parsers are recursive. */
export const MAX_JSON_DEPTH = 64
/** Several times what the largest body of an operation has. A parsed and validated value costs about a microsecond. */
export const MAX_JSON_VALUES = 1_000

/**
 * Returns whether JSON has more values or levels than any body needs. Stops there, and skips strings, so it costs a
 * fraction of parsing. Text that is not JSON counts by its brackets, commas and colons.
 */
export function isTooComplex(json: string): boolean {
  let [depth, values] = [0, 0]
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) at = endOfString(json, at)
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (++depth > MAX_JSON_DEPTH) return true
      values++
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--
    else if ((code === COMMA || code === COLON) && ++values > MAX_JSON_VALUES) return true
  }
  return values > MAX_JSON_VALUES
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]

/** Returns where the string that starts at `start` ends; the end of the text if it does not end. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1)
  while (end >= 0) {
    let backslashes = 0
    while (json.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
    end = json.indexOf('"', end + 1)
  }
  return json.length
}
