import type { MiddlewareHandler } from 'hono'
import { cors } from 'hono/cors'
import { secureHeaders } from 'hono/secure-headers'

const common = { crossOriginResourcePolicy: 'cross-origin', xFrameOptions: 'DENY' } as const

/**
 * Sets the security headers of JSON responses, unless a page has set its own. Omits the headers that only matter for
 * pages.
 */
export const apiSecurityHeaders = secureHeaders({
  ...common,
  overwrite: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
  contentSecurityPolicy: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
})

/** What a page may load: files of this server. */
const OWN_FILES = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  imgSrc: ["'self'", 'data:'],
  fontSrc: ["'self'"],
  connectSrc: ["'self'"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
}

/** Sets the security headers of the pages under /docs, which load scripts and styles from this server only. */
export const docsSecurityHeaders = secureHeaders({
  ...common,
  contentSecurityPolicy: OWN_FILES,
})

/**
 * Sets the security headers of the pages under /app, which nothing but their own files may script or style. They assign
 * no HTML, and the headers forbid that as well. Icons of wallets are `data:` URLs.
 */
export const pageSecurityHeaders = secureHeaders({
  ...common,
  contentSecurityPolicy: {
    ...OWN_FILES,
    requireTrustedTypesFor: ["'script'"],
    trustedTypes: ["'none'"],
  },
})

const EXPOSED_HEADERS = [
  'X-Request-Id',
  'ETag',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'Allow',
  'WWW-Authenticate',
  'Link',
  'X-As-Of-Block',
  'X-Lag-Blocks',
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
]

const preflight = cors({
  origin: '*',
  allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS'],
  exposeHeaders: EXPOSED_HEADERS,
  maxAge: 86_400,
})

/**
 * Allows every origin: the API uses no cookies and authorizes nothing by origin. Sets the headers on the finished
 * response, because hono's cors sets them first, which forces a copy of every response.
 */
export const allowAnyOrigin: MiddlewareHandler = async (c, next) => {
  if (c.req.method === 'OPTIONS') return preflight(c, next)
  await next()
  c.res.headers.set('Access-Control-Allow-Origin', '*')
  c.res.headers.set('Access-Control-Expose-Headers', EXPOSED_HEADERS.join(','))
}
