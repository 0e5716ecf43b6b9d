import type { RateLimitName } from '../config/config.ts'
import { operations } from '../operations/index.ts'
import { type Operation, rateLimitOf } from '../operations/operation.ts'
import type { ClientLimits, RateLimitCount, RateLimits } from '../rate-limits.ts'
import { parseSessionId } from './session-id.ts'

const operationOfTool = new Map(
  (operations as readonly Operation[]).flatMap(operation =>
    operation.kind === 'json' && operation.tool ? [[operation.tool.name as string, operation] as const] : [],
  ),
)

/** The limits that a POST to /mcp was counted against, and the end of its turn, which only batches and initialize requests have. */
type Counted = { counts: RateLimitCount[]; leave?: () => void }

/**
 * Counts the messages of a POST to /mcp against the limits of their client and their session, each with its own kind: a call of
 * a tool counts as the operation does over HTTP. Returns the limits that were counted, each as it is after the last message.
 * Stops at the first limit that is exceeded, because the whole POST is refused then. A batch waits for its turn after its
 * first message, because even to count it costs as much as several requests; so does an initialize request. A tool's call waits
 * where it runs. Throws RATE_LIMITED.
 */
export async function countMessages(
  limits: RateLimits | undefined,
  headers: Headers,
  messages: readonly unknown[],
): Promise<Counted> {
  const client = limits?.ofClient(headers)
  if (client === undefined) return { counts: [] }
  const sessionId = headers.get('mcp-session-id')
  const session = sessionId === null ? undefined : parseSessionId(sessionId)?.objectId
  const counts = new Map<RateLimitName, RateLimitCount>()
  const [first, ...rest] = messages
  const isOver = await countMessage(counts, client, session, first)
  const hasTurn = rest.length > 0 || limitOf(first) === 'mcpSessions'
  if (isOver) await client.delayRefusal()
  if (isOver || !hasTurn) return { counts: [...counts.values()] }
  await client.enter({ getsOut: messages.some(message => limitOf(message) === undefined), kind: 'batch' })
  try {
    for (const message of rest) if (await countMessage(counts, client, session, message)) break
  } catch (error) {
    client.leave()
    throw error
  }
  return { counts: [...counts.values()], leave: client.leave }
}

/** Counts one message. Tells whether a limit is exceeded. */
async function countMessage(
  counts: Map<RateLimitName, RateLimitCount>,
  client: ClientLimits,
  session: string | undefined,
  message: unknown,
): Promise<boolean> {
  const name = limitOf(message)
  if (name === undefined) return false
  const counted = await client.countMessage(name, session)
  for (const count of counted) counts.set(count.name, count)
  return counted.some(count => count.exceeded)
}

/** Counts a POST to /mcp whose body holds no message against the reads of its client. */
export async function countUnreadable(limits: RateLimits | undefined, headers: Headers): Promise<RateLimitCount[]> {
  const client = limits?.ofClient(headers)
  const count = await client?.count('reads', { inIsolate: true })
  await client?.delayRefusal()
  return count ? [count] : []
}

/** Counts the opening of a session's stream against the limits of its client. */
export async function countStream(limits: RateLimits | undefined, headers: Headers): Promise<RateLimitCount[]> {
  const client = limits?.ofClient(headers)
  const count = await client?.count('streams')
  if (count?.exceeded) await client?.delayRefusal()
  return count ? [count] : []
}

/** Returns what a message counts as; undefined for a risk-reducing call. */
function limitOf(message: unknown): RateLimitName | undefined {
  const { method, params } = (message ?? {}) as { method?: unknown; params?: { name?: unknown } | null }
  if (method === 'initialize') return 'mcpSessions'
  if (method === 'subscriptions/listen') return 'streams'
  const name = params?.name
  const operation = method === 'tools/call' && typeof name === 'string' ? operationOfTool.get(name) : undefined
  return operation === undefined ? 'reads' : rateLimitOf(operation)
}
