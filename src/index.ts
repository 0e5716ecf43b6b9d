import { env } from 'cloudflare:workers'
import { parseConfig } from './config.ts'
import { createContext } from './context.ts'
import { createApp } from './http/app.ts'
import { KeeperObject } from './keeper/keeper.ts'
import { announce, announcing } from './mcp/announce.ts'
import { McpHubObject } from './mcp/hub.ts'
import { createMcpRoute } from './mcp/route.ts'
import { createServer } from './mcp/server.ts'
import type { ServerFactory } from './mcp/serving.ts'
import { McpSessionObject } from './mcp/session.ts'

export { ExecutorLane } from './executor/lane.ts'
export { PaymentLedger } from './payments/ledger.ts'

const config = parseConfig({ ...env })
const context = announcing(createContext(config, env), env)
const app = createApp(() => context, env.ASSETS)
const serve: ServerFactory = serving => createServer(context, serving)
const mcp = createMcpRoute({ createServer: serve, allowedHosts: config.allowedHosts, namespaces: env })

export class Keeper extends KeeperObject {
  protected override readonly onExit = (agentId: bigint) => announce(`${agentId}`, env)
}
export class McpSession extends McpSessionObject {
  protected override readonly createServer = serve
}
export class McpHub extends McpHubObject {
  protected override readonly createServer = serve
}

let isAwake = false
/** The first request of an isolate makes sure that the keeper looks; positions that open and the cron do so after it. */
function wakeKeeper() {
  if (!isAwake) context.keeper?.wake()
  isAwake = true
}

export default {
  fetch: request => {
    wakeKeeper()
    return new URL(request.url).pathname === '/mcp' ? mcp(request) : app.fetch(request)
  },
  scheduled: async () => context.keeper?.wake(),
} satisfies ExportedHandler<Env>
