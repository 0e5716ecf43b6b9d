import service, { ExecutorLane as Lane } from '../../src/index.ts'

// The service with one more door: the platform may break an object off at any moment, and here the harness can.
export * from '../../src/index.ts'

export class ExecutorLane extends Lane {
  override async fetch(): Promise<Response> {
    this.ctx.abort('broken off by the harness')
    return new Response()
  }
}

export default {
  ...service,
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname !== '/faults/abort') return service.fetch(request)
    const lane = env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(searchParams.get('lane') ?? ''))
    await lane.fetch(request).catch(() => {})
    return new Response('broken off')
  },
} satisfies ExportedHandler<Env>
