import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server'
import { type Context, withAuthorization, withPayment } from '../context.ts'
import { logRefusal } from '../errors/log-refusal.ts'
import { Refusal } from '../errors/refusal.ts'
import { type Operation, Reply, toRefusal } from '../operations/define-operation.ts'
import { operations } from '../operations/index.ts'
import { paymentMeta, paymentOf } from './payment-meta.ts'
import { reportingProgress } from './progress.ts'
import { guideOf, type ToolName } from './tool-descriptions.ts'
import { inputSchema, outputSchemas } from './tool-schemas.ts'

type ToolOperation = Operation & { tool: ToolName }
const offered = (operations as readonly Operation[]).filter(
  (operation): operation is ToolOperation => operation.tool !== undefined,
)

/** The part of the tools that a client may ask for with `?tools=`. */
const selections = {
  all: () => true,
  read: ({ method }) => method === 'get',
  trade: ({ tag }) => ['Prices', 'Trading', 'Positions', 'Transactions'].includes(tag),
} satisfies Record<string, (operation: Operation) => boolean>
export type Selection = keyof typeof selections

/** The selection that a URL asks for; `all` where it says nothing that is known. */
export function selectionOf({ searchParams }: URL): Selection {
  const asked = searchParams.get('tools') ?? 'all'
  return Object.hasOwn(selections, asked) ? (asked as Selection) : 'all'
}

/** Its answers differ with the state of the payment, so it promises no output schema. */
const PAID: ToolName = 'svc_register_agent'

const lists = new Map<Selection, Tool[]>()

/** The tools of a selection, made once from the operations. */
export function listTools(selection: Selection): Tool[] {
  const known = lists.get(selection)
  if (known) return known
  const selected = offered.filter(selections[selection])
  const described = selected.filter(({ tool }) => tool !== PAID)
  const outputs = outputSchemas(described.map(({ output }) => output))
  const tools = selected.map(operation => ({
    name: operation.tool,
    title: operation.summary,
    description: guideOf[operation.tool],
    inputSchema: inputSchema(operation.input),
    ...(operation.tool !== PAID && { outputSchema: outputs[described.indexOf(operation)] }),
    // That a tool reaches the world outside is what clients assume.
    annotations:
      operation.method === 'get'
        ? { readOnlyHint: true, idempotentHint: true }
        : { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  })) as Tool[]
  lists.set(selection, tools)
  return tools
}

/**
 * Calls a tool of a selection. A refusal is an `isError` result with the same body as over HTTP; a tool that the
 * selection does not have is a protocol error.
 */
export async function callTool(
  context: Context,
  selection: Selection,
  { name, arguments: input = {} }: { name: string; arguments?: unknown },
  call: ServerContext,
): Promise<CallToolResult> {
  const operation = offered.filter(selections[selection]).find(({ tool }) => tool === name)
  if (operation === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${name}`)
  try {
    const answer = await operation.run(contextOf(context, call), operation.parse(asSent(operation, input)) as never)
    const { body, payment } = answer instanceof Reply ? answer : { body: answer }
    return {
      content: [{ type: 'text', text: JSON.stringify(body) }],
      structuredContent: body as Record<string, unknown>,
      ...paymentMeta(payment),
    }
  } catch (error) {
    const refused = refusalBody(error, name, call)
    const payment = error instanceof Refusal ? error.payment : undefined
    // Only the requirements of a payment are structured: x402 wants them so.
    const body = { ...payment?.required, ...refused }
    return {
      isError: true,
      content: [{ type: 'text', text: JSON.stringify(body) }],
      ...(payment?.required && { structuredContent: body }),
      ...paymentMeta(payment),
    }
  }
}

/** The context of one call: with the payment and the bearer token that came with it, and reporting to its client. */
function contextOf(context: Context, call: ServerContext): Context {
  const authorized = withAuthorization(reportingProgress(context, call), call.http?.req?.headers.get('authorization'))
  return withPayment(authorized, paymentOf(call.mcpReq._meta))
}

/** Path and query are text over HTTP: a number, boolean or list that a model sends there counts as its text. */
function asSent({ params, query }: Operation, input: unknown): unknown {
  if (typeof input !== 'object' || input === null) return input
  const inUrl = { ...params?.shape, ...query?.shape }
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, Object.hasOwn(inUrl, name) ? textOf(value) : value]),
  )
}

function textOf(value: unknown): unknown {
  if (Array.isArray(value))
    return value.every(item => typeof item === 'string') ? value.join(',') : JSON.stringify(value)
  // An integer above 2^53 has lost digits on its way: it is refused, not guessed.
  return Number.isSafeInteger(value) || typeof value === 'boolean' ? `${value}` : value
}

/** The error body of a refusal; what is not the caller's fault is logged. */
export function refusalBody(error: unknown, subject: string, { http }: ServerContext) {
  const refusal = toRefusal(error)
  const requestId = requestIdOf(http?.req)
  if (refusal.status >= 500) logRefusal(refusal, { requestId, path: `/mcp ${subject}` })
  return { ...refusal.body, requestId }
}

const REQUEST_ID = /^[\w=-]{1,255}$/

/** The request id that the client chose, if it may be one, or a fresh one. */
function requestIdOf(request: Request | undefined): string {
  const given = request?.headers.get('x-request-id')
  return given && REQUEST_ID.test(given) ? given : crypto.randomUUID()
}
