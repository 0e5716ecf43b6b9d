import type { ToolSchema } from '@agent-trading-service/protocol/host-schema'
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
import { turnKindOf } from '../operations/operation.ts'
import { defaultToolSets, type ToolSet, toolSetOf, toolSets } from '../operations/operation-definition.ts'
import type { Networks } from '../requests/client-address.ts'
import { invalidRequest } from '../resources/invalid-request.ts'
import { uint } from '../resources/primitives.ts'
import { linkTo } from './apps.ts'
import { briefOutputSchema, briefResult, detail, isBrief } from './brief-result.ts'
import { callOf, inClientTurn, measureCall, paymentMeta } from './calls.ts'
import { errorBodyOf } from './errors.ts'
import { responseForTools } from './replace-endpoints-with-tools.ts'
import { type ToolOperation, toolOperations, toolsOf } from './tool-operations.ts'
import { inputSchema, outputSchema } from './tool-schemas.ts'

/** The subsets of the tools that a client may select with `?tools=`. */
const subsets = {
  all: () => true,
  read: ({ method }) => method === 'get',
  trade: ({ tag }) => ['Prices', 'Trading', 'Positions', 'Transactions'].includes(tag),
} satisfies Record<string, (operation: ToolOperation) => boolean>

/**
 * Which tools a client selects, as a key of words: the names of the sets, the subset of their tools and, if the client
 * names one, the agent that its reads are about.
 */
type ToolSelection = string

/**
 * Returns the selection in a URL: the sets that `toolsets` names (`all` for every one), of them the subset that `tools`
 * names, and the agent of `agentId`. Without a known set, the default sets are selected.
 */
export function toolSelection(url: URL): ToolSelection {
  const { searchParams } = url
  const named = (searchParams.get('toolsets') ?? '').split(',')
  const known = toolSetNames.filter(name => named.includes(name) || named.includes('all'))
  const sets = (known.length > 0 ? known : defaultToolSets).join(',')
  const subset = searchParams.get('tools') ?? 'all'
  const agent = agentIn(url)
  return [sets, Object.hasOwn(subsets, subset) ? subset : 'all', ...(agent === undefined ? [] : [agent])].join(' ')
}

/** Returns a URL with the selection in place of its own. */
export function urlOfSelection(url: string, selection: ToolSelection): URL {
  const [toolsets = '', tools = '', agentId = ''] = selection.split(' ')
  return new URL(`?${new URLSearchParams({ toolsets, tools, agentId })}`, url)
}

const toolSetNames = Object.keys(toolSets) as ToolSet[]

/** Returns the id of the agent that a URL names, without leading zeros. */
function agentIn({ searchParams }: URL): string | undefined {
  const { data } = uint.safeParse(searchParams.get('agentId'))
  return data === undefined ? undefined : `${data}`
}

/** Says what is wrong with the selection in a URL; undefined if nothing is. An empty parameter counts as absent. */
export function selectionProblem(url: URL): string | undefined {
  const given = (name: string) => url.searchParams.get(name) || undefined
  const shown = (text: string) => JSON.stringify(shorten(text))
  const sets = given('toolsets')?.split(',') ?? []
  const set = sets.find(name => name !== 'all' && !Object.hasOwn(toolSets, name))
  if (set !== undefined) return `There is no tool set ${shown(set)}: ${toolSetNames.join(', ')} or all`
  const subset = given('tools')
  if (subset !== undefined && !Object.hasOwn(subsets, subset))
    return `There is no subset ${shown(subset)} of tools: ${Object.keys(subsets).join(', ')}`
  const agent = given('agentId')
  if (agent === undefined || agentIn(url) !== undefined) return undefined
  return `The agentId ${shown(agent)} of the URL is no agent id: decimal digits are expected`
}

function selectedTools({ config }: Pick<Context, 'config'>, selection: ToolSelection): ToolOperation[] {
  const [sets = '', subset = 'all'] = selection.split(' ')
  return toolsOf(config)
    .filter(operation => sets.split(',').includes(toolSetOf(operation)))
    .filter(subsets[subset as keyof typeof subsets])
}

/** Returns the agent of a selection for a tool that only reads about one; undefined for every other tool. */
function defaultAgentOf(operation: ToolOperation, selection: ToolSelection): string | undefined {
  const [, , agentId] = selection.split(' ')
  return isRead(operation) && Object.hasOwn(operation.params?.shape ?? {}, 'agentId') ? agentId : undefined
}

const isRead = ({ method, readsOnly }: ToolOperation) => method === 'get' || readsOnly === true

/** Returns the tools of a selection, with links to their cards for a host that shows them. */
export const listTools = (context: Pick<Context, 'config'>, selection: ToolSelection, showsCards = false): Tool[] =>
  selectedTools(context, selection).map(operation => {
    const tool = { ...describeTool(operation), ...(showsCards && linkTo(operation.tool.card)) }
    const agentId = defaultAgentOf(operation, selection)
    return agentId === undefined ? tool : { ...tool, inputSchema: withDefaultAgent(tool.inputSchema, agentId) }
  })

/** Returns the schema of an input in which the agent may be left out. */
function withDefaultAgent<Schema extends object>(schema: Schema, agentId: string): Schema {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, object>; required?: string[] }
  const needed = required.filter(name => name !== 'agentId')
  return {
    ...schema,
    properties: { ...properties, agentId: { ...properties.agentId, default: agentId } },
    required: needed.length > 0 ? needed : undefined,
  }
}

const descriptions = new Map<ToolOperation, Tool>()

