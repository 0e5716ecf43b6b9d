import { env, exports } from 'cloudflare:workers'
import { expect, inject } from 'vitest'
import { z } from 'zod'
import { tenfoldGas, workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { createHttpSurface } from '../../src/http/app.ts'
import { findUnregistered } from '../../src/mcp/resources.ts'
import { createMcpRoute, isMcpPath } from '../../src/mcp/route.ts'
import { createServer } from '../../src/mcp/server.ts'
import { createSessionIds } from '../../src/mcp/session-id.ts'
import { operations } from '../../src/operations/index.ts'
import type { JsonOperation, Operation } from '../../src/operations/operation.ts'
import { paymentRequiredBody } from '../../src/resources/error-body.ts'
import type { Body } from './body.ts'
import { callTool } from './mcp-surface.ts'

type TestedOperation = Extract<(typeof operations)[number], { kind: 'json' }>
export type OperationId = TestedOperation['id']
export type Input = Record<string, unknown>

/** The result of a call: the HTTP status and the JSON body. */
export type CallResult = { status: number; body: Body; headers: Headers }

export const deployment = inject('deployment')

const operationOf = (id: OperationId) => {
  const operation: Operation | undefined = operations.find(candidate => candidate.id === id)
  if (operation?.kind !== 'json') throw new Error(`There is no operation ${id}`)
  return operation
}

/** Serves both surfaces: the tested Worker, or the service in another configuration. */
export type Fetch = (request: Request) => Promise<Response>
const worker: Fetch = request => exports.default.fetch(request)

/** Tests change chain and prices at will, so nothing is reused and refreshes have no interval. */
const testVars = {
  ...tenfoldGas,
  X402_ENABLED: 'false',
  READ_LEASE_MS: '0',
  PRICE_REFRESH_INTERVAL_SECONDS: '0',
  SUBMISSION_TIMEOUT_MS: '15000',
}

/** Returns the service over the same contracts with other variables (`undefined` removes one) or bindings. */
export function appWith(changes: Record<string, string | undefined>, bindings: Partial<Env> = {}): Fetch {
  const vars = Object.fromEntries(
    Object.entries({ ...workerVars(deployment), ...testVars, ...changes }).filter(([, value]) => value !== undefined),
  )
  const config = parseConfig(vars)
  const namespaces = { ...env, ...bindings }
  const context = createContext(config, namespaces)
  const serveHttp = createHttpSurface(context, namespaces.ASSETS)
  const serveMcp = createMcpRoute({
    createServer: options => createServer(context, options),
    sessionIds: createSessionIds(parseConfig({ ...env }).mcpSessionKey), // the objects are the tested Worker's
    allowedHosts: config.allowedHosts,
    namespaces,
    findUnregistered: uris => findUnregistered(context, uris),
    rateLimits: context.rateLimits,
    baseUrl: config.baseUrl,
  })
  return async request => (isMcpPath(new URL(request.url).pathname) ? serveMcp(request) : serveHttp(request))
}

const calls = new Map<OperationId, number>()

/**
 * Calls an operation over HTTP and over MCP, and returns the first result. Both must agree: the same error, the same
 * body as of the same block, and for a signed request the same receipt, because its second execution is a replay. The
 * surfaces take turns in going first, so both also execute. A test file whose operations must be called only once, or
 * over one surface, imports `callOverHttp` or `callOverMcp` instead and says why at its top.
 */
export async function call(id: OperationId, input: Input = {}, fetch: Fetch = worker): Promise<CallResult> {
  const operation = operationOf(id)
  if (operation.tool === undefined) return callOverHttp(id, input, fetch)
  const turn = calls.get(id) ?? 0
  calls.set(id, turn + 1)
  // Only HTTP has a status for replays.
  const isHttpFirst = operation.replay !== undefined || turn % 2 === 0
  const callAsTool: typeof callOverMcp = async (...given) => namingEndpoints(await callOverMcp(...given))
  const first = await (isHttpFirst ? callOverHttp : callAsTool)(id, input, fetch)
  const isSafeToRepeat =
    operation.method === 'get' || (operation.body?.shape.signature !== undefined && !first.body.retryable)
  if (!isSafeToRepeat) return first
  const second = await (isHttpFirst ? callAsTool : callOverHttp)(id, input, fetch)
  if (!first.body.retryable) expectSameResult(operation, first, second, await latestBlock())
  return { ...first, headers: (isHttpFirst ? first : second).headers }
}

const endpointOf = new Map(
  (operations as readonly Operation[]).flatMap(operation =>
    operation.kind === 'json' && operation.tool
      ? [[operation.tool.name as string, `${operation.method.toUpperCase()} ${operation.path}`] as const]
      : [],
  ),
)

/** Returns a result over MCP with endpoints in place of the tools that remedies and warnings name, as over HTTP. */
function namingEndpoints(result: CallResult): CallResult {
  const rename = (text: unknown) => `${text}`.replace(/\bsvc_\w+/g, tool => endpointOf.get(tool) ?? tool)
  const body = JSON.parse(JSON.stringify(result.body), (key, value) => {
    if (key === 'remedy') return rename(value)
    return key === 'warnings' && Array.isArray(value) ? value.map(rename) : value
  })
  return { ...result, body }
}

// Not the global fetch, which tests replace.
const queryNode = globalThis.fetch.bind(globalThis)

/** Returns the number of the chain's latest block. */
async function latestBlock(): Promise<string> {
  const response = await queryNode(deployment.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] }),
  })
  const { result } = (await response.json()) as { result: string }
  return `${BigInt(result)}`
}

