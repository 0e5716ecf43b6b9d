import type { Context } from '../context.ts'
import type { CacheableResponse } from '../read-cache.ts'

type Serve = (request: Request) => Response | Promise<Response>
type Given = { answer: CacheableResponse; text: string; headers: Headers }

const ENTRIES = 1_000
const REQUEST_ID = /^[\w\-=]{1,255}$/

// What a request was answered with, where the isolate's memory holds it.
const answers = new WeakMap<Request, CacheableResponse>()
const texts = new WeakMap<CacheableResponse, string>()

/** The JSON of a remembered answer, written once however often it is given. */
export function textOf(answer: CacheableResponse): string {
  const text = texts.get(answer) ?? JSON.stringify(answer)
  texts.set(answer, text)
  return text
}

/** Notes that a request was answered with the JSON of a remembered answer. */
export function noteAnswer(request: Request, answer: CacheableResponse): void {
  answers.set(request, answer)
}

/**
 * Serves an app, and gives an answer again as it was given, with its own request id, for as long as the memory holds it:
 * neither routed nor validated nor written anew.
 */
export function givingAgain(serve: Serve, contextOf: () => Context): Serve {
  const given = new Map<string, Given>()

  async function serveAndKeep(request: Request, key: string): Promise<Response> {
    const response = await serve(request)
    const answer = answers.get(request)
    if (answer === undefined || response.status !== 200) return response
    const headers = new Headers(response.headers)
    headers.delete('X-Request-Id')
    given.delete(key)
    given.set(key, { answer, text: textOf(answer), headers })
    const [oldest] = given.keys()
    if (given.size > ENTRIES && oldest !== undefined) given.delete(oldest)
    return response
  }

  return request => {
    if (request.method !== 'GET' || request.headers.has('If-None-Match')) return serve(request)
    const key = `${request.headers.get('Accept') ?? ''} ${request.url}`
    const known = given.get(key)
    if (known === undefined || !contextOf().readCache.isFresh(known.answer)) return serveAndKeep(request, key)
    const response = new Response(known.text, { headers: known.headers })
    const id = request.headers.get('X-Request-Id') ?? ''
    response.headers.set('X-Request-Id', REQUEST_ID.test(id) ? id : crypto.randomUUID())
    return response
  }
}
