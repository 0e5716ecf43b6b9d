import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What the service did not accept of an agent, by code, and the rules that failed in the checks of its quotes. */
export type Refused = { refusals: Record<string, number>; limits: Record<string, number> }

/** A port of an agent's own, in front of the service. */
export type RecordedService = { url: string; refused(): Refused; close(): Promise<void> }

type ResponseBody = {
  code?: unknown
  checks?: { rule: string; pass: boolean }[]
  result?: { isError?: boolean; structuredContent?: ResponseBody; content?: { type: string; text?: string }[] }
}

/**
 * Forwards what an agent sends to the service, unchanged, and counts what it is refused over HTTP and MCP. Each agent
 * has its own, so that the service need not know who asked.
 */
export async function recordRefusals(serviceUrl: string): Promise<RecordedService> {
  const counts = { refusals: new Map<string, number>(), limits: new Map<string, number>() }
  const count = (of: Map<string, number>, name: string) => of.set(name, (of.get(name) ?? 0) + 1)

  function read(body: ResponseBody, isRefused: boolean): void {
    if (isRefused && typeof body.code === 'string') count(counts.refusals, body.code)
    for (const { rule, pass } of body.checks ?? []) if (!pass) count(counts.limits, rule)
    const { isError = false, structuredContent, content } = body.result ?? {}
    const text = content?.find(({ type }) => type === 'text')?.text
    const inner = isError && text !== undefined ? parsed(text) : structuredContent
    if (inner !== undefined) read(inner, isError)
  }

  const server = createServer((incoming, outgoing) =>
    forward(serviceUrl, incoming, outgoing, (status, text) => {
      for (const line of text.split('\n')) {
        const body = parsed(line.replace(/^data: /, ''))
        if (body !== undefined) read(body, status >= 400)
      }
    }),
  )
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    refused: () => ({ refusals: sorted(counts.refusals), limits: sorted(counts.limits) }),
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Bodies of streams that stay open are only passed on. */
const isBounded = ({ method }: IncomingMessage, { headers }: IncomingMessage): boolean =>
  /json/.test(headers['content-type'] ?? '') ||
  (method === 'POST' && /event-stream/.test(headers['content-type'] ?? ''))

function forward(
  serviceUrl: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  onBody: (status: number, text: string) => void,
): void {
  const { method, url = '/', headers } = incoming
  const target = new URL(url, serviceUrl)
  const options = { method, headers: { ...headers, host: target.host, 'accept-encoding': 'identity' } }
  const upstream = request(target.href, options, response => {
    outgoing.writeHead(response.statusCode ?? 502, response.headers)
    const chunks: Buffer[] = []
    if (isBounded(incoming, response)) response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () => onBody(response.statusCode ?? 502, Buffer.concat(chunks).toString()))
    response.pipe(outgoing)
  })
  upstream.on('error', () => outgoing.destroy())
  outgoing.on('close', () => upstream.destroy())
  incoming.pipe(upstream)
}

function parsed(text: string): ResponseBody | undefined {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

const sorted = (counts: Map<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
