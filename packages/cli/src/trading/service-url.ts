import type { Fetch } from '@agent-trading-service/client'

/** Returns what is wrong with the base URL of a service; undefined if nothing is. */
export function urlProblem(text: string): string | undefined {
  const url = URL.parse(text)
  if (url !== null && ['http:', 'https:'].includes(url.protocol)) return undefined
  const host = text.replace(/^[a-z]*:?\/+/i, '')
  const scheme = /^(localhost|127\.|\[?::1|10\.|192\.168\.)/.test(host) ? 'http' : 'https'
  return /^[\w.-]+(:\d+)?(\/|$)/.test(text)
    ? `It has no scheme; ${scheme}://${host} is probably meant.`
    : 'An http or https URL is expected, such as https://api.example.'
}

/** Like `fetch`, but a URL of a node is named, which people pass by mistake. */
export const serviceFetch: Fetch = async (url, init) => {
  const response = await fetch(url, init)
  const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '')
  if (response.headers.has('x-request-id') || (response.ok && isJson)) return response
  const { origin } = new URL(url)
  return (await isNode(origin)) ? nodeResponse(origin) : response
}

async function isNode(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}',
      signal: AbortSignal.timeout(2_000),
    })
    const { result } = (await response.json()) as { result?: unknown }
    return /^0x[0-9a-f]+$/.test(`${result}`)
  } catch {
    return false
  }
}

/** An error as the service has it, so that nothing is retried. */
const nodeResponse = (url: string) =>
  Response.json(
    {
      error: `${url} is a node of a chain, not the service.`,
      code: 'URL_OF_A_NODE',
      remedy: 'Pass the URL of the service as --url or ATS_URL, and that of a node as --rpc.',
    },
    { status: 400 },
  )