/** Returns an operation as a tool, built once. */
function describeTool(operation: ToolOperation): Tool {
  const known = descriptions.get(operation)
  if (known) return known
  const input = inputSchema(inputOf(operation))
  const tool = {
    name: operation.tool.name,
    title: operation.summary,
    description: operation.tool.description,
    inputSchema: input,
    // The result of a paid tool depends on the payment's state.
    ...(!operation.paid && { outputSchema: outputSchemaOf(operation, input) }),
    // openWorldHint is true by default, and whether a tool is idempotent is asked only of those that write.
    annotations: isRead(operation)
      ? { readOnlyHint: true }
      : { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  } as Tool
  descriptions.set(operation, tool)
  return tool
}

/** Returns whether a tool only reads, without waiting. */
export const takesTurns = (name: string): boolean =>
  toolOperations.some(({ tool, method, waits }) => tool.name === name && method === 'get' && !waits)

/** Runs a wait of a client for as long as its networks have a place for it. Throws TOO_MANY_STREAMS_OF_CLIENT. */
export type WaitAsStream = <Result>(networks: Networks | undefined, wait: () => Promise<Result>) => Promise<Result>

type CallOptions = { waitAsStream?: WaitAsStream | undefined; maxWaitMs?: number | undefined }

/**
 * The result of a tool's call. If it is not final, also the input with which the call is repeated, and for how long
 * that makes sense.
 */
export type ToolOutcome = { result: CallToolResult; repeat?: { input: Record<string, unknown>; forMs: number } }

/** For how long the outcome of a submission is asked for: by then its lane has mined or replaced the transaction. */
const MAX_SUBMISSION_MS = 900_000

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
  { waitAsStream = (_, wait) => wait(), maxWaitMs }: CallOptions = {},
): Promise<ToolOutcome> {
  const operation = selectedTools(context, selection).find(({ tool }) => tool.name === name)
  if (operation === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, noSuchTool(name))
  let converted: unknown
  try {
    converted = convertedInput(operation, input, selection)
    const { wanted, given } = splitDetail(operation, converted)
    const call = { ...callOf(client, request), maxWaitMs }
    let parsed: Record<string, unknown> = {}
    const run = () =>
      inClientTurn(client, turnKindOf(operation), () => {
        parsed = operation.parse(given)
        return operation.run(context, parsed, call)
      })
    const output = await measureCall(operation.id, () => (operation.waits ? waitAsStream(call.networks, run) : run()))
    const { body: reply, payment } = output instanceof OperationReply ? output : { body: output }
    const whole = responseForTools(reply) as Record<string, unknown>
    const body = wanted === 'brief' ? briefResult(operation, whole) : whole
    const result: CallToolResult = {
      isError: false,
      content: [{ type: 'text', text: JSON.stringify(body) }],
      structuredContent: body,
      ...paymentMeta(payment),
    }
    const rest = operation.continues?.(parsed, reply)
    return rest === undefined
      ? { result }
      : { result, repeat: { ...rest, input: { ...(converted as object), ...rest.input } } }
  } catch (error) {
    const payment = error instanceof Refusal ? error.payment : undefined
    const refusal = errorBodyOf(error, name, request)
    const body = responseForTools({ ...payment?.required, ...refusal }) as object
    const result: CallToolResult = {
      isError: true,
      content: [{ type: 'text', text: JSON.stringify(body) }],
      // x402 over MCP requires structured payment requirements; other errors have no structured content.
      ...(payment?.required && { structuredContent: body }),
      ...paymentMeta(payment),
    }
    // A payment is not repeated: it belongs to its call.
    const isOpen = refusal.code === 'SUBMISSION_UNKNOWN' && !operation.paid
    return isOpen
      ? { result, repeat: { input: converted as Record<string, unknown>, forMs: MAX_SUBMISSION_MS } }
      : { result }
  }
}

/** Returns the schema of what a tool takes: that of its operation, and how much of a long result to return. */
export const inputOf = (operation: ToolOperation): z.ZodObject => {
  const input = operation.input as z.ZodObject
  return isBrief(operation) ? input.extend({ detail: detail.optional() }) : input
}

function outputSchemaOf(operation: ToolOperation, input: ToolSchema): ToolSchema {
  const whole = outputSchema(operation.output, input)
  return isBrief(operation) ? briefOutputSchema(operation, whole) : whole
}

/**
 * Returns the input of an operation, and how much of the result is wanted: a brief one by default. Throws
 * INVALID_REQUEST.
 */
function splitDetail(operation: ToolOperation, input: unknown): { wanted: z.output<typeof detail>; given: unknown } {
  if (!isBrief(operation) || typeof input !== 'object' || input === null) return { wanted: 'full', given: input }
  const { detail: wanted = 'brief', ...given } = input as Record<string, unknown>
  const parsed = detail.safeParse(wanted)
  if (!parsed.success)
    throw invalidRequest(
      parsed.error.issues.map(issue => ({ ...issue, path: ['detail'] })),
      { given: input, fields: {} },
    )
  return { wanted: parsed.data, given }
}

/** Returns the input of a tool as its schema wants it, with the agent of the selection if it names none. */
function convertedInput(operation: ToolOperation, input: unknown, selection: ToolSelection): unknown {
  const schema = conversionSchemaOf(operation)
  const agentId = defaultAgentOf(operation, selection)
  if (agentId === undefined) return losslessInput(input, schema)
  const converted = losslessInput(input, withDefaultAgent(schema, agentId))
  return typeof converted === 'object' && !Array.isArray(converted) ? { agentId, ...converted } : converted
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
