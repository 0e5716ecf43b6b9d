import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server'
import { OperationReply } from '../call.ts'
import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import { shorten } from '../errors/shorten.ts'
import { operations } from '../operations/index.ts'
import {
  defaultToolSets,
  type JsonOperation,
  type Operation,
  type ToolDefinition,
  type ToolSet,
  toolSetOf,
  toolSets,
  turnKindOf,
} from '../operations/operation.ts'
import type { ClientLimits } from '../rate-limits.ts'
import { callOf, inClientTurn, measureCall, paymentMeta } from './calls.ts'
import { errorBodyOf } from './errors.ts'
import { responseForTools } from './replace-endpoints-with-tools.ts'
import { inputSchema, outputSchema } from './tool-schemas.ts'

type ToolOperation = JsonOperation & { tool: ToolDefinition }
const toolOperations = (operations as readonly Operation[]).filter(
  (operation): operation is ToolOperation => operation.kind === 'json' && operation.tool !== undefined,
)

/** The subsets of the tools that a client may select with `?tools=`. */
const subsets = {
  all: () => true,
  read: ({ method }) => method === 'get',
  trade: ({ tag }) => ['Prices', 'Trading', 'Positions', 'Transactions'].includes(tag),
} satisfies Record<string, (operation: ToolOperation) => boolean>

/** Which tools a client selects, as a key: the names of the sets, and the subset of their tools. */
export type ToolSelection = string

/**
 * Returns the selection in a URL: the sets that `toolsets` names (`all` for every one), and of them the subset that
 * `tools` names. Unknown names count for nothing; without a known set, the default sets are selected.
 */
export function toolSelection({ searchParams }: URL): ToolSelection {
  const named = (searchParams.get('toolsets') ?? '').split(',')
  const known = toolSetNames.filter(name => named.includes(name) || named.includes('all'))
  const subset = searchParams.get('tools') ?? 'all'
  return `${(known.length > 0 ? known : defaultToolSets).join(',')} ${Object.hasOwn(subsets, subset) ? subset : 'all'}`
}

/** Returns a URL with the selection in place of its own. */
export function urlOfSelection(url: string, selection: ToolSelection): URL {
  const [toolsets = '', tools = ''] = selection.split(' ')
  return new URL(`?${new URLSearchParams({ toolsets, tools })}`, url)
}

const toolSetNames = Object.keys(toolSets) as ToolSet[]

/** Returns the names in `toolsets` of a URL that no set has. */
export const unknownToolSets = ({ searchParams }: URL): string[] =>
  (searchParams.get('toolsets')?.split(',') ?? []).filter(name => name !== 'all' && !Object.hasOwn(toolSets, name))

function selectedTools(selection: ToolSelection): ToolOperation[] {
  const [sets = '', subset = 'all'] = selection.split(' ')
  return toolOperations
    .filter(operation => sets.split(',').includes(toolSetOf(operation)))
    .filter(subsets[subset as keyof typeof subsets])
}

const toolLists = new Map<ToolSelection, Tool[]>()

/** Returns the tools of a selection, built once from the operations. */
export function listTools(selection: ToolSelection): Tool[] {
  const known = toolLists.get(selection)
  if (known) return known
  const selected = selectedTools(selection)
  const tools = selected.map(operation => {
    const input = inputSchema(operation.input)
    return {
      name: operation.tool.name,
      title: operation.summary,
      description: operation.tool.description,
      inputSchema: input,
      // The result of a paid tool depends on the payment's state.
      ...(!operation.paid && { outputSchema: outputSchema(operation.output, input) }),
      // openWorldHint is true by default.
      annotations:
        operation.method === 'get' || operation.readsOnly
          ? { readOnlyHint: true, idempotentHint: true }
          : { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
    }
  }) as Tool[]
  toolLists.set(selection, tools)
  return tools
}

/** Returns whether a tool only reads. */
export const isRead = (name: string): boolean =>
  toolOperations.some(({ tool, method }) => tool.name === name && method === 'get')

/**
 * Calls a tool of a selection. A refusal becomes an `isError` result with the same body as over HTTP. Throws a protocol
 * error for a tool that the selection does not have.
 */
export async function callTool(
  context: Context,
  client: ClientLimits | undefined,
  selection: ToolSelection,
  { name, arguments: input = {} }: { name: string; arguments?: unknown },
  request: ServerContext,
): Promise<CallToolResult> {
  const operation = selectedTools(selection).find(({ tool }) => tool.name === name)
  if (operation === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${shorten(name)}`)
  try {
    const call = callOf(client, request)
    const output = await measureCall(operation.id, () =>
      inClientTurn(client, turnKindOf(operation), () =>
        operation.run(context, operation.parse(urlFieldsAsText(operation, input)), call),
      ),
    )
    const { body: reply, payment } = output instanceof OperationReply ? output : { body: output }
    const body = responseForTools(reply)
    return {
      content: [{ type: 'text', text: JSON.stringify(body) }],
      structuredContent: body as Record<string, unknown>,
      ...paymentMeta(payment),
    }
  } catch (error) {
    const payment = error instanceof Refusal ? error.payment : undefined
    const body = { ...payment?.required, ...errorBodyOf(error, name, request) }
    return {
      isError: true,
      content: [{ type: 'text', text: JSON.stringify(body) }],
      // x402 over MCP requires structured payment requirements; other errors have no structured content.
      ...(payment?.required && { structuredContent: body }),
      ...paymentMeta(payment),
    }
  }
}

/** Converts what a model sends as number, boolean or list to text, for the fields that are path or query text over HTTP. */
function urlFieldsAsText({ params, query }: ToolOperation, input: unknown): unknown {
  if (typeof input !== 'object' || input === null) return input
  const urlFields = { ...params?.shape, ...query?.shape }
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, Object.hasOwn(urlFields, name) ? toText(value) : value]),
  )
}

function toText(value: unknown): unknown {
  if (Array.isArray(value))
    return value.every(item => typeof item === 'string') ? value.join(',') : JSON.stringify(value)
  // An integer above 2^53 has lost digits in transit, so it stays a number and is rejected.
  return Number.isSafeInteger(value) || typeof value === 'boolean' ? `${value}` : value
}
