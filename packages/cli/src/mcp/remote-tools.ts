import type { Fetch } from '@agent-trading-service/client'
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { Failure } from '../failure.ts'

/** The read tools that are forwarded. Whatever else a service lists is not: it may have been taken over. */
const KNOWN_TOOLS: readonly string[] = [
  'svc_get_agent',
  'svc_get_agent_by_erc8004',
  'svc_get_agent_position',
  'svc_get_agent_positions',
  'svc_get_agent_stats',
  'svc_get_candles',
  'svc_get_equity_history',
  'svc_get_intent',
  'svc_get_position_automation',
  'svc_get_prices',
  'svc_get_risk_state',
  'svc_get_trade_history',
  'svc_get_transaction',
  'svc_get_vault',
  'svc_get_vault_stats',
  'svc_list_agents',
  'svc_list_agents_by_owner',
  'svc_list_closed_positions',
  'svc_list_orders',
  'svc_list_tokens',
  'svc_list_vault_tokens',
  'svc_list_vaults',
]

/** What is forwarded to the service as it is: its read tools, resources, prompts and skills. */
export type RemoteTools = ReturnType<typeof createRemoteTools>

/** The tool sets whose read tools are forwarded. */
const SELECTION = 'tools=read&toolsets=market,agents,trade,orders,history'

const anything = z.looseObject({})
/** Longer than the service waits for an event. */
const TIMEOUT_MS = 75_000

/** Connects to the service at the first request, and again after one that got no response. */
export function createRemoteTools(url: string, version: string, fetch: Fetch) {
  let connection: Promise<Client> | undefined
  let listed: Promise<Tool[]> | undefined
  const connect = async () => {
    // Of the revision without sessions: none stays open when this process ends.
    const client = new Client({ name: 'ats', version }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    const endpoint = new URL(`${url.replace(/\/+$/, '')}/mcp?${SELECTION}`)
    await client.connect(new StreamableHTTPClientTransport(endpoint, { fetch: fetch as typeof globalThis.fetch }))
    return client
  }

  async function use<T>(read: (client: Client) => Promise<T>, signal?: AbortSignal): Promise<T> {
    connection ??= connect()
    const used = connection
    try {
      return await read(await used)
    } catch (error) {
      if (error instanceof ProtocolError || signal?.aborted) throw error
      if (connection === used) {
        connection = undefined
        listed = undefined
        // Without this, what still arrives over the dead connection keeps the process alive.
        used.then(client => client.close()).catch(() => {})
      }
      throw new Failure('unavailable', `The service at ${url} did not respond over MCP.`, {
        code: 'SERVICE_UNREACHABLE',
        remedy: 'Check the URL, then try again.',
        retryable: true,
        details: { reason: error instanceof Error ? error.name : undefined },
      })
    }
  }

  return {
    /** Returns the known read tools of the service. No quotes: what they lead to is signed and submitted here. */
    listTools(): Promise<Tool[]> {
      listed ??= use(async client =>
        ((await client.listTools()).tools as Tool[]).filter(({ name }) => KNOWN_TOOLS.includes(name)),
      )
      const current = listed
      current.catch(() => {
        if (listed === current) listed = undefined
      })
      return current
    },
    callTool: (name: string, input: Record<string, unknown>, signal: AbortSignal) =>
      use(
        client =>
          client.callTool({ name, arguments: input }, { signal, timeout: TIMEOUT_MS }) as Promise<CallToolResult>,
        signal,
      ),
    /** Sends a request of another kind that only reads, such as `prompts/get`. */
    request: (method: string, params: Record<string, unknown>, signal: AbortSignal) =>
      use(client => client.request({ method, params }, anything, { signal }), signal),
    async close() {
      await (await connection?.catch(() => undefined))?.close()
    },
  }
}

/** Tells whether a tool only prepares what is signed and submitted elsewhere. */
export const isQuote = (name: string): boolean => /^svc_.*_quote$/.test(name)
