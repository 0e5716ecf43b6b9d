import { OpenAPIHono } from '@hono/zod-openapi'
import type { Context as HonoContext } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { requestId } from 'hono/request-id'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { bearerOf } from '../call.ts'
import type { Context } from '../context.ts'
import { logRefusal } from '../errors/log-refusal.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse, toRefusal } from '../errors/refuse.ts'
import { count } from '../metrics/recorder.ts'
import { operations } from '../operations/index.ts'
import { admissionOf, fieldsOf } from './admission.ts'
import type { AppEnv } from './app-env.ts'
import { type Assets, addDocsRoutes } from './docs-routes.ts'
import { addOperationRoute } from './operation-route.ts'
import { addPageRoutes, isPageRequest } from './page-routes.ts'
import { paymentOf, writePayment } from './payment-headers.ts'
import { readBody } from './read-body.ts'
import { allowAnyOrigin, apiSecurityHeaders, pageSecurityHeaders } from './response-headers.ts'
import { addSkillRoutes } from './skill-routes.ts'

/**
 * Creates the HTTP surface: one route per operation, plus the API documents. Calls `contextOf` once per request. The health
 * checks name `workerVersion`, by which a deploy recognizes that its new version responds.
 */
export function createApp(contextOf: () => Context, assets?: Assets, workerVersion?: string) {
  const app = new OpenAPIHono<AppEnv>()
  app.use(requestId())
  app.use('/health/*', async (c, next) => {
    await next()
    if (workerVersion) c.res.headers.set('X-Worker-Version', workerVersion)
  })
  app.use((c, next) => {
    // All refusals by admission have the same header fields.
    if (admissionOf(c.req.raw)?.refusal) return apiSecurityHeaders(c, next)
    if (isDocsPage(c.req.path)) return next()
    const isPage = isPageRequest(c.req.path, c.req.header('Accept'))
    return isPage ? pageSecurityHeaders(c, next) : apiSecurityHeaders(c, next)
  })
  app.use(allowAnyOrigin)
  app.use(async (c, next) => {
    const admission = admissionOf(c.req.raw)
    const context = contextOf()
    const { headers } = c.req.raw
    c.set('context', context)
    c.set('call', {
      client: admission?.client ?? context.rateLimits.ofClient(headers),
      bearer: bearerOf(headers.get('Authorization')),
      payment: paymentOf(headers),
    })
    c.set('admission', admission)
    if (admission?.refusal) {
      for (const [field, value] of Object.entries(fieldsOf(admission))) c.header(field, value)
      throw admission.refusal
    }
    await next()
  })
  app.on(['POST', 'PUT', 'PATCH'], '*', readBody)
  addPageRoutes(app, assets)
  for (const operation of operations) addOperationRoute(app, operation)
  addDocsRoutes(app, assets)
  addSkillRoutes(app)

  app.notFound(c => {
    const allowed = allowedMethods(app, c.req.path)
    if (allowed.length === 0) return respondWithRefusal(c, refuse('UNKNOWN_PATH', { path: c.req.path }))
    c.header('Allow', allowed.join(', '))
    return respondWithRefusal(c, refuse('METHOD_NOT_ALLOWED', { method: c.req.method, allowed }))
  })
  app.onError((error, c) => respondWithRefusal(c, error instanceof HTTPException ? fromHono(error) : toRefusal(error)))
  return app
}

const isDocsPage = (path: string) => path === '/docs' || path.startsWith('/docs/')

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
