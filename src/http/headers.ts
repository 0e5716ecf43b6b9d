import type { MiddlewareHandler } from 'hono'
import { cors } from 'hono/cors'
import { secureHeaders } from 'hono/secure-headers'

const common = { crossOriginResourcePolicy: 'cross-origin', xFrameOptions: 'DENY' } as const

/** Headers of answers that no browser should run anything from; those that only mean something to a page are left out. */
export const apiHeaders = secureHeaders({
  ...common,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
  contentSecurityPolicy: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
})

/** Headers of the pages under /docs: everything comes from this server, also styles. */
export const docsHeaders = secureHeaders({
  ...common,
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
})

const EXPOSED = [
  ...['X-Request-Id', 'ETag', 'Retry-After', 'Allow', 'WWW-Authenticate', 'Link'],
  ...['X-As-Of-Block', 'X-Lag-Blocks'],
  ...['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE'],
]
const preflight = cors({
  origin: '*',
  allowMethods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
  exposeHeaders: EXPOSED,
  maxAge: 86_400,
})

/**
 * Any page may call the API: it knows no cookies, and nothing is authorized by where a request comes from. An answer gets
 * its two headers when it is there: hono's cors puts them on an empty one first, and then every answer is copied.
 */
export const anyOrigin: MiddlewareHandler = async (c, next) => {
  if (c.req.method === 'OPTIONS') return preflight(c, next)
  await next()
  c.res.headers.set('Access-Control-Allow-Origin', '*')
  c.res.headers.set('Access-Control-Expose-Headers', EXPOSED.join(','))
}
