import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server'
import { SERVICE_NAME, VERSION } from '../config.ts'
import type { Context } from '../context.ts'
import { MCP_INSTRUCTIONS } from '../operations/api-texts.ts'
import { getPrompt, listedPrompts } from './prompts.ts'
import { isResource, listedResources, listedResourceTemplates, readResource } from './resources.ts'
import type { ServerOptions } from './server-types.ts'
import { callTool, listTools, toolSelection } from './tools.ts'

const HOUR_MS = 3_600_000

/** Creates the MCP server of the service, for both protocol generations. */
export function createServer(context: Context, { url, subscriptions }: ServerOptions): Server {
  const selection = toolSelection(url)
  const server = new Server(
    { name: SERVICE_NAME, title: 'Agent Trading Service', version: VERSION },
    {
      capabilities: { tools: {}, resources: { subscribe: true }, prompts: {} },
      instructions: MCP_INSTRUCTIONS,
      cacheHints: {
        'tools/list': { ttlMs: HOUR_MS, cacheScope: 'public' },
        'prompts/list': { ttlMs: HOUR_MS, cacheScope: 'public' },
        'resources/list': { ttlMs: HOUR_MS, cacheScope: 'public' },
        'resources/templates/list': { ttlMs: HOUR_MS, cacheScope: 'public' },
        'server/discover': { ttlMs: HOUR_MS, cacheScope: 'public' },
      },
    },
  )
  server.setRequestHandler('tools/list', () => ({ tools: listTools(selection) }))
  server.setRequestHandler('tools/call', ({ params }, call) => callTool(context, selection, params, call))
  server.setRequestHandler('resources/list', () => ({ resources: listedResources }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: listedResourceTemplates }))
  server.setRequestHandler('resources/read', ({ params }, call) => readResource(context, params.uri, call))
  server.setRequestHandler('prompts/list', () => ({ prompts: listedPrompts }))
  server.setRequestHandler('prompts/get', ({ params }) => getPrompt(params.name, params.arguments))
  if (subscriptions === undefined) return server

  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }) => {
    if (!isResource(uri)) throw new ResourceNotFoundError(uri)
    if (await subscriptions.subscribe(uri)) return {}
    throw new ProtocolError(
      ProtocolErrorCode.InvalidRequest,
      'This session has reached its maximum number of subscriptions',
    )
  })
  server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }) => {
    await subscriptions.unsubscribe(uri)
    return {}
  })
  return server
}
