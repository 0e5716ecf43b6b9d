// Once a day, opens a position with a stop and a target 2 % away, unless it has one.
import { createClient } from '@agent-trading-service/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

const { BASE = '', RPC_URL = '', ATS_AGENT = '', AGENT_KEY } = process.env
const client = createClient({ baseUrl: BASE, account: privateKeyToAccount(AGENT_KEY as Hex), rpcUrl: RPC_URL })
const agent = client.agent(ATS_AGENT)
const DAY = 86_400

let until: string | undefined
for (let isOver = false; !isOver; ) {
  const { positions } = await client.listPositions({ agentId: ATS_AGENT })
  if (until !== undefined && positions.length === 0) {
    const exits = [-200, 200].map(triggerBps => ({ triggerBps, exitBps: 10_000 }))
    await agent.open({ symbol: 'NVDA', usdcAmount: '90', exits })
  }
  const response = await fetch(`${BASE}/rehearsal/advance`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId: ATS_AGENT, until: until ?? '1' }),
  })
  const advanced: { isOver: boolean; time: string } = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(advanced))
  isOver = advanced.isOver
  // The first call learns the time at which the market begins.
  until = `${(until === undefined ? Number(advanced.time) : Number(until)) + DAY}`
}
