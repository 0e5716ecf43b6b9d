import { env } from 'cloudflare:workers'
import service, * as objects from '../../src/index.ts'
import { countDatabase, counted, readCounts } from './counted-platform.ts'
import { fillIndex, fillTrades } from './fill-index.ts'

// The service with counters of billed operations, and routes that read them, fire the cron trigger and return the
// progress of the index.

countDatabase(env.HISTORY)

export const ExecutorLane = counted('ExecutorLane', objects.ExecutorLane)
export const Keeper = counted('Keeper', objects.Keeper)
export const HistoryIndexer = counted('HistoryIndexer', objects.HistoryIndexer)
export const EventStreams = counted('EventStreams', objects.EventStreams)
export const EventStreamShard = counted('EventStreamShard', objects.EventStreamShard)
export const PaymentLedger = counted('PaymentLedger', objects.PaymentLedger)
export const McpSession = counted('McpSession', objects.McpSession)
export const McpHub = counted('McpHub', objects.McpHub)
export const IntakeSwitches = counted('IntakeSwitches', objects.IntakeSwitches)
export const Webhooks = counted('Webhooks', objects.Webhooks)
export const MetricTotals = counted('MetricTotals', objects.MetricTotals)

/** Returns the cursor's block, and the hour at which the newest records start; -1 before the index starts. */
const readIndexed = async () =>
  (await env.HISTORY.prepare('SELECT block, (SELECT coalesce(max(hour), -1) FROM track_records) AS hour FROM cursor')
    .first()
    .catch(() => null)) ?? { block: -1, hour: -1 }

const hub = () => env.MCP_HUB.getByName('hub')

/** Subscribes a new session to each resource. */
async function subscribe(uris: string[]): Promise<void> {
  for (const uri of uris) {
    const session = env.MCP_SESSION.newUniqueId().toString()
    await hub().admit(session, [`address of ${session}`])
    await hub().subscribe(session, uri)
  }
}
const notify = (uris: string[]): Promise<void> => hub().resourcesUpdated(uris)

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/bench/counts') return Response.json(readCounts())
    if (pathname === '/bench/cron')
      return Response.json((await service.scheduled({ scheduledTime: Date.now() })) ?? null)
    if (pathname === '/bench/indexed') return Response.json(await readIndexed())
    if (pathname === '/bench/fill') return Response.json((await fillIndex(env.HISTORY, await request.json())) ?? null)
    if (pathname === '/bench/fill-trades') return Response.json(await fillTrades(env.HISTORY, await request.json()))
    if (pathname === '/bench/subscribe') return Response.json((await subscribe(await request.json())) ?? null)
    if (pathname === '/bench/notify') return Response.json((await notify(await request.json())) ?? null)
    return service.fetch(request)
  },
} satisfies ExportedHandler<Env>
