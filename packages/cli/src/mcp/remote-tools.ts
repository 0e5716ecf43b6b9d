import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import { Failure } from '../failure.ts'

/** The read tools of the service, which are forwarded as they are. */
export type RemoteTools = {
  list(): Promise<Tool[]>
  call(name: string, input: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult>
  close(): Promise<void>
}

/** Connects to the service at the first call, and again after a failed one. */
export function createRemoteTools(url: string, version: string): RemoteTools {
  let connection: Promise<Client> | undefined
  const connect = async () => {
    const client = new Client({ name: 'ats', version })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url.replace(/\/$/, '')}/mcp?tools=read`)))
    return client
  }
  const use = async <T>(action: (client: Client) => Promise<T>): Promise<T> => {
    connection ??= connect()
    try {
      return await action(await connection)
    } catch (error) {
      connection = undefined
      throw new Failure('unavailable', `The service at ${url} did not respond over MCP.`, {
        code: 'SERVICE_UNREACHABLE',
        remedy: 'Check the URL, then try again.',
        details: { reason: error instanceof Error ? error.name : undefined },
      })
    }
  }
  return {
    list: () => use(async client => (await client.listTools()).tools as Tool[]),
    call: (name, input, signal) =>
      use(client => client.callTool({ name, arguments: input }, { signal }) as Promise<CallToolResult>),
    async close() {
      await (await connection?.catch(() => undefined))?.close()
    },
  }
}
