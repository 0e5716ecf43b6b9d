import { cors } from 'hono/cors'
import { secureHeaders } from 'hono/secure-headers'

const common = { crossOriginResourcePolicy: 'cross-origin', xFrameOptions: 'DENY' } as const

/** Headers of answers that no browser should run anything from. */
export const apiHeaders = secureHeaders({
  ...common,
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

/** Any page may call the API: it knows no cookies, and nothing is authorized by where a request comes from. */
export const anyOrigin = cors({
  origin: '*',
  allowMethods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
  exposeHeaders: [
    ...['X-Request-Id', 'ETag', 'Retry-After', 'Allow', 'WWW-Authenticate'],
    ...['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE'],
  ],
  maxAge: 86_400,
})
