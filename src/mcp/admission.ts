import type { RateLimitName } from '../config/config.ts'
import { type ClientLimits, type RateLimitCount, SUBSCRIPTION_READS } from '../limits/rate-limits.ts'
import { rateLimitOf, weightOf } from '../operations/operation.ts'
import { bodyWeightOf, declaresMoreThan } from '../requests/request-body.ts'
import { rehearsalTools, toolOperations } from './tool-operations.ts'

const operationOfTool = new Map(
  [...toolOperations, ...rehearsalTools].map(operation => [operation.tool.name as string, operation]),
)

const SUBSCRIPTION_METHODS: readonly unknown[] = ['resources/subscribe', 'resources/unsubscribe']

/** The limits that a POST to /mcp was counted against, and the end of its turn, which only batches and initialize requests have. */
type Counted = { counts: RateLimitCount[]; leave?: () => void }

/**
 * Counts the size of a POST to /mcp against the reads of its client before the body is read: what it has beyond the first
 * 16 KiB, or 1 if it declares more than `maxBytes`. Small bodies count by their messages.
 */
export async function countSize(
  client: ClientLimits | undefined,
  request: Request,
  maxBytes: number,
): Promise<RateLimitCount[]> {
  const isTooLarge = declaresMoreThan(maxBytes, request)
  const weight = isTooLarge ? 1 : bodyWeightOf(request, maxBytes) - 1
  if (client === undefined || weight === 0) return []
  return countRequest(client, 'reads', { weight, inIsolate: true })
}

/** Counts a request without messages. */
export async function countRequest(
  client: ClientLimits | undefined,
  name: RateLimitName,
  options: { weight?: number; inIsolate?: boolean } = {},
): Promise<RateLimitCount[]> {
  const count = await client?.count(name, options)
  if (count?.exceeded) await client?.delayRefusal()
  return count ? [count] : []
}

/**
 * Counts the messages of a POST to /mcp against the limits of their client and their session, each with its own kind: a call of
 * a tool counts as the operation does over HTTP. Returns the limits that were counted, each as it is after the last message.
 * Stops at the first limit that is exceeded, because the whole POST is refused then. A batch waits for its turn after its
 * first message, because even to count it costs as much as several requests; so does an initialize request. A tool's call waits
 * where it runs. Throws RATE_LIMITED.
 */
export async function countMessages(
  client: ClientLimits | undefined,
  session: string | undefined,
  messages: readonly unknown[],
): Promise<Counted> {
  if (client === undefined) return { counts: [] }
  const counts = new Map<RateLimitName, RateLimitCount>()
  const [first, ...rest] = messages
  const isOver = await countMessage(counts, client, session, first)
  const turn = rest.length > 0 ? 'batch' : limitOf(first).name === 'mcpSessions' ? 'initialize' : undefined
  if (isOver) await client.delayRefusal()
  if (isOver || turn === undefined) return { counts: [...counts.values()] }
  await client.enter(turn)
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
  const { name, weight } = limitOf(message)
  const counted = await client.countMessage(name, session, weight)
  for (const count of counted) counts.set(count.name, count)
  return counted.some(count => count.exceeded)
}

/** Returns what a message counts as, and as how many of it. */
function limitOf(message: unknown): { name: RateLimitName; weight?: number } {
  const { method, params } = (message ?? {}) as { method?: unknown; params?: { name?: unknown } | null }
  if (method === 'initialize') return { name: 'mcpSessions' }
  if (method === 'subscriptions/listen') return { name: 'streams' }
  if (SUBSCRIPTION_METHODS.includes(method)) return { name: 'reads', weight: SUBSCRIPTION_READS }
  const name = params?.name
  const operation = method === 'tools/call' && typeof name === 'string' ? operationOfTool.get(name) : undefined
  if (operation === undefined) return { name: 'reads' }
  return { name: rateLimitOf(operation), weight: weightOf(operation) }
}