/**
 * Compares the results of the two surfaces. Reads of different blocks or seconds, and without a block, may differ, and
 * so may reads of a block that is no longer `latest`: while anvil mines a block, it returns its state under the number
 * of the last one. Folded hours and the keeper's records are written between reads of one block, so they are not
 * compared.
 */
function expectSameResult({ id, method }: JsonOperation, first: CallResult, second: CallResult, latest: string): void {
  const errorOf = ({ status, body }: CallResult) => (status < 400 ? {} : { status, code: body.code })
  expect({ id, ...errorOf(second) }).toEqual({ id, ...errorOf(first) })
  if (first.status >= 400) return
  const { asOf } = first.body
  const isSameBlock = asOf && asOf.blockNumber === second.body.asOf.blockNumber && asOf.blockNumber === latest
  const isSameSecond = ['serverTime', 'suggestedDeadline'].every(field => first.body[field] === second.body[field])
  if (method === 'post' || (isSameBlock && isSameSecond))
    expect(comparableFields(second.body)).toEqual(comparableFields(first.body))
}

/** Fields that are not a function of the body's block. */
const UNCOMPARED_FIELDS = [
  ...['asOf', 'lagBlocks', 'sharePrices', 'points', 'opening', 'performance'],
  ...['lastEvaluation', 'lastOutcome'],
]

const comparableFields = (body: Body): Body => ({
  ...Object.fromEntries(Object.entries(body).filter(([field]) => !UNCOMPARED_FIELDS.includes(field))),
  // Gas budgets refill all the time.
  ...(Array.isArray(body.checks) && { checks: body.checks.filter(({ rule }: Body) => rule !== 'gasBudget') }),
  // The time that a payment may take shrinks each second while the chain's clock is ahead of the payer's.
  ...(body.x402?.requirements && {
    x402: { ...body.x402, requirements: { ...body.x402.requirements, maxTimeoutSeconds: undefined } },
  }),
})

/** Calls an operation's tool. An error gets the status of its code; a success, which has none, the operation's own. */
export async function callOverMcp(id: OperationId, input: Input = {}, fetch: Fetch = worker): Promise<CallResult> {
  const { tool, output, status } = operationOf(id)
  if (tool === undefined) throw new Error(`${id} is not a tool`)
  // A brief result has less than the same over HTTP.
  const detail = tool.name.endsWith('_quote') || tool.brief ? { detail: 'full' } : {}
  const result = await callTool(tool.name, { ...definedOnly(input), ...detail }, fetch)
  if (result.ok) strictOnce(output).parse(result.body)
  else errorShape.parse(result.body)
  return { status: result.ok ? status : result.status, body: result.body, headers: new Headers() }
}

const definedOnly = (input: Input) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

/** Calls an operation over HTTP. A success must match the output schema exactly, an error the error body. */
export async function callOverHttp(id: OperationId, input: Input = {}, fetch: Fetch = worker): Promise<CallResult> {
  const { method, path, params, body, output } = operationOf(id)
  const rest = { ...input }
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest[name]
    if (params && name in params.shape) delete rest[name]
    return encodeURIComponent(`${value}`)
  })
  const url = new URL(filled, 'http://localhost')
  const init: RequestInit = { method: method.toUpperCase() }
  if (body) {
    init.headers = { 'content-type': 'application/json' }
    init.body = JSON.stringify(rest)
  } else {
    for (const [name, value] of Object.entries(rest)) if (value !== undefined) url.searchParams.set(name, `${value}`)
  }
  const response = await fetch(new Request(url, init))
  const result = { status: response.status, body: await response.json(), headers: response.headers }
  if (response.ok) strictOnce(output).parse(result.body)
  else (response.status === 402 ? strictOnce(paymentRequiredBody) : errorShape).parse(result.body)
  return result
}

/** Sends a raw request. */
export const request = (path: string, init?: RequestInit, fetch: Fetch = worker) =>
  fetch(new Request(new URL(path, 'http://localhost'), init))

const errorShape = z.strictObject({
  error: z.string().min(1),
  code: z.string().regex(/^[A-Z0-9_]+$/),
  requestId: z.string().min(1),
  details: z.record(z.string(), z.unknown()).optional(),
  remedy: z.string().optional(),
  retryable: z.boolean().optional(),
  retryAfterSeconds: z.int().optional(),
})

const strictSchemas = new WeakMap<z.ZodType, z.ZodType>()

/** Returns `strict(schema)`, built once, because building a schema takes longer than a request. */
function strictOnce(schema: z.ZodType): z.ZodType {
  const built = strictSchemas.get(schema) ?? strict(schema)
  strictSchemas.set(schema, built)
  return built
}

/** Returns the schema with every object closed, so that a body with an undocumented field fails. */
export function strict(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodObject) {
    const shape = Object.fromEntries(
      Object.entries(schema.shape).map(([key, value]) => [key, strict(value as z.ZodType)]),
    )
    return z.strictObject(shape)
  }
  if (schema instanceof z.ZodArray) return z.array(strict(schema.element as z.ZodType))
  if (schema instanceof z.ZodOptional) return strict(schema.unwrap() as z.ZodType).optional()
  if (schema instanceof z.ZodNullable) return strict(schema.unwrap() as z.ZodType).nullable()
  if (schema instanceof z.ZodRecord) return z.record(z.string(), strict(schema.valueType as z.ZodType))
  return schema
}
