import type { z } from 'zod'
import { type Call, respondInTime } from '../call.ts'
import type { Context } from '../context.ts'
import type { EventFilter } from '../live/event.ts'
import type { EndpointDefinition } from './operation.ts'

/** Defines an operation that streams server-sent events. `filter` receives path and query parameters as one parsed object. */
export function defineEventStream<
  const P extends z.ZodObject | undefined,
  const Q extends z.ZodObject,
  const Id extends string,
>(
  definition: EndpointDefinition<P, Q> & { id: Id; query: Q },
  filter: (
    context: Context,
    input: (P extends z.ZodObject ? z.output<P> : unknown) & z.output<Q>,
  ) => Promise<EventFilter>,
) {
  const filterInTime = (context: Context, input: Parameters<typeof filter>[1], call: Call) =>
    respondInTime(call, filter(context, input))
  return { ...definition, kind: 'event-stream', method: 'get', filter: filterInTime } as const
}
