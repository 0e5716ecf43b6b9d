import { env, waitUntil } from 'cloudflare:workers'
import { provideKeccak256 as hashMessagesWith } from '@agent-trading-service/protocol/keccak256'
import secp256k1Module from '@bitauth/libauth/build/lib/bin/secp256k1/secp256k1.wasm'
import { serviceContext } from './context.ts'
import keccakModule from './crypto/keccak.wasm'
import { keccak256, provideWebAssembly as provideKeccak256 } from './crypto/keccak256.ts'
import { provideWebAssembly as provideSecp256k1 } from './crypto/secp256k1.ts'
import { createLaneCalls } from './executor/wake-lanes.ts'
import { createHttpSurface } from './http/app.ts'
import { logFailure } from './log.ts'
import { findUnregistered } from './mcp/resources.ts'
import { createMcpRoute, isMcpPath } from './mcp/route.ts'
import { createServer } from './mcp/server.ts'
import { createSessionIds } from './mcp/session-id.ts'
import { runSchedule } from './scheduled/scheduled.ts'

export { ExecutorLaneObject as ExecutorLane } from './executor/object.ts'
export { HistoryIndexerObject as HistoryIndexer } from './history/object.ts'
export { IntakeSwitchesObject as IntakeSwitches } from './intake-switches/object.ts'
export { KeeperObject as Keeper } from './keeper/object.ts'
export { EventStreamsObject as EventStreams } from './live/object.ts'
export { EventStreamShardObject as EventStreamShard } from './live/shard-object.ts'
export { McpSessionObject as McpSession } from './mcp/session-object.ts'
export { McpHubObject as McpHub } from './mcp/subscription-hub-object.ts'
export { MetricTotalsObject as MetricTotals } from './metrics/object.ts'
export { PaymentLedgerObject as PaymentLedger } from './payments/object.ts'
export { WebhooksObject as Webhooks } from './webhooks/object.ts'

const logWebAssemblyFailure = (error: unknown) => logFailure('WebAssembly failure', error)
provideSecp256k1(secp256k1Module, logWebAssemblyFailure)
provideKeccak256(keccakModule, logWebAssemblyFailure)
hashMessagesWith(keccak256)

const context = serviceContext()
const { config } = context
const serveHttp = createHttpSurface(context, env.ASSETS, env.WORKER_VERSION?.id)
const serveMcp = createMcpRoute({
  createServer: options => createServer(context, options),
  sessionIds: createSessionIds(config.mcpSessionKey),
  allowedHosts: config.allowedHosts,
  namespaces: env,
  findUnregistered: uris => findUnregistered(context, uris),
  rateLimits: context.rateLimits,
  baseUrl: config.baseUrl,
})

// Isolates that run Durable Objects evaluate this module too. They deliver metrics only if the metrics can be read.
if (config.operatorSecret !== undefined || 'METRICS' in env) context.metrics.start()

/** Completes work that no caller waits for. Errors are ignored. */
const runInBackground = (work: Promise<unknown> | undefined) => waitUntil(Promise.resolve(work).catch(() => {}))

let hasWoken = false
/** Starts the lanes and the indexer, which starts the keeper, with the first request in an isolate and by cron. */
function wake() {
  hasWoken = true
  if (config.chain) createLaneCalls(env.EXECUTOR_LANE, config).wake()
  if (config.chain) context.history.wake()
}

/** Checks the string first: parsing a URL costs more than serving a cached read. */
const isMcp = (url: string) => url.includes('/mcp') && isMcpPath(new URL(url).pathname)

export default {
  fetch: request => {
    if (!hasWoken) wake()
    const response = isMcp(request.url) ? serveMcp(request) : serveHttp(request)
    // A request whose client disconnects must end its turn too. Without this, the runtime would stop it at any point.
    if (response instanceof Promise) runInBackground(response)
    return response
  },
  scheduled: async ({ scheduledTime }: Pick<ScheduledController, 'scheduledTime'>) => {
    wake()
    await runSchedule(context, scheduledTime)
  },
} satisfies ExportedHandler<Env>
