// A model that trades over MCP tools in a rehearsal. The model here is a script: replace `decide` with a real one. The
// key stays in this program and never reaches the model: it names trades, and this program compares, signs and submits.
//   npx ats rehearse --market crash --seed 7 -- \
//     node --conditions=@agent-trading-service/source examples/mcp-rehearsal.ts
// With the client from npm, `node mcp-rehearsal.ts` does; Node 20 runs no TypeScript, so `npx tsx mcp-rehearsal.ts`
// there.
import { AgentTradingError, createClient } from '@agent-trading-service/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

const { BASE = 'http://127.0.0.1:8787', ATS_AGENT = '', AGENT_KEY, RPC_URL } = process.env
const DAY = 86_400

type Position = { positionId: string; symbol: string; derived: { returnBps: number } }
type Decision = { tool: 'open'; symbol: string; note: string } | { tool: 'close'; positionId: string; note: string }

/** What a model would decide once a day: take profits, cut losses, and hold two tokens. */
function decide(positions: readonly Position[]): Decision[] {
  const leaving = positions.filter(({ derived }) => Math.abs(derived.returnBps) > 400)
  const decisions = leaving.map(({ positionId, derived }): Decision => {
    return { tool: 'close', positionId, note: derived.returnBps > 0 ? 'took the profit' : 'cut the loss' }
  })
  const held = new Set(positions.map(({ symbol }) => symbol))
  const missing = ['NVDA', 'AAPL'].filter(symbol => !held.has(symbol))
  return [...decisions, ...missing.map((symbol): Decision => ({ tool: 'open', symbol, note: 'holds two tokens' }))]
}

const account = privateKeyToAccount(AGENT_KEY as Hex)
const agent = createClient({ baseUrl: BASE, account, ...(RPC_URL && { rpcUrl: RPC_URL }) }).agent(ATS_AGENT)
const mcp = new Client({ name: 'rehearsal', version: '1' })
await mcp.connect(new StreamableHTTPClientTransport(new URL('/mcp', BASE)))
let time = 0
do {
  const { structuredContent } = await mcp.callTool({
    name: 'svc_get_agent_positions',
    arguments: { agentId: ATS_AGENT },
  })
  for (const decision of decide((structuredContent as { positions: Position[] }).positions))
    try {
      const { note } = decision
      const exits = [{ triggerBps: -800, exitBps: 10_000 }]
      if (decision.tool === 'close') await agent.close({ positionId: decision.positionId, note })
      else await agent.open({ symbol: decision.symbol, usdcAmount: '90', exits, note })
    } catch (error) {
      if (!(error instanceof AgentTradingError) || error.kind === 'untrusted-quote') throw error
      console.error(`${error.code}: ${error.message}`) // a refusal tells the model what to change
    }
  const { structuredContent: market } = await mcp.callTool({
    name: 'svc_advance_market',
    arguments: { agentId: ATS_AGENT, ...(time > 0 && { until: `${time + DAY}` }) },
  })
  const advanced = market as { time: string; isOver: boolean }
  time = advanced.isOver ? Number.NaN : Number(advanced.time)
} while (time > 0)
await mcp.close()
