import { OpenAPIHono } from '@hono/zod-openapi'
import type { Context as HonoContext } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse, toRefusal } from '../errors/refuse.ts'
import { logRefusal } from '../log.ts'
import { count } from '../metrics/recorder.ts'
import { operations, rehearsalOperations } from '../operations/index.ts'
import { normalizeRequest } from '../requests/normalize-request.ts'
import { admit, readBody, takeTurn } from './admission.ts'
import { addDocsRoutes } from './docs-routes.ts'
import { addOperationRoute } from './operation-route.ts'
import { type Assets, addPageRoutes, findUnknownPage } from './page-routes.ts'
import { writePayment } from './payment-headers.ts'
import { type AppEnv, withRequestState } from './request-state.ts'
import { createResponseCache, type ResponseCache } from './response-cache.ts'
import { allowAnyOrigin, apiSecurityHeaders } from './response-headers.ts'

/** Creates the HTTP surface: the app behind a cache of its responses. */
export function createHttpSurface(context: Context, assets?: Assets, workerVersion?: string) {
  const cache = createResponseCache(context.readCache)
  const app = createApp(context, { assets, workerVersion, cache })
  return (given: Request): Response | Promise<Response> => {
    const known = cache.find(given)
    if (known) return known
    const request = normalizeRequest(given)
    return (request === given ? undefined : cache.find(request)) ?? app.fetch(request)
  }
}

type AppOptions = { assets?: Assets | undefined; workerVersion?: string | undefined; cache?: ResponseCache }

/**
 * Creates the app: one route per operation, the API documents and the pages. The health checks name `workerVersion`, by
 * which a deploy recognizes that its new version responds.
 */
export function createApp(context: Context, { assets, workerVersion, cache }: AppOptions = {}) {
  const app = new OpenAPIHono<AppEnv>()
  // These only finish the response, so that a refusal has the same fields as every other response.
  app.use(withRequestState(context))
  if (cache) app.use(cache.store)
  if (workerVersion !== undefined)
    app.use('/health/*', async (c, next) => {
      await next()
      c.res.headers.set('X-Worker-Version', workerVersion)
    })
  app.use(apiSecurityHeaders, allowAnyOrigin)
  app.use(admit)
  app.on(['POST', 'PUT', 'PATCH'], '*', readBody)
  app.use(takeTurn)
  addPageRoutes(app, context, assets)
  for (const operation of operations) addOperationRoute(app, context, operation)
  if (context.config.rehearsalUrl !== undefined)
    for (const operation of rehearsalOperations) addOperationRoute(app, context, operation)
  addDocsRoutes(app, context, assets)

  app.notFound(async c => {
    const allowed = allowedMethods(app, c.req.path)
    if (allowed.length === 0)
      return (await findUnknownPage(c, assets)) ?? respondWithRefusal(c, refuse('UNKNOWN_PATH', { path: c.req.path }))
    c.header('Allow', allowed.join(', '))
    return respondWithRefusal(c, refuse('METHOD_NOT_ALLOWED', { method: c.req.method, allowed }))
  })
  app.onError((error, c) => respondWithRefusal(c, error instanceof HTTPException ? fromHono(error) : toRefusal(error)))
  return app
}

/** Responds with the error body of a refusal. Logs it if the caller is not at fault. */
function respondWithRefusal(c: HonoContext<AppEnv>, refusal: Refusal): Response {
  const { requestId } = c.var
  count('ats_refusals', { code: refusal.body.code, surface: 'http' })
  if (refusal.status >= 500) logRefusal(refusal, { requestId, path: c.req.path })
  if (refusal.status === 401) c.header('WWW-Authenticate', 'Bearer')
  if (refusal.body.retryAfterSeconds !== undefined) c.header('Retry-After', `${refusal.body.retryAfterSeconds}`)
  c.header('Cache-Control', 'no-store')
  writePayment(c, refusal.payment)
  return c.json({ ...refusal.payment?.required, ...refusal.body, requestId }, refusal.status as ContentfulStatusCode)
}

/** Returns the refusal for hono's own exceptions: a media type other than JSON, and malformed JSON. */
function fromHono(error: HTTPException): Refusal {
  if (error.status === 415) return refuse('UNSUPPORTED_CONTENT_TYPE', {}, { cause: error })
  if (error.status === 400) return refuse('MALFORMED_JSON', {}, { cause: error })
  return toRefusal(error)
}

/** Returns the methods that some route serves at a path. */
function allowedMethods(app: OpenAPIHono<AppEnv>, path: string): string[] {
  const methods = new Set<string>()
  for (const route of app.routes) {
    if (route.method === 'ALL' || route.path === '/*') continue
    const pattern = new RegExp(`^${route.path.replaceAll(/:[^/]+/g, '[^/]+')}$`)
    if (pattern.test(path)) methods.add(route.method)
  }
  if (methods.has('GET')) methods.add('HEAD')
  return [...methods]
}
