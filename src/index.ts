import { env, waitUntil } from 'cloudflare:workers'
import { parseConfig } from './config.ts'
import { createContext } from './context.ts'
import type { IntentRecord } from './executor/executor.ts'
import { ExecutorLane as ExecutorLaneObject } from './executor/lane.ts'
import { logEvent } from './executor/log.ts'
import type { Listener } from './history/follower.ts'
import { HistoryIndexerObject } from './history/indexer.ts'
import { givingAgain } from './http/again.ts'
import { createApp } from './http/app.ts'
import { streamsOf } from './live/live.ts'
import { EventStreamsObject } from './live/streams.ts'
import { announce } from './mcp/announce.ts'
import { McpHubObject } from './mcp/hub.ts'
import { createMcpRoute } from './mcp/route.ts'
import { createServer } from './mcp/server.ts'
import type { ServerFactory } from './mcp/serving.ts'
import { McpSessionObject } from './mcp/session.ts'
import { lifeOf } from './operations/intents.ts'
import { refreshOnSchedule } from './operations/refreshing.ts'

export { Keeper } from './keeper/keeper.ts'
export { PaymentLedger } from './payments/ledger.ts'

const config = parseConfig({ ...env })
const context = createContext(config, env)
const app = createApp(() => context, env.ASSETS)
const serveHttp = givingAgain(
  request => app.fetch(request),
  () => context,
)
const serve: ServerFactory = serving => createServer(context, serving)
const mcp = createMcpRoute({ createServer: serve, allowedHosts: config.allowedHosts, namespaces: env })

const streams = () => config.chain && streamsOf(env.EVENT_STREAMS, config.chain)
const quietly = (work: Promise<unknown> | undefined) => waitUntil(Promise.resolve(work).catch(() => {}))

export class ExecutorLane extends ExecutorLaneObject {
  protected override tell = async (records: IntentRecord[]) => streams()?.tell(records)
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
  protected override readonly present = lifeOf
  protected override readonly onChange = (agentIds: number[]) => quietly(announce(agentIds, env))
}
export class McpSession extends McpSessionObject {
  protected override readonly createServer = serve
}
export class McpHub extends McpHubObject {
  protected override readonly createServer = serve
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
    return new URL(request.url).pathname === '/mcp' ? mcp(request) : serveHttp(request)
  },
  scheduled: async () => {
    wake()
    // Each part logs what becomes of it, and leaves the others alone.
    await refreshOnSchedule(context)
    if (config.chain && config.trading) await context.history.sample().catch(() => logEvent('sampling failure'))
  },
} satisfies ExportedHandler<Env>
