import { PRICES, type RequestKind, SESSION_UNITS, SUBSCRIPTION_UNITS, unitsOfBody } from '../limits/prices.ts'
import type { ClientLimits, RateLimitCount } from '../limits/rate-limits.ts'
import { requestKindOf, unitsOf } from '../operations/operation.ts'
import { declaresMoreThan } from '../requests/request-body.ts'
import { resourcesOfListen } from './resources.ts'
import { callOfTask } from './tasks.ts'
import { rehearsalTools, toolOperations } from './tool-operations.ts'

const operationOfTool = new Map(
  [...toolOperations, ...rehearsalTools].map(operation => [operation.tool.name as string, operation]),
)

const SUBSCRIPTION_METHODS: readonly unknown[] = ['resources/subscribe', 'resources/unsubscribe']

/** What a POST to /mcp was charged, and the end of its turn, which only batches and initialize requests have. */
type Charged = { counts: RateLimitCount[]; leave?: () => void }

/** Charges the size of a POST to /mcp before the body is read: as a read if it declares more than `maxBytes`. */
export async function chargeSize(
  client: ClientLimits | undefined,
  request: Request,
  maxBytes: number,
): Promise<RateLimitCount[]> {
  const units = declaresMoreThan(maxBytes, request) ? PRICES.reads : unitsOfBody(request, maxBytes)
  return units === 0 ? [] : chargeRequest(client, 'reads', { units, inIsolate: true })
}

/** Charges a request without messages. */
export async function chargeRequest(
  client: ClientLimits | undefined,
  name: RequestKind,
  cost: { units?: number; inIsolate?: boolean } = {},
): Promise<RateLimitCount[]> {
  const count = await client?.count(name, cost)
  if (count?.exceeded) await client?.delayRefusal()
  return count ? [count] : []
}

/**
 * Charges the messages of a POST to /mcp, a call of a tool as the operation over HTTP, and in a session what its object
 * costs. Returns a count of each kind, as it is after the last message. Stops at the first that is exceeded, because
 * the whole POST is refused then. A batch waits for its turn after its first message, because even to count it costs as
 * much as several requests; so does an initialize request. A tool's call waits where it runs. Throws RATE_LIMITED.
 */
export async function chargeMessages(
  client: ClientLimits | undefined,
  isInSession: boolean,
  messages: readonly unknown[],
): Promise<Charged> {
  if (client === undefined) return { counts: [] }
  const counts = new Map<RequestKind, RateLimitCount>()
  /** Charges a message. Tells whether the budget is exceeded. */
  async function charge(message: unknown): Promise<boolean> {
    const { name, units } = costOf(message)
    const count = await client?.count(name, { units: units + (isInSession ? SESSION_UNITS : 0) })
    if (count) counts.set(name, count)
    return count?.exceeded !== undefined
  }
  const [first, ...rest] = messages
  const isOver = await charge(first)
  const turn = rest.length > 0 ? 'batch' : costOf(first).name === 'mcpSessions' ? 'initialize' : undefined
  if (isOver) await client.delayRefusal()
  if (isOver || turn === undefined) return { counts: [...counts.values()] }
  await client.enter(turn)
  try {
    for (const message of rest) if (await charge(message)) break
  } catch (error) {
    client.leave()
    throw error
  }
  return { counts: [...counts.values()], leave: client.leave }
}

function costOf(message: unknown): { name: RequestKind; units: number } {
  const { method, params } = (message ?? {}) as {
    method?: unknown
    params?: { name?: unknown; taskId?: unknown } | null
  }
  if (SUBSCRIPTION_METHODS.includes(method)) return { name: 'reads', units: SUBSCRIPTION_UNITS }
  // A poll of a task makes its call.
  const tool =
    method === 'tools/call' ? params?.name : method === 'tasks/get' ? callOfTask(params?.taskId)?.name : undefined
  const operation = typeof tool === 'string' ? operationOfTool.get(tool) : undefined
  if (operation !== undefined) return { name: requestKindOf(operation), units: unitsOf(operation) }
  const name = method === 'initialize' ? 'mcpSessions' : method === 'subscriptions/listen' ? 'streams' : 'reads'
  return { name, units: PRICES[name] + resourcesOfListen(message).length }
}
