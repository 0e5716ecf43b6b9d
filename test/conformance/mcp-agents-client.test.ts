import { runInDurableObject } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { Lifecycle } from 'agents/lifecycle'
import { MCPClientManager } from 'agents/mcp/client'
import { expect, it } from 'vitest'
import { type ToolResult, wholeTrade } from '../support/mcp-client.ts'

// The client only connects to public addresses, and the tested Worker has none.
const ADDRESS = 'https://trading.example'
const fetchWorker = (async (input, init) => {
  const request = new Request(input as string, init)
  return exports.default.fetch(new Request(request.url.replace(ADDRESS, 'http://localhost'), request))
}) as typeof fetch

it("the MCP client of Cloudflare's agents SDK trades through tools alone", async () => {
  // The client needs the storage of a Durable Object.
  const host = env.MCP_SESSION.get(env.MCP_SESSION.newUniqueId())
  await runInDurableObject(host, async object => {
    const manager = new MCPClientManager('test', '1')
    new Lifecycle(object).use(manager)
    await manager.onStart()
    const transport = { type: 'streamable-http' as const, fetch: fetchWorker }
    const { id } = await manager.connect(`${ADDRESS}/mcp`, { transport })
    expect(await manager.discoverIfConnected(id)).toMatchObject({ success: true })
    expect(manager.listTools().map(({ name }) => name)).toContain('svc_submit_trade_intent')
    await wholeTrade((name, input) => manager.callTool({ serverId: id, name, arguments: input }) as Promise<ToolResult>)
    await manager.closeConnection(id)
  })
})
