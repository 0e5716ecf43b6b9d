import { Hono } from 'hono'
import service from '../src/index.ts'

// The service with a bare Hono route beside it, in the same isolate: what the speed of its reads is measured against.
export * from '../src/index.ts'

const bare = new Hono().get('/bare', c => c.json({ hello: 'world' }))

export default {
  ...service,
  fetch: (request, env, ctx) =>
    request.url.endsWith('/bare') ? bare.fetch(request, env, ctx) : service.fetch(request),
} satisfies ExportedHandler<Env>
