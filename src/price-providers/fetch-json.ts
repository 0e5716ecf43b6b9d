import { refuse } from '../errors/refuse.ts'

const TIMEOUT_MS = 5_000

/**
 * Fetches JSON from a provider. Numbers are returned as strings with the digits of the response, so that no price passes
 * through a float. Returns undefined for `emptyStatus`, if it is given. Throws PRICE_PROVIDER_FAILED, without the URL and
 * the response, because both can contain a key.
 */
export async function fetchJson(
  provider: string,
  url: URL,
  headers: Record<string, string>,
  emptyStatus?: number,
): Promise<unknown> {
  const failure = (problem: string, cause?: unknown) =>
    refuse('PRICE_PROVIDER_FAILED', { provider, problem }, { cause })
  let response: Response
  let text: string
  try {
    response = await fetch(url, {
      headers: { accept: 'application/json', ...headers },
      redirect: 'manual', // a redirect could send the key to another host
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    text = await response.text()
  } catch (error) {
    throw failure('it did not respond', error)
  }
  if (response.status === emptyStatus) return undefined
  if (!response.ok) throw failure(`it returned the HTTP status ${response.status}`)
  try {
    return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown)
  } catch (error) {
    throw failure('its response is not JSON', error)
  }
}

// JSON.parse passes the source text of a primitive to its reviver; TypeScript's types do not know that yet.
const keepDigits = (_key: string, value: unknown, { source }: { source?: string }) =>
  typeof value === 'number' && source !== undefined ? source : value
