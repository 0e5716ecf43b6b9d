const REQUEST_ID = /^[\w\-=]{1,255}$/

/** Returns the id that a client gave its request, or a new one. */
export function requestIdOf(request: Request): string {
  const id = request.headers.get('X-Request-Id') ?? ''
  return REQUEST_ID.test(id) ? id : crypto.randomUUID()
}
