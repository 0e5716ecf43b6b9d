import { bytesToHex, stringToBytes } from 'viem'
import { z } from 'zod'
import {
  blockShownIn,
  type Call,
  OperationReply,
  respondInTime,
  subjectsOf,
  submitInTime,
  waitOutOfTurn,
} from '../call.ts'
import type { ChainContext } from '../chain/chain-context.ts'
import { newest } from '../chain/min-blocks.ts'
import type { CacheableResponse, ReadCache } from '../chain/read-cache.ts'
import { hasReached, untilReached } from '../chain/read-current.ts'
import { keccak256 } from '../crypto/keccak256.ts'
import type { EventFilter } from '../live/event.ts'
import { invalidRequest } from '../resources/invalid-request.ts'
import { orderId } from '../resources/order.ts'
import { agentId, positionId } from '../resources/primitives.ts'
import { webhookId } from '../resources/webhook.ts'
import type { EndpointDefinition, OperationDefinition } from './operation-definition.ts'

/** The parameters of paths, by the names that a path has in braces. An operation with others gives `params`. */
const pathParams = { agentId, positionId, orderId, webhookId }
type PathParams = typeof pathParams

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never
type OutputOfPath<Path extends string> = {
  [Name in NamesIn<Path> & keyof PathParams]: z.output<PathParams[Name]>
}

const paramsByNames = new Map<string, z.ZodObject>()

/** Returns the schema of the parameters that a path names; undefined if it names none. */
function paramsOf(path: string): z.ZodObject | undefined {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as keyof PathParams)
  if (names.length === 0) return undefined
  const params =
    paramsByNames.get(`${names}`) ?? z.object(Object.fromEntries(names.map(name => [name, pathParams[name]])))
  paramsByNames.set(`${names}`, params)
  return params
}

type FlatInput<P, Q, B, Path extends string> = ([P] extends [z.ZodObject] ? z.output<P> : OutputOfPath<Path>) &
  (Q extends z.ZodObject ? z.output<Q> : unknown) &
  (B extends z.ZodObject ? z.output<B> : unknown)

/** A context of which an operation takes a part, and which can be bounded to blocks that are no older than one. */
type Serving<Part> = Part & ChainContext & { notBefore(minBlock: bigint | undefined): Part }

/**
 * Defines an operation once; both surfaces and all API documents are derived from the definition. `run` receives the
 * services of the deployment that its first parameter names (those that read the chain, if it has no type), path, query
 * and body parameters as one parsed object, and what belongs to the call. Two arguments, so that TypeScript infers its
 * type from the schemas.
 */
export function defineOperation<
  const P extends z.ZodObject | undefined,
  const Q extends z.ZodObject | undefined,
  const B extends z.ZodObject | undefined,
  O extends z.ZodType,
  const Id extends string,
  const Path extends `/${string}`,
  Part = ChainContext,
>(
  definition: OperationDefinition<P, Q, B, O> & { id: Id; path: Path },
  run: (context: Part, input: FlatInput<P, Q, B, Path>, call: Call) => Promise<z.input<O> | OperationReply<z.input<O>>>,
) {
  type Input = FlatInput<P, Q, B, Path>
  type Run = (context: Serving<Part>, input: Input, call: Call) => ReturnType<typeof run>
  const params: z.ZodObject | undefined = definition.params ?? paramsOf(definition.path)
  const input = z.strictObject({
    ...params?.shape,
    ...definition.query?.shape,
    ...definition.body?.shape,
  })
  const parse = (given: unknown) => {
    const result = input.safeParse(given)
    if (!result.success) throw invalidRequest(result.error.issues, { given, fields: input.shape })
    return result.data as Record<string, unknown>
  }
  /** What identical requests have in common. */
  const keyOf = (given: Input) =>
    `${definition.id} ${JSON.stringify(given, (_, value) => (typeof value === 'bigint' ? `${value}` : value))}`
  const runCached = (readCache: ReadCache, current: Part, given: Input, call: Call, minBlock: bigint | undefined) =>
    readCache.getOrRead(
      keyOf(given),
      () => run(current, given, call) as Promise<CacheableResponse>,
      minBlock,
    ) as ReturnType<typeof run>
  /**
   * Runs on blocks that are no older than what the client has seen, or what this isolate has shown of the same agent.
   */
  const runUnbounded: Run = async (context, given, call) => {
    const { minBlocks } = context
    const subjects = subjectsOf(given as object)
    const { minBlock: seen } = call
    if (seen !== undefined && !hasReached(context.chain, seen))
      await waitOutOfTurn(call, () => untilReached(context.chain, seen))
    const minBlock = newest(call.minBlock, minBlocks.of(...subjects))
    const current = minBlock === undefined ? context : context.notBefore(minBlock)
    const output = await (definition.cache === 'isolate'
      ? runCached(context.readCache, current, given, call, minBlock)
      : run(current, given, call))
    const shown = blockShownIn(output)
    const body = output instanceof OperationReply ? output.body : output
    if (shown !== undefined) minBlocks.raise(shown, ...subjects, ...subjectsOf(body as object))
    return output
  }
  const { method = 'get', cache = 'none', status = 200 } = definition
  const isRead = method === 'get' || definition.readsOnly === true
  const runInTime: Run = (context, given, call) => {
    if (definition.waits) return runUnbounded(context, given, call)
    if (isRead)
      return respondInTime(call, runUnbounded(context, given, call) as Promise<object>) as ReturnType<typeof run>
    // A note is not signed, so a body with another one is the same.
    const bodyHash = bytesToHex(
      keccak256(stringToBytes(keyOf({ ...(given as object), note: undefined } as object as Input))),
    )
    return submitInTime(
      call,
      { submissionTimeoutMs: context.config.submissionTimeoutMs, bodyHash },
      submission => runUnbounded(context, given, submission) as Promise<object>,
    ) as ReturnType<typeof run>
  }
  return {
    ...definition,
    kind: 'json',
    params,
    method,
    cache,
    status,
    input,
    parse,
    run: runInTime,
  } as const
}

/**
 * Defines an operation that streams server-sent events. `filter` receives path and query parameters as one parsed
 * object.
 */
export function defineEventStream<
  const P extends z.ZodObject | undefined,
  const Q extends z.ZodObject,
  const Id extends string,
  Part = ChainContext,
>(
  definition: EndpointDefinition<P, Q> & { id: Id; query: Q },
  filter: (context: Part, input: (P extends z.ZodObject ? z.output<P> : unknown) & z.output<Q>) => Promise<EventFilter>,
) {
  const filterInTime = (context: Part, input: Parameters<typeof filter>[1], call: Call) =>
    respondInTime(call, filter(context, input))
  return { ...definition, kind: 'event-stream', method: 'get', filter: filterInTime } as const
}
