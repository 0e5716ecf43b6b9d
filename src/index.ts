import { env } from 'cloudflare:workers'
import { parseConfig } from './config.ts'
import { createContext } from './context.ts'
import { HistoryIndexerObject } from './history/indexer.ts'
import { givingAgain } from './http/again.ts'
import { createApp } from './http/app.ts'
import { KeeperObject } from './keeper/keeper.ts'
import { announce, announcing } from './mcp/announce.ts'
import { McpHubObject } from './mcp/hub.ts'
import { createMcpRoute } from './mcp/route.ts'
import { createServer } from './mcp/server.ts'
import type { ServerFactory } from './mcp/serving.ts'
import { McpSessionObject } from './mcp/session.ts'
import { refreshOnSchedule } from './operations/refreshing.ts'

export { ExecutorLane } from './executor/lane.ts'
export { PaymentLedger } from './payments/ledger.ts'

const config = parseConfig({ ...env })
const context = announcing(createContext(config, env), env)
const app = createApp(() => context, env.ASSETS)
const serveHttp = givingAgain(
  request => app.fetch(request),
  () => context,
)
const serve: ServerFactory = serving => createServer(context, serving)
const mcp = createMcpRoute({ createServer: serve, allowedHosts: config.allowedHosts, namespaces: env })

export class Keeper extends KeeperObject {
  protected override readonly onExit = (agentId: bigint) => announce(`${agentId}`, env)
}
export class HistoryIndexer extends HistoryIndexerObject {}
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
    await refreshOnSchedule(context)
  },
} satisfies ExportedHandler<Env>
