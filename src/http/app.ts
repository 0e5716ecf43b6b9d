import { OpenAPIHono } from '@hono/zod-openapi'
import type { Context as HonoContext } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { HTTPException } from 'hono/http-exception'
import { requestId } from 'hono/request-id'
import { type Context, withAuthorization, withPayment } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import { logRefusal } from '../errors/log-refusal.ts'
import type { Refusal } from '../errors/refusal.ts'
import { toRefusal } from '../operations/define-operation.ts'
import { streams } from '../operations/event-streams.ts'
import { operations } from '../operations/index.ts'
import { type Assets, addDocs } from './docs-page.ts'
import { addStream } from './event-stream.ts'
import { anyOrigin, apiHeaders } from './headers.ts'
import { addRoute } from './operation-route.ts'
import { paymentOf, writePayment } from './payment-headers.ts'

export type AppEnv = { Variables: { requestId: string; context: Context } }

const BODY_LIMIT_BYTES = 100 * 1024

/** The HTTP surface: one route per operation, and what only HTTP has. `contextOf` is called once per request. */
export function createApp(contextOf: () => Context, assets?: Assets) {
  const app = new OpenAPIHono<AppEnv>()
  app.use(requestId())
  app.use((c, next) => (isDocs(c.req.path) ? next() : apiHeaders(c, next)))
  app.use(anyOrigin)
  app.post(
    '*',
    bodyLimit({
      maxSize: BODY_LIMIT_BYTES,
      onError: () => {
        throw refuse('BODY_TOO_LARGE', { limitBytes: BODY_LIMIT_BYTES })
      },
    }),
  )
  app.use(async (c, next) => {
    const context = withAuthorization(contextOf(), c.req.header('Authorization'))
    c.set('context', withPayment(context, paymentOf(c.req.raw.headers)))
    await next()
  })

  for (const operation of operations) addRoute(app, operation)
  for (const stream of streams) addStream(app, stream)
  addDocs(app, assets)

  app.notFound(c => {
    const allowed = methodsOf(app, c.req.path)
    if (allowed.length === 0) return answerRefusal(c, refuse('UNKNOWN_PATH', { path: c.req.path }))
    c.header('Allow', allowed.join(', '))
    return answerRefusal(c, refuse('METHOD_NOT_ALLOWED', { method: c.req.method, allowed }))
  })
  app.onError((error, c) => answerRefusal(c, error instanceof HTTPException ? ofHono(error) : toRefusal(error)))
  return app
}

const isDocs = (path: string) => path === '/docs' || path.startsWith('/docs/')

/** Writes a refusal as the error body; what is not the caller's fault is logged with its cause. */
function answerRefusal(c: HonoContext<AppEnv>, refusal: Refusal): Response {
  const { requestId } = c.var
  if (refusal.status >= 500) logRefusal(refusal, { requestId, path: c.req.path })
  if (refusal.status === 401) c.header('WWW-Authenticate', 'Bearer')
  if (refusal.body.retryAfterSeconds !== undefined) c.header('Retry-After', `${refusal.body.retryAfterSeconds}`)
  c.header('Cache-Control', 'no-store')
  writePayment(c, refusal.payment)
  return c.json({ ...refusal.payment?.required, ...refusal.body, requestId }, refusal.status as 400)
}

/** Hono's own refusals: a media type that is not JSON, and JSON that does not parse. */
function ofHono(error: HTTPException): Refusal {
  if (error.status === 415) return refuse('UNSUPPORTED_CONTENT_TYPE', {}, { cause: error })
  if (error.status === 400) return refuse('MALFORMED_JSON', {}, { cause: error })
  return toRefusal(error)
}

function methodsOf(app: OpenAPIHono<AppEnv>, path: string): string[] {
  const methods = new Set<string>()
  for (const route of app.routes) {
    if (route.method === 'ALL' || route.path === '/*') continue
    const pattern = new RegExp(`^${route.path.replaceAll(/:[^/]+/g, '[^/]+')}$`)
    if (pattern.test(path)) methods.add(route.method)
  }
  if (methods.has('GET')) methods.add('HEAD')
  return [...methods]
}
