import { waitUntil } from 'cloudflare:workers'
import service from '../src/index.ts'
import { type Counted, REFUSED_PATH, type Refused } from './refused.ts'

// The service of a rehearsal. It listens on a port for each agent, and counts by port the calls and what HTTP and MCP
// refuse.
export * from '../src/index.ts'

type ResponseBody = {
  code?: unknown
  checks?: { rule: string; pass: boolean }[]
  result?: { isError?: boolean; structuredContent?: ResponseBody; content?: { type: string; text?: string }[] }
}

const countedAt = new Map<string, Counted>()

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

function record(counted: Refused, body: ResponseBody, isRefused: boolean): void {
  if (isRefused && typeof body.code === 'string') count(counted.refusals, body.code)
  for (const { rule, pass } of body.checks ?? []) if (!pass) count(counted.limits, rule)
  const { isError = false, structuredContent, content } = body.result ?? {}
  const text = content?.find(({ type }) => type === 'text')?.text
  const inner = isError && text !== undefined ? parsed(text) : structuredContent
  if (inner !== undefined) record(counted, inner, isError)
}

/** Records the JSON of a response, or of each event of a stream that ends. */
async function recordResponse(counted: Refused, response: Response): Promise<void> {
  const text = await response.text()
  for (const line of text.split('\n')) {
    const body = parsed(line.replace(/^data: /, ''))
    if (body !== undefined) record(counted, body, response.status >= 400)
  }
}

function parsed(text: string): ResponseBody | undefined {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

export default {
  ...service,
  async fetch(request) {
    const { port, pathname } = new URL(request.url)
    const counted = countedAt.get(port) ?? { calls: 0, refusals: {}, limits: {} }
    countedAt.set(port, counted)
    if (pathname === REFUSED_PATH) return Response.json(counted)
    counted.calls++
    const response = await service.fetch(request)
    const type = response.headers.get('content-type') ?? ''
    if (/json/.test(type)) await recordResponse(counted, response.clone())
    // A stream that is read with GET stays open.
    else if (request.method === 'POST' && /event-stream/.test(type))
      waitUntil(recordResponse(counted, response.clone()))
    return response
  },
} satisfies ExportedHandler<Env>
