import type { Context as HonoContext } from 'hono'
import { respondInTime } from '../call.ts'
import { clientAddressOf } from '../client-address.ts'
import type { EventStreamOperation } from '../operations/operation.ts'
import type { AppEnv } from './app-env.ts'
import { validatedInput } from './cast-validated-input.ts'

const headers = {
  'Content-Type': 'text/event-stream',
  // Proxies must not store, transform or buffer the stream.
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no',
}

/** Returns the handler of an event stream. Errors are responses as usual, because they occur before the stream opens. */
export function eventStreamHandler(operation: EventStreamOperation) {
  return async (c: HonoContext<AppEnv>): Promise<Response> => {
    const { lastEventId: requested, ...query } = validatedInput(c, 'query')
    const { context, call } = c.var
    const input = { ...(operation.params && validatedInput(c, 'param')), ...query }
    const filter = await operation.filter(context, input, call)
    // A browser reconnects to the URL of its first connection, with the newer id in the header.
    const lastEventId = (validatedInput(c, 'header')['last-event-id'] ?? requested) as string | undefined
    if (c.req.raw.method === 'HEAD') return c.body(null, 200, headers)
    const opening = context.live.open({
      filter,
      client: clientAddressOf(c.req.raw.headers),
      ...(lastEventId !== undefined && { lastEventId }),
    })
    const stream = await respondInTime(call, opening).catch(error => {
      opening.then(late => late.cancel()).catch(() => {}) // nobody reads a stream that opens too late
      throw error
    })
    return c.body(stream, 200, headers)
  }
}
