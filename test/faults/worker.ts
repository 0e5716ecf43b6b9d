import service, { ExecutorLane as Lane } from '../../src/index.ts'

// The service with two more routes: one aborts a lane's object, as the platform may do at any moment, the other fires
// the cron trigger of a minute of the hour.
export * from '../../src/index.ts'

export class ExecutorLane extends Lane {
  override async fetch(): Promise<Response> {
    this.ctx.abort('aborted by the fault harness')
    return new Response()
  }
}

export default {
  ...service,
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/faults/cron')
      return Response.json(
        (await service.scheduled({ scheduledTime: Number(searchParams.get('minute')) * 60_000 })) ?? null,
      )
    if (pathname !== '/faults/abort') return service.fetch(request)
    const lane = env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(searchParams.get('lane') ?? ''))
    await lane.fetch(request).catch(() => {})
    return new Response('aborted')
  },
} satisfies ExportedHandler<Env>
