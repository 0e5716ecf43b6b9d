import { env, exports } from 'cloudflare:workers'
import { inject } from 'vitest'
import { z } from 'zod'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config.ts'
import { createContext } from '../../src/context.ts'
import { createApp } from '../../src/http/app.ts'
import { withResponseCache } from '../../src/http/response-cache.ts'
import { operations } from '../../src/operations/index.ts'
import type { Operation } from '../../src/operations/operation.ts'
import { paymentRequiredBody } from '../../src/resources/registration.ts'
import type { Body } from './body.ts'
import { callTool } from './mcp-surface.ts'

type TestedOperation = Extract<(typeof operations)[number], { kind: 'json' }>
export type OperationId = TestedOperation['id']
export type Input = Record<string, unknown>

/** What a surface answered: an HTTP status and the JSON body. Over MCP a refusal has the status of its code. */
export type Answer = { status: number; body: Body; headers: Headers }

export const deployment = inject('deployment')

const operationOf = (id: OperationId) => {
  const operation: Operation | undefined = operations.find(candidate => candidate.id === id)
  if (operation?.kind !== 'json') throw new Error(`There is no operation ${id}`)
  return operation
}

/** The Worker that is tested, as `fetch`; another app where a test needs one of another configuration. */
export type Fetch = (request: Request) => Promise<Response>
const worker: Fetch = request => exports.default.fetch(request)

/** An app over the same contracts whose variables are changed; `undefined` removes one. Bindings may be others too. */
export function appWith(changes: Record<string, string | undefined>, bindings: Partial<Env> = {}): Fetch {
  const vars = Object.fromEntries(
    Object.entries({ ...workerVars(deployment), X402_ENABLED: 'false', READ_LEASE_MS: '0', ...changes }).filter(
      ([, value]) => value !== undefined,
    ),
  )
  const context = createContext(parseConfig(vars), { ...env, ...bindings })
  const app = createApp(() => context, env.ASSETS)
  const serve = withResponseCache(
    request => app.fetch(request),
    () => context,
  )
  return async request => serve(request)
}

/**
 * Calls an operation over the surface that the test runs on: over MCP where it is a tool of the tested Worker, else over
 * HTTP. A success must match the operation's output to the letter, a refusal the error body.
 */
export async function call(id: OperationId, input: Input = {}, fetch: Fetch = worker): Promise<Answer> {
  const { tool, output, status } = operationOf(id)
  if (inject('surface') === 'http' || tool === undefined || fetch !== worker) return callOverHttp(id, input, fetch)
  const answer = await callTool(tool.name, definedOnly(input))
  if (answer.ok) strict(output).parse(answer.body)
  else errorShape.parse(answer.body)
  return { status: answer.ok ? status : answer.status, body: answer.body, headers: new Headers() }
}

/** The status of a body that was executed before. An answer over MCP has none: there it is the operation's own. */
export const REPEATED = inject('surface') === 'http' ? 200 : 201

const definedOnly = (input: Input) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

/** Calls an operation over HTTP, whatever surface the test runs on. */
export async function callOverHttp(id: OperationId, input: Input = {}, fetch: Fetch = worker): Promise<Answer> {
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
  const answer = { status: response.status, body: await response.json(), headers: response.headers }
  if (response.ok) strict(output).parse(answer.body)
  else (response.status === 402 ? strict(paymentRequiredBody) : errorShape).parse(answer.body)
  return answer
}

/** A raw request to the Worker. */
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

/** The schema with every object closed, so that an answer may not carry what the specification does not name. */
function strict(schema: z.ZodType): z.ZodType {
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
