import type { Context } from 'hono'
import type { AppEnv } from './app-env.ts'

/**
 * Returns a part of the request that the route's schema has validated. Routes are built from the operations at run time,
 * so hono cannot know their input types: this is the only place that casts past it.
 */
export const validatedInput = (c: Context<AppEnv>, part: 'param' | 'query' | 'header' | 'json') =>
  c.req.valid(part as never) as Record<string, unknown>
