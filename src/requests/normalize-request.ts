const JSON_TYPE = 'application/json'
/** `application/json`, whatever follows it: parameters, a trailing semicolon, spaces. */
const IS_JSON = /^\s*application\/json\s*(;|$)/i

/**
 * Returns a request in the form that the surfaces read. Clients write the same request in several ways: with a slash
 * after the path, with optional headers and query values that are empty, and with the media type of JSON followed by
 * parameters.
 */
export function normalizeRequest(request: Request): Request {
  const url = normalizeUrl(request.url)
  const headers = normalizeHeaders(request.headers)
  if (url === request.url && headers === undefined) return request
  return headers === undefined ? new Request(url, request) : new Request(new Request(url, request), { headers })
}

/**
 * Removes one slash after the path, and query values that are empty. Most URLs have neither, so the text is checked
 * first.
 */
function normalizeUrl(url: string): string {
  const start = url.indexOf('?')
  const path = start < 0 ? url : url.slice(0, start)
  const query = start < 0 ? '' : url.slice(start + 1)
  const root = path.indexOf('/', path.indexOf('//') + 2)
  const hasSlash = path.endsWith('/') && !path.endsWith('//') && path.length - 1 > root
  const barePath = hasSlash ? path.slice(0, -1) : path
  const fields = query.split('&').filter(field => field !== '' && !/^[^=]*=?$/.test(field))
  return fields.length === 0 ? barePath : `${barePath}?${fields.join('&')}`
}

/** Returns the headers without empty ones, and with the plain media type of JSON; undefined if nothing changes. */
function normalizeHeaders(given: Headers): Headers | undefined {
  const contentType = given.get('Content-Type') ?? ''
  const isDecoratedJson = contentType !== JSON_TYPE && IS_JSON.test(contentType)
  const empty: string[] = []
  given.forEach((value, name) => {
    if (value === '') empty.push(name)
  })
  if (!isDecoratedJson && empty.length === 0) return undefined
  const headers = new Headers(given)
  for (const name of empty) headers.delete(name)
  if (isDecoratedJson) headers.set('Content-Type', JSON_TYPE)
  return headers
}

/** Returns the content encoding of a request's body, if it has one that nothing here decodes. */
export function contentEncodingOf({ headers }: Request): string | undefined {
  const encoding = headers.get('Content-Encoding')?.trim()
  return encoding === undefined || encoding === '' || encoding.toLowerCase() === 'identity' ? undefined : encoding
}
