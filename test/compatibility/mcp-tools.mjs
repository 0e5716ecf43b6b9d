// Lists the tools of a service as an agent framework converts them: mcp-tools.mjs FRAMEWORK URL. Prints how many.

const [, , framework, url] = process.argv

const frameworks = {
  async 'langchain-js'() {
    const { MultiServerMCPClient } = await import('@langchain/mcp-adapters')
    const { convertToOpenAITool } = await import('@langchain/core/utils/function_calling')
    const client = new MultiServerMCPClient({ mcpServers: { ats: { transport: 'http', url } } })
    const tools = await client.getTools()
    await client.close()
    return tools.map(tool => convertToOpenAITool(tool))
  },
  async 'openai-agents-js'() {
    const { Agent, getAllMcpTools, MCPServerStreamableHttp, RunContext } = await import('@openai/agents')
    const server = new MCPServerStreamableHttp({ url, name: 'ats' })
    await server.connect()
    const agent = new Agent({ name: 'reader', mcpServers: [server] })
    const tools = await getAllMcpTools({
      mcpServers: [server],
      convertSchemasToStrict: true,
      runContext: new RunContext(),
      agent,
    })
    await server.close()
    return tools
  },
  async 'ai-sdk'() {
    const { createMCPClient } = await import('@ai-sdk/mcp')
    const { asSchema } = await import('ai')
    const client = await createMCPClient({ transport: { type: 'http', url } })
    const tools = Object.values(await client.tools())
    for (const { inputSchema } of tools) await asSchema(inputSchema).jsonSchema
    await client.close()
    return tools
  },
  async 'google-genai-js'() {
    const { mcpToTool } = await import('@google/genai')
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js')
    const client = new Client({ name: 'reader', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    const { functionDeclarations } = await mcpToTool(client).tool()
    await client.close()
    return functionDeclarations
  },
  async mastra() {
    const { MCPClient } = await import('@mastra/mcp')
    const client = new MCPClient({ servers: { ats: { url: new URL(url) } } })
    const tools = Object.values(await client.listTools())
    await client.disconnect()
    return tools
  },
}

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const clientInfo = { name: 'listed', version: '1' }
const version = '2025-06-18'
const call = async (method, params, more = {}) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await fetch(url, { method: 'POST', headers: { ...headers, ...more }, body })
  const text = await response.text()
  return { ...JSON.parse(/^data: ?(.*)$/m.exec(text)?.[1] ?? text), session: response.headers.get('mcp-session-id') }
}
const { session } = await call('initialize', { protocolVersion: version, capabilities: {}, clientInfo })
const { result } = await call('tools/list', {}, { 'mcp-session-id': session, 'mcp-protocol-version': version })

const converted = await frameworks[framework]()
if (converted.length !== result.tools.length) throw new Error(`${converted.length} of ${result.tools.length} tools`)
console.log(`${converted.length} tools`)
process.exit()
