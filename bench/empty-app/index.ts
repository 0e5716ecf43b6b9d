import { OpenAPIHono } from '@hono/zod-openapi'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { x402Facilitator } from '@x402/core/facilitator'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { createPublicClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'

// The service's libraries without the service: the baseline for its start-up time.
const app = new OpenAPIHono()
app.get('/health', c => c.json(z.object({ status: z.string() }).parse({ status: 'ok' })))
app.get('/uses', async c => {
  const client = createPublicClient({ transport: http('http://127.0.0.1:8545') })
  const facilitator = new x402Facilitator()
  registerExactEvmScheme(facilitator, { signer: c.env as never, networks: 'eip155:31337' })
  return c.json({
    block: `${await client.getBlockNumber()}`,
    account: privateKeyToAccount(c.req.query('key') as never),
  })
})
const mcp = createMcpHandler(() => new McpServer({ name: 'empty', version: '1' }), { legacy: 'reject' })

export default {
  fetch: (request: Request) => (new URL(request.url).pathname === '/mcp' ? mcp.fetch(request) : app.fetch(request)),
}
