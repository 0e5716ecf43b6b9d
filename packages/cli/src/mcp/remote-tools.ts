import type { Fetch } from '@agent-trading-service/client'
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { CallToolResult } from '@modelcontextprotocol/server'
import { Failure } from '../failure.ts'

/**
 * Calls of the read tools of a service. Nothing else that it lists or says of them is read: it may have been taken
 * over.
 */
export type RemoteTools = ReturnType<typeof createRemoteTools>

/** What is listed here decides which tools are called. */
const SELECTION = 'toolsets=all'

/** Longer than the service waits for an event. */
const TIMEOUT_MS = 75_000

/** Connects to the service at the first request, and again after one that got no response. */
export function createRemoteTools(url: string, version: string, fetch: Fetch) {
  let connection: Promise<Client> | undefined
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
    callTool: (name: string, input: Record<string, unknown>, signal: AbortSignal) =>
      use(
        client =>
          client.callTool({ name, arguments: input }, { signal, timeout: TIMEOUT_MS }) as Promise<CallToolResult>,
        signal,
      ),
    async close() {
      await (await connection?.catch(() => undefined))?.close()
    },
  }
}

/** Tells whether a tool only prepares what is signed and submitted elsewhere. */
export const isQuote = (name: string): boolean => /^svc_.*_quote$/.test(name)
