import type { z } from 'zod'
import type { Context } from '../context.ts'
import type { Subject } from '../live/event.ts'
import type { EndpointDefinition } from './operation.ts'

/** Defines an operation that streams server-sent events. `subject` receives path and query parameters as one parsed object. */
export function defineEventStream<
  const P extends z.ZodObject | undefined,
  const Q extends z.ZodObject,
  const Id extends string,
>(
  definition: EndpointDefinition<P, Q> & { id: Id; query: Q },
  subject: (context: Context, input: (P extends z.ZodObject ? z.output<P> : unknown) & z.output<Q>) => Promise<Subject>,
) {
  return { ...definition, kind: 'event-stream', method: 'get', subject } as const
}
