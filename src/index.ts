import { env, waitUntil } from 'cloudflare:workers'
import { parseConfig } from './config.ts'
import { createContext } from './context.ts'
import type { IntentRecord } from './executor/intent.ts'
import { ExecutorLaneObject } from './executor/object.ts'
import type { Listener } from './history/chain-follower.ts'
import { HistoryIndexerObject } from './history/object.ts'
import { createApp } from './http/app.ts'
import { withResponseCache } from './http/response-cache.ts'
import { eventStreamsOf } from './live/client.ts'
import { EventStreamsObject } from './live/object.ts'
import { logEvent } from './log.ts'
import { McpHubObject } from './mcp/hub-object.ts'
import { notifySubscribers } from './mcp/notify-subscribers.ts'
import { createMcpRoute } from './mcp/route.ts'
import { createServer } from './mcp/server.ts'
import type { ServerFactory } from './mcp/server-factory.ts'
import { McpSessionObject } from './mcp/session-object.ts'
import { presentIntentRecord } from './operations/intent-status.ts'
import { refreshPricesOnSchedule } from './operations/scheduled-price-refresh.ts'
import { presentTrade } from './resources/trade.ts'

export { KeeperObject as Keeper } from './keeper/object.ts'
export { PaymentLedger } from './payments/object.ts'

const config = parseConfig({ ...env })
const context = createContext(config, env)
const app = createApp(() => context, env.ASSETS)
const serveHttp = withResponseCache(
  request => app.fetch(request),
  () => context,
)
const createMcpServer: ServerFactory = options => createServer(context, options)
const serveMcp = createMcpRoute({ createServer: createMcpServer, allowedHosts: config.allowedHosts, namespaces: env })

const streams = () => config.chain && eventStreamsOf(env.EVENT_STREAMS, config.chain)
const quietly = (work: Promise<unknown> | undefined) => waitUntil(Promise.resolve(work).catch(() => {}))

export class ExecutorLane extends ExecutorLaneObject {
  protected override notify = async (records: IntentRecord[]) => streams()?.tell(records)
}

export class HistoryIndexer extends HistoryIndexerObject {
  #isFollowed = false
  protected override readonly listener: Listener = {
    appended: ({ trades, prices }) => {
      if (!this.#isFollowed || trades.length > 0 || prices.length > 0) this.#poke()
    },
    reorganized: () => this.#poke(),
  }
  #poke() {
    const advanced = streams()?.advance()
    quietly(advanced?.then(hasBegun => (this.#isFollowed = hasBegun)))
  }
}
export class EventStreams extends EventStreamsObject {
  protected override readonly presentTrade = presentTrade
  protected override readonly presentIntent = presentIntentRecord
  protected override readonly onAgentsChanged = (agentIds: number[]) => quietly(notifySubscribers(agentIds, env))
}
export class McpSession extends McpSessionObject {
  protected override readonly createServer = createMcpServer
}
export class McpHub extends McpHubObject {
  protected override readonly createServer = createMcpServer
}

let isAwake = false
/** The first request of an isolate wakes who works on their own; what they wait for and the cron do so after it. */
function wakeOnce() {
  if (!isAwake) wake()
  isAwake = true
}
function wake() {
  context.keeper?.wake()
  if (config.chain) context.history.wake()
}

export default {
  fetch: request => {
    wakeOnce()
    return new URL(request.url).pathname === '/mcp' ? serveMcp(request) : serveHttp(request)
  },
  scheduled: async () => {
    wake()
    // Each part logs what becomes of it, and leaves the others alone.
    await refreshPricesOnSchedule(context)
    if (config.chain && config.trading) await context.history.sample().catch(() => logEvent('sampling failure'))
  },
} satisfies ExportedHandler<Env>
