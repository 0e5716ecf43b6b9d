// Buys a token every fourth bar with a tight ladder, and asks for one bar at a time until the market is over.
import { createClient } from '@agent-trading-service/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

const { BASE = '', RPC_URL = '', ATS_AGENT = '', AGENT_KEY } = process.env
const account = privateKeyToAccount(AGENT_KEY as Hex)
const agent = createClient({ baseUrl: BASE, account, rpcUrl: RPC_URL }).agent(ATS_AGENT)
const symbols = process.argv.slice(2)

for (let bar = 0, isOver = false; !isOver; bar++) {
  const symbol = symbols[Math.floor(bar / 4) % symbols.length] ?? ''
  const exits = [
    { triggerBps: -100, exitBps: 10_000 },
    { triggerBps: 100, exitBps: 10_000 },
  ]
  if (bar % 4 === 0)
    await agent
      .open({ symbol, usdcAmount: '90', exits, note: `bar ${bar}` })
      .catch((error: Error) => console.error(error.message))
  const response = await fetch(`${BASE}/rehearsal/advance`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId: ATS_AGENT }),
  })
  const advanced: { isOver: boolean } = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(advanced))
  isOver = advanced.isOver
}
