import type { Context as HonoContext } from 'hono'
import type { Context } from '../context.ts'

/** The variables of a request. */
export type AppEnv = { Variables: { requestId: string; context: Context } }

/**
 * Returns a part of the request that the route's schema has validated. Routes are built from the operations at run time,
 * so hono cannot know their input types: this is the only place that casts past it.
 */
export const validatedInput = (c: HonoContext<AppEnv>, part: 'param' | 'query' | 'header' | 'json') =>
  c.req.valid(part as never) as Record<string, unknown>
