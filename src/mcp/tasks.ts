import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { ToolOutcome } from './tools.ts'

// The MCP extension for tasks, revision 2026-07-28. A task is a call that its client repeats until the result is final:
// the log of events and the journals of the lanes are its state, so its id is the call, nothing is stored, and every
// isolate serves it. A call is repeated anyway after a timeout, and has the same effect once.

const EXTENSION = 'io.modelcontextprotocol/tasks'
export const tasksCapability = { [EXTENSION]: {} }

/** Clients repeat the id in a header, whose length proxies limit. A longer call gets its result, as without tasks. */
const MAX_ID_LENGTH = 4_096
/** How long a poll may wait. An event then arrives at once, and the client opens six streams a minute. */
export const MAX_POLL_WAIT_MS = 10_000
/** How long the call that creates a task waits: long enough to learn where its events begin. */
export const MAX_CREATION_WAIT_MS = 1_000
const POLL_INTERVAL_MS = 1_000
/** No task lasts longer. Its client wrote the id, or somebody else did. */
const MAX_TTL_MS = 3_600_000
/** The last time that a Date has. */
const MAX_TIME_MS = 8.64e15

const taskCall = z.strictObject({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  createdAt: z.int().min(0).max(MAX_TIME_MS),
  ttlMs: z.int().min(0).max(MAX_TTL_MS),
})
/** The call of a task, when it was first made (epoch milliseconds), and for how long it may be repeated. */
type TaskCall = z.output<typeof taskCall>

/** Returns whether a request declares that its client understands tasks, which only the 2026 revision can. */
export function understandsTasks({ mcpReq }: ServerContext): boolean {
  const { [CLIENT_CAPABILITIES_META_KEY]: capabilities } = { ...mcpReq.envelope } as Record<string, unknown>
  return Object.hasOwn({ ...(capabilities as { extensions?: object } | undefined)?.extensions }, EXTENSION)
}

/** Returns the result of a call, or a task if it is not final and its client understands tasks. */
export function resultOrTask(name: string, { result, repeat }: ToolOutcome, request: ServerContext): CallToolResult {
  if (repeat === undefined || !understandsTasks(request)) return result
  const call = { name, arguments: repeat.input, createdAt: Date.now(), ttlMs: repeat.forMs }
  const id = Buffer.from(JSON.stringify(call)).toString('base64url')
  if (id.length > MAX_ID_LENGTH) return result
  // The SDK sends another result type as it is, and has no type for it.
  return { resultType: 'task', ...presentTask(id, call), status: 'working' } as unknown as CallToolResult
}

const presentTask = (taskId: string, { createdAt, ttlMs }: TaskCall) => ({
  taskId,
  createdAt: new Date(createdAt).toISOString(),
  lastUpdatedAt: new Date().toISOString(),
  ttlMs,
  pollIntervalMs: POLL_INTERVAL_MS,
})

/** Returns the call that a task's id encodes; undefined if it encodes none. */
export function callOfTask(taskId: unknown): TaskCall | undefined {
  if (typeof taskId !== 'string' || taskId.length > MAX_ID_LENGTH) return undefined
  try {
    return taskCall.safeParse(JSON.parse(Buffer.from(taskId, 'base64url').toString())).data
  } catch {
    return undefined
  }
}

/** Adds the methods of the extension to a server. `call` makes the call of a task, within `maxWaitMs` if it waits. */
export function serveTasks(
  server: Server,
  call: (call: TaskCall, maxWaitMs: number, request: ServerContext) => Promise<ToolOutcome>,
): void {
  const params = z.looseObject({ taskId: z.unknown().optional() })
  const taskOf = ({ taskId }: z.output<typeof params>, request: ServerContext) => {
    if (!understandsTasks(request))
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: tasksCapability } })
    const task = callOfTask(taskId)
    if (task !== undefined) return { id: taskId as string, task }
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'Invalid params: taskId is no id that this server returned',
    )
  }
  server.setRequestHandler('tasks/get', { params }, async (given, request) => {
    const { id, task } = taskOf(given, request)
    const leftMs = task.createdAt + task.ttlMs - Date.now()
    const { result, repeat } = await call(task, Math.max(1, Math.min(leftMs, MAX_POLL_WAIT_MS)), request)
    const isFinal = repeat === undefined || task.createdAt + task.ttlMs <= Date.now()
    if (!isFinal) return { ...presentTask(id, task), status: 'working' }
    return { ...presentTask(id, task), status: 'completed', result: { resultType: 'complete', ...result } }
  })
  // No task asks for input, and what was relayed or is waited for is not taken back: both are acknowledged.
  for (const method of ['tasks/update', 'tasks/cancel'])
    server.setRequestHandler(method, { params }, (given, request) => {
      taskOf(given, request)
      return {}
    })
}
