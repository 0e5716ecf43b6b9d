// The loop of a model over MCP tools. The model here is a script: replace `nextCall` with a real one. The key stays in
// this program and never reaches the model: it names trades, and this program compares, signs and submits.
//   BASE=http://127.0.0.1:8787 ATS_AGENT=7 AGENT_KEY=0x… \
//     node --conditions=@agent-trading-service/source examples/mcp-loop.ts
// With the client from npm, `node mcp-loop.ts` does; Node 20 runs no TypeScript, so `npx tsx mcp-loop.ts` there.
import { createClient } from '@agent-trading-service/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

const { BASE = 'http://127.0.0.1:8787', ATS_AGENT = '', AGENT_KEY, RPC_URL } = process.env
type Values = Record<string, string>
type Call = { tool: string; input: Values }
type Result = Call & { output: unknown }

/** What a model would do: reads the results so far and names the next call; undefined when it is done. */
function nextCall(history: readonly Result[]): Call | undefined {
  const last = history.at(-1)
  const output = last?.output as Values | undefined
  if (!last) return { tool: 'svc_get_risk_state', input: { agentId: ATS_AGENT } }
  if (last.tool === 'svc_get_risk_state')
    return { tool: 'open', input: { symbol: 'NVDA', usdcAmount: '100', stopBps: '-800' } }
  if (last.tool === 'open')
    return { tool: 'svc_get_agent_position', input: { agentId: ATS_AGENT, positionId: output?.positionId ?? '' } }
  if (last.tool === 'svc_get_agent_position')
    return { tool: 'close', input: { positionId: last.input.positionId ?? '' } }
  return undefined
}

const service = createClient({
  baseUrl: BASE,
  account: privateKeyToAccount(AGENT_KEY as Hex),
  ...(RPC_URL && { rpcUrl: RPC_URL }),
})
const agent = service.agent(ATS_AGENT)
/** The tools that sign. Every other tool is the service's own and only reads. */
const signing: Record<string, (input: Values) => Promise<unknown>> = {
  open: ({ symbol = '', usdcAmount = '', stopBps }) =>
    agent.open({ symbol, usdcAmount, exits: [{ triggerBps: Number(stopBps), exitBps: 10_000 }] }),
  close: ({ positionId = '' }) => agent.close({ positionId }),
}

const mcp = new Client({ name: 'example', version: '1' })
await mcp.connect(new StreamableHTTPClientTransport(new URL('/mcp', BASE)))
const history: Result[] = []
for (let call = nextCall(history); call; call = nextCall(history)) {
  const { tool, input } = call
  const sign = signing[tool]
  // A refusal is a result too: its code and remedy tell the model what to change.
  const output = sign
    ? await sign(input).catch((error: Error) => ({ error: error.message }))
    : (await mcp.callTool({ name: tool, arguments: input })).structuredContent
  history.push({ tool, input, output })
  console.log(`${tool} ${JSON.stringify(input)} -> ${JSON.stringify(output).slice(0, 160)}`)
}
await mcp.close()
