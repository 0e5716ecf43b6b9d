// Opens positions with random ladders, or places random limit orders with them, one at a time in each token, until it
// has had as many rules as its argument says.
import { createClient } from '@agent-trading-service/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

const { BASE = '', RPC_URL = '', ATS_AGENT = '', AGENT_KEY } = process.env
const client = createClient({ baseUrl: BASE, account: privateKeyToAccount(AGENT_KEY as Hex), rpcUrl: RPC_URL })
const agent = client.agent(ATS_AGENT)
const rules = Number(process.argv[2])

let state = 11
const random = () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 2 ** 32
}

let now = 0
let prices: Record<string, string> = {}
for (let placed = 0, isOver = false; !isOver; ) {
  const { positions } = await client.listPositions({ agentId: ATS_AGENT })
  const { orders } = await client.listOrders({ agentId: ATS_AGENT, state: 'open' })
  const busy = new Set([...positions, ...orders].map(({ symbol }) => symbol))
  for (const [symbol, price] of Object.entries(prices)) {
    if (busy.has(symbol) || placed >= rules) continue
    const [stop, target] = [50 + Math.floor(150 * random()), 100 + Math.floor(100 * random())]
    const exits = [
      { triggerBps: -stop, exitBps: 10_000 },
      { triggerBps: target, exitBps: 10_000 },
    ]
    if (random() < 0.5) {
      await agent.open({ symbol, usdcAmount: '90', exits })
      placed += 2
    } else {
      const limit = (Number(price) * (1 - 0.01 * random())).toFixed(2)
      const validUntil = `${now + 4 * 3_600}`
      await agent.orders.place({ type: 'limit', symbol, usdcAmount: '90', price: limit, exits, validUntil })
      placed += 3
    }
  }
  const response = await fetch(`${BASE}/rehearsal/advance`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId: ATS_AGENT }),
  })
  const advanced: { isOver: boolean; time: string; prices: Record<string, string> } = await response.json()
  if (!response.ok) throw new Error(JSON.stringify(advanced))
  isOver = advanced.isOver
  now = Number(advanced.time)
  prices = advanced.prices
}
