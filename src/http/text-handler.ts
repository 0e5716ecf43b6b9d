import type { Context as HonoContext } from 'hono'
import type { TextOperation } from '../operations/operation.ts'
import type { AppEnv } from './app-env.ts'

/** Returns the handler of an operation whose response is text of a media type of its own. */
export function textHandler({ run, contentType }: TextOperation) {
  return async (c: HonoContext<AppEnv>): Promise<Response> =>
    c.body(await run(c.var.context, c.var.call), 200, { 'Content-Type': contentType, 'Cache-Control': 'no-store' })
}
