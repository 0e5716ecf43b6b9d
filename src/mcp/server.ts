import { losslessInput } from '@agent-trading-service/protocol/lossless-input'
import { shorten } from '@agent-trading-service/protocol/shorten'
import {
  type GetPromptResult,
  type McpServer,
  type Prompt,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { SERVICE_NAME, VERSION } from '../config/config.ts'
import type { Context } from '../context.ts'
import { MCP_INSTRUCTIONS } from '../operations/discovery.ts'
import { prompts } from '../operations/prompts.ts'
import { appsCapability, showsCards } from './apps.ts'
import { clientOf } from './calls.ts'
import { namingTools } from './replace-endpoints-with-tools.ts'
import {
  findUnregistered,
  isResource,
  listedResources,
  listedResourceTemplates,
  MAX_URI,
  readResource,
} from './resources.ts'
import { serveSkills, skillsCapability } from './skills.ts'
import { MAX_CREATION_WAIT_MS, resultOrTask, serveTasks, tasksCapability, understandsTasks } from './tasks.ts'
import { callTool, listTools, takesTurns, toolSelection, type WaitAsStream } from './tools.ts'

/** The resource subscriptions of a session (2025 revisions of the protocol). */
export type Subscriptions = {
  /** Returns false if the session has reached its maximum. */
  subscribe(uri: string): Promise<boolean>
  unsubscribe(uri: string): Promise<void>
}

/**
 * What a server is created for: the URL of the request and, if there is a session, its subscriptions, the limit of the
 * reads that it makes at a time, and that of waits, which keep its object busy.
 */
export type ServerOptions = {
  url: URL
  subscriptions?: Subscriptions
  readInTurn?: <Result>(read: () => Promise<Result>) => Promise<Result>
  waitAsStream?: WaitAsStream
}

/** Creates a server: for one request (2026 revision of the protocol) or for one session (2025 revisions). */
export type ServerFactory = (options: ServerOptions) => McpServer | Server

type ToolCall = { name: string; arguments?: unknown }

const HOUR_MS = 3_600_000

// With a schema of our own, the SDK reports malformed parameters as invalid (-32602), otherwise as an internal error.
// It quotes the schema's issues, so these accept everything, and the functions below say what is wrong.
const page = { params: z.looseObject({}) }
const resource = { params: z.looseObject({ uri: z.unknown().optional() }) }
const prompt = { params: z.looseObject({ name: z.unknown().optional(), arguments: z.unknown().optional() }) }

/** Returns a parameter that must be a text. Throws a protocol error that names it. */
function textOf(value: unknown, name: string): string {
  if (typeof value === 'string') return value
  const problem = value === undefined ? 'is missing' : `must be a string, not ${shorten(JSON.stringify(value))}`
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Invalid params: ${name} ${problem}`)
}

/** Returns the arguments of a prompt. Throws a protocol error that names the first which is not a text. */
function promptArguments(value: unknown): Record<string, string> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid params: arguments must be an object of strings')
  const texts = losslessInput(value, { type: 'object', additionalProperties: { type: 'string' } }) as object
  const given = Object.entries(texts).filter(([, text]) => text !== null && text !== '')
  return Object.fromEntries(given.map(([name, text]) => [name, textOf(text, `arguments.${shorten(name)}`)]))
}

/** Throws a protocol error for a cursor: every list has one page. */
function assertFirstPage({ cursor }: Record<string, unknown>): void {
  if (cursor !== undefined && cursor !== null) textOf(cursor, 'cursor')
}

/** Creates the MCP server of the service, for both protocol generations. */
export function createServer(
  context: Context,
  { url, subscriptions, readInTurn = run => run(), waitAsStream }: ServerOptions,
): Server {
  const selection = toolSelection(url)
  const server = new Server(
    { name: SERVICE_NAME, title: 'Agent Trading Service', version: VERSION },
    {
      capabilities: {
        tools: {},
        resources: { subscribe: true },
        prompts: {},
        extensions: { ...skillsCapability, ...tasksCapability, ...appsCapability },
      },
      instructions: MCP_INSTRUCTIONS,
      cacheHints: {
        // Hosts that show cards get links to them.
        'tools/list': { ttlMs: HOUR_MS, cacheScope: 'private' },
        'prompts/list': { ttlMs: HOUR_MS, cacheScope: 'public' },
        'resources/list': { ttlMs: HOUR_MS, cacheScope: 'public' },
        'resources/templates/list': { ttlMs: HOUR_MS, cacheScope: 'public' },
        'server/discover': { ttlMs: HOUR_MS, cacheScope: 'public' },
      },
    },
  )
  server.setRequestHandler('tools/list', page, (params, request) => {
    assertFirstPage(params)
    return { tools: listTools(context, selection, showsCards(server, request)) }
  })
  const call = (params: ToolCall, maxWaitMs: number | undefined, request: ServerContext) => {
    // Before it waits for its turn: the time for its response runs from its arrival.
    const client = clientOf(context, request)
    const run = () => callTool(context, client, selection, params, request, { waitAsStream, maxWaitMs })
    return takesTurns(params.name) ? readInTurn(run) : run()
  }
  server.setRequestHandler('tools/call', async ({ params }, request) => {
    const maxWaitMs = understandsTasks(request) ? MAX_CREATION_WAIT_MS : undefined
    return resultOrTask(params.name, await call(params, maxWaitMs, request), request)
  })
  serveTasks(server, call)
  server.setRequestHandler('resources/list', page, () => ({ resources: listedResources }))
  server.setRequestHandler('resources/templates/list', page, () => ({ resourceTemplates: listedResourceTemplates }))
  server.setRequestHandler('resources/read', resource, (params, request) => {
    const uri = textOf(params.uri, 'uri')
    const client = clientOf(context, request)
    return readInTurn(() => readResource(context, client, uri, request))
  })
  server.setRequestHandler('prompts/list', page, () => ({ prompts: listedPrompts }))
  server.setRequestHandler('prompts/get', prompt, ({ name, arguments: given }) =>
    getPrompt(textOf(name, 'name'), promptArguments(given)),
  )
  serveSkills(server)
  if (subscriptions === undefined) return server

  server.setRequestHandler('resources/subscribe', resource, async params => {
    const uri = textOf(params.uri, 'uri')
    if (!isResource(uri) || (await findUnregistered(context, [uri])) !== undefined)
      throw new ResourceNotFoundError(shorten(uri, MAX_URI))
    if (await subscriptions.subscribe(uri)) return {}
    throw new ProtocolError(
      ProtocolErrorCode.InvalidRequest,
      'This session has reached its maximum number of subscriptions',
    )
  })
  server.setRequestHandler('resources/unsubscribe', resource, async params => {
    await subscriptions.unsubscribe(textOf(params.uri, 'uri'))
    return {}
  })
  return server
}

const listedPrompts: Prompt[] = Object.entries(prompts).map(([name, prompt]) => ({
  name,
  title: prompt.title,
  description: prompt.description,
  arguments: Object.entries(prompt.arguments).map(([name, argument]) => ({ name, ...argument })),
}))

/** Renders a prompt with its arguments. Throws a protocol error for an unknown prompt or a missing argument. */
function getPrompt(name: string, given: Record<string, string> = {}): GetPromptResult {
  const prompt = Object.hasOwn(prompts, name) ? prompts[name] : undefined
  if (prompt === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no prompt ${shorten(name)}`)
  const missing = Object.entries(prompt.arguments).find(([name, { required }]) => required && !given[name])
  if (missing) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The argument ${missing[0]} is missing`)
  return {
    description: prompt.description,
    messages: [{ role: 'user', content: { type: 'text', text: namingTools(prompt.text(given)) } }],
  }
}
