import { type InputSchema, losslessInput } from '@agent-trading-service/protocol/lossless-input'
import { didYouMean, nearestName } from '@agent-trading-service/protocol/nearest-name'
import { shorten } from '@agent-trading-service/protocol/shorten'
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { OperationReply } from '../call.ts'
import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import type { ClientLimits } from '../limits/rate-limits.ts'
import { defaultToolSets, type ToolSet, toolSetOf, toolSets, turnKindOf } from '../operations/operation.ts'
import { invalidRequest } from '../resources/invalid-request.ts'
import { briefOutputSchema, briefQuote, detail, isQuote } from './brief-quote.ts'
import { callOf, inClientTurn, measureCall, paymentMeta } from './calls.ts'
import { errorBodyOf } from './errors.ts'
import { responseForTools } from './replace-endpoints-with-tools.ts'
import { type ToolOperation, toolOperations } from './tool-operations.ts'
import { inputSchema, outputSchema, type ToolSchema } from './tool-schemas.ts'

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
    const input = inputSchema(inputOf(operation))
    return {
      name: operation.tool.name,
      title: operation.summary,
      description: operation.tool.description,
      inputSchema: input,
      // The result of a paid tool depends on the payment's state.
      ...(!operation.paid && { outputSchema: outputSchemaOf(operation, input) }),
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

/** Returns whether a tool only reads, without waiting. */
export const isRead = (name: string): boolean =>
  toolOperations.some(({ tool, method, waits }) => tool.name === name && method === 'get' && !waits)

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
  if (operation === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, noSuchTool(name))
  try {
    const { isBrief, given } = splitDetail(operation, losslessInput(input, conversionSchemaOf(operation)))
    const call = callOf(client, request)
    const output = await measureCall(operation.id, () =>
      inClientTurn(client, turnKindOf(operation), () => operation.run(context, operation.parse(given), call)),
    )
    const { body: reply, payment } = output instanceof OperationReply ? output : { body: output }
    const whole = responseForTools(reply) as Record<string, unknown>
    const body = isBrief ? briefQuote(whole) : whole
    return {
      content: [{ type: 'text', text: JSON.stringify(body) }],
      structuredContent: body,
      ...paymentMeta(payment),
    }
  } catch (error) {
    const payment = error instanceof Refusal ? error.payment : undefined
    const body = responseForTools({ ...payment?.required, ...errorBodyOf(error, name, request) }) as object
    return {
      isError: true,
      content: [{ type: 'text', text: JSON.stringify(body) }],
      // x402 over MCP requires structured payment requirements; other errors have no structured content.
      ...(payment?.required && { structuredContent: body }),
      ...paymentMeta(payment),
    }
  }
}

/** Returns the schema of what a tool takes: that of its operation, and of a quote how much of it to return. */
const inputOf = (operation: ToolOperation): z.ZodObject => {
  const input = operation.input as z.ZodObject
  return isQuote(operation) ? input.extend({ detail: detail.optional() }) : input
}

function outputSchemaOf(operation: ToolOperation, input: ToolSchema): ToolSchema {
  const whole = outputSchema(operation.output, input)
  return isQuote(operation) ? briefOutputSchema(whole) : whole
}

/** Returns the input of an operation, and whether a brief quote is wanted, which is the default. Throws INVALID_REQUEST. */
function splitDetail(operation: ToolOperation, input: unknown): { isBrief: boolean; given: unknown } {
  if (!isQuote(operation) || typeof input !== 'object' || input === null) return { isBrief: false, given: input }
  const { detail: wanted = 'brief', ...given } = input as Record<string, unknown>
  const parsed = detail.safeParse(wanted)
  if (!parsed.success)
    throw invalidRequest(
      parsed.error.issues.map(issue => ({ ...issue, path: ['detail'] })),
      { given: input, fields: {} },
    )
  return { isBrief: parsed.data === 'brief', given }
}

const conversionSchemas = new Map<string, InputSchema>()

/** Returns the whole schema of a tool's input, built once. */
function conversionSchemaOf(operation: ToolOperation): InputSchema {
  const known = conversionSchemas.get(operation.id)
  if (known) return known
  const schema = z.toJSONSchema(inputOf(operation), { io: 'input', unrepresentable: 'any' }) as InputSchema
  conversionSchemas.set(operation.id, schema)
  return schema
}

/** Says where a tool is that a selection does not have, or which one was meant. */
function noSuchTool(name: string): string {
  const other = toolOperations.find(({ tool }) => tool.name === name)
  if (other) return `There is no tool ${name} at this URL; /mcp?toolsets=${toolSetOf(other)} has it`
  const nearest = nearestName(
    name,
    toolOperations.map(({ tool }) => tool.name),
  )
  return `There is no tool ${shorten(name)}; tools/list has them all.${didYouMean(nearest)}`
}
