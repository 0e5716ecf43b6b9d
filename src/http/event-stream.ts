import { createRoute, type OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import { invalidRequest } from '../operations/define-operation.ts'
import type { Stream } from '../operations/event-streams.ts'
import { errorBody } from '../resources/error.ts'
import { eventId } from '../resources/event-id.ts'
import type { AppEnv } from './app.ts'
import { statusWords } from './operation-route.ts'

const EVENT_STREAM = 'text/event-stream'
const headers = {
  'Content-Type': EVENT_STREAM,
  // Nothing on the way may keep, change or collect what must arrive at once.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
}
const EXAMPLE = 'id: 1234-5\nevent: ladder\ndata: {"agentId":"1","type":"ExitLadderUpdated","positionId":"7"}\n\n'

/** Serves a stream of events: what is wrong with the request is refused before it opens. */
export function addStream(app: OpenAPIHono<AppEnv>, stream: Stream) {
  app.openapi(
    createRoute(routeOf(stream)),
    async c => {
      const valid = (target: string) => c.req.valid(target as never) as Record<string, unknown>
      const { lastEventId: asked, ...query } = valid('query')
      const { context } = c.var
      const subject = await stream.subject(context, { ...(stream.params && valid('param')), ...query } as never)
      // A browser comes back to the URL of its first connection, with a newer id in the header.
      const lastEventId = (valid('header')['last-event-id'] ?? asked) as string | undefined
      if (c.req.raw.method === 'HEAD') return c.body(null, 200, headers)
      const opening = { subject, ...(lastEventId !== undefined && { lastEventId }) }
      return c.body(await context.live.open(opening), 200, headers)
    },
    result => {
      if (!result.success) throw invalidRequest((result.error as z.ZodError).issues)
    },
  )
}

function routeOf({ id, method, path, tag, summary, description, params, query, errors }: Stream): RouteConfig {
  const responses: RouteConfig['responses'] = {
    200: {
      description: 'The events, until the client leaves',
      content: { [EVENT_STREAM]: { schema: z.string(), example: EXAMPLE } },
    },
  }
  for (const code of errors)
    responses[code] = {
      description: statusWords[code] ?? 'Refused',
      content: { 'application/json': { schema: errorBody } },
    }
  return {
    ...{ operationId: id, method, path, tags: [tag], summary, description, security: [] },
    request: {
      ...(params && { params }),
      query: query.strict(),
      headers: z.object({
        'last-event-id': eventId.optional().meta({ description: 'Id of the last event that the client has' }),
      }),
    },
    responses,
  }
}
