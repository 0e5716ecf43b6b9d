import type { ServerContext } from '@modelcontextprotocol/server'
import { bearerOf, type Call, type RelayProgress } from '../call.ts'
import type { Context } from '../context.ts'
import type { PaymentAnswer } from '../errors/refusal.ts'
import { malformed, toRefusal } from '../errors/refuse.ts'
import type { ClientLimits, TurnKind } from '../limits/rate-limits.ts'
import { annotateSpan } from '../metrics/active-span.ts'
import { count, observe } from '../metrics/recorder.ts'
import { clientNetworksOf } from '../requests/client-address.ts'
import { uint } from '../resources/primitives.ts'

/** Returns what belongs to the call of a tool. */
export const callOf = (client: ClientLimits | undefined, request: ServerContext): Call => ({
  client,
  networks: request.http?.req && clientNetworksOf(request.http.req.headers),
  bearer: bearerOf(request.http?.req?.headers.get('authorization')),
  payment: paymentOf(request.mcpReq._meta),
  minBlock: minBlockOf(request),
  progress: progressOf(request),
})

/** Returns the block in the header Min-Block of a request, or in `_meta` of its message. Throws INVALID_REQUEST. */
function minBlockOf({ http, mcpReq }: ServerContext): bigint | undefined {
  const given = mcpReq._meta?.['min-block'] ?? http?.req?.headers.get('min-block') ?? undefined
  const parsed = uint.optional().safeParse(typeof given === 'number' ? `${given}` : given)
  if (!parsed.success) throw malformed('Min-Block is not the digits of a block number')
  return parsed.data
}

/** Returns the rate limits of the client that sent a request, if it has any. */
export const clientOf = (
  { rateLimits }: Pick<Context, 'rateLimits'>,
  { http }: ServerContext,
): ClientLimits | undefined => http?.req && rateLimits.ofClient(http.req.headers)

/** Runs work for a client once it may be worked for, as over HTTP. Throws RATE_LIMITED. */
export async function inClientTurn<Result>(
  client: ClientLimits | undefined,
  kind: TurnKind | undefined,
  run: () => Promise<Result>,
): Promise<Result> {
  if (kind === undefined) return run()
  await client?.enter(kind)
  try {
    return await run()
  } finally {
    client?.leave()
  }
}

/** Runs an operation for a tool or a resource, counts it and records how long it took. */
export async function measureCall<Output>(operation: string, run: () => Promise<Output>): Promise<Output> {
  const startedAt = performance.now()
  annotateSpan(() => ({ operation }))
  const record = (status: number) => {
    observe('ats_request_duration_seconds', { operation, surface: 'mcp' }, (performance.now() - startedAt) / 1_000)
    count('ats_requests', { operation, surface: 'mcp', status: `${Math.floor(status / 100)}xx` })
  }
  try {
    const output = await run()
    record(200)
    return output
  } catch (error) {
    record(toRefusal(error).status)
    throw error
  }
}

// x402 over MCP: JSON in `_meta` of the call and of the result.

/**
 * Returns the payment of a call: an object, or base64 of JSON, as some clients send it. Returns undecodable text as it
 * is.
 */
function paymentOf(meta: Record<string, unknown> | undefined): unknown {
  const payment = meta?.['x402/payment']
  if (typeof payment !== 'string') return payment
  try {
    return JSON.parse(atob(payment))
  } catch {
    return payment
  }
}

/**
 * Returns the `_meta` field of a result: the receipt, or the requirements under the key that the `agents` client reads.
 */
export function paymentMeta({ required, response }: PaymentAnswer = {}) {
  const meta = {
    ...(required && { 'x402/error': required }),
    ...(response && { 'x402/payment-response': response }),
  }
  return Object.keys(meta).length > 0 ? { _meta: meta } : {}
}

const REPORT_INTERVAL_MS = 1000

/** Returns what reports the progress of a relay to the client of a request, if the client asked for it. */
function progressOf({ mcpReq }: ServerContext): RelayProgress | undefined {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return undefined
  let progress = 0
  let timer: ReturnType<typeof setInterval> | undefined
  // A client that cannot be notified must not break the relay.
  const report = async (message: string) => {
    progress += 1
    await mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      .catch(() => {})
  }
  return {
    async start(kind) {
      await report(`The signature is valid; sending the ${kind} transaction.`)
      timer = setInterval(() => void report('Waiting for inclusion.'), REPORT_INTERVAL_MS)
    },
    async end(outcome) {
      clearInterval(timer)
      await report(outcome.state === 'mined' ? `Mined in block ${outcome.blockNumber}.` : `Outcome: ${outcome.state}.`)
    },
  }
}
