import { Hono } from 'hono'
import service from '../src/index.ts'

// The service and a bare Hono route in the same isolate: the baseline for the speed of reads.
export * from '../src/index.ts'

const bare = new Hono().get('/bare', c => c.json({ hello: 'world' }))

export default {
  ...service,
  fetch: (request, env, ctx) =>
    request.url.endsWith('/bare') ? bare.fetch(request, env, ctx) : service.fetch(request),
} satisfies ExportedHandler<Env>
