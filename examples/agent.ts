// An agent on the TypeScript client: it registers, buys what has fallen, tightens the stop of what has risen, and
// sells.
//   BASE=http://127.0.0.1:8787 RPC_URL=… AGENT_KEY=0x… PAYER_KEY=0x… \
//     node --conditions=@agent-trading-service/source examples/agent.ts
// With the client from npm, `node agent.ts` does; Node 20 runs no TypeScript, so `npx tsx agent.ts` there.
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentTradingError, createClient, parseToken } from '@agent-trading-service/client'
import { createPayer } from '@agent-trading-service/client/pay'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'

const { BASE = 'http://127.0.0.1:8787', RPC_URL = '', AGENT_KEY, PAYER_KEY, ROUNDS = '3' } = process.env
const account = privateKeyToAccount(AGENT_KEY as Hex)
const client = createClient({ baseUrl: BASE, account, ...(RPC_URL && { rpcUrl: RPC_URL }) })

/** Returns the id of the agent that the key owns; registers one if there is none. */
async function ownAgent(): Promise<string> {
  const { agents } = await client.listAgentsByOwner({ owner: account.address })
  if (agents[0]) return agents[0].agentId
  const { registrationFee, x402 } = await client.getRegistrationQuote()
  const payer = createPayer({
    account: privateKeyToAccount(PAYER_KEY as Hex),
    chainId: Number(x402.network?.split(':')[1]),
    asset: registrationFee.tokenAddress as Hex,
    maxAmount: 1_000_000n, // never more than one USDC
  })
  const registration = { vault: 'genesis', name: 'dip buyer', metadataURI: 'https://agents.example/dip.json' }
  return (await client.register({ ...registration, payer })).agentId
}

const agentId = await ownAgent()
const agent = client.agent(agentId)
console.log(`agent ${agentId} of ${account.address}`)

const entry = new Map<string, bigint>()
for (let round = 0; round < Number(ROUNDS); round++) {
  try {
    const { prices } = await client.getPrices({ symbols: 'NVDA,AAPL' })
    const { positions } = await client.listPositions({ agentId })
    for (const { symbol, priceUsd } of Object.values(prices)) {
      const price = parseToken(priceUsd, 18)
      const held = positions.find(position => position.symbol === symbol)
      if (held === undefined && price <= (entry.get(symbol) ?? price)) {
        const exits = [{ triggerBps: -800, exitBps: 10_000 }]
        const { positionId } = await agent.open({ symbol, usdcAmount: '100', exits })
        entry.set(symbol, price)
        console.log(`opened ${symbol} at ${priceUsd} USD: position ${positionId}`)
      } else if (held && price > (entry.get(symbol) ?? 0n)) {
        await agent.setLadder({ positionId: held.positionId, exits: [{ triggerBps: -300, exitBps: 10_000 }] })
        entry.set(symbol, price)
      }
    }
  } catch (error) {
    if (!(error instanceof AgentTradingError) || error.kind === 'untrusted-quote') throw error
    console.error(`${error.code}: ${error.message} ${error.remedy ?? ''}`) // the next round tries again
  }
  await sleep(1_000)
}
for (const { positionId } of (await client.listPositions({ agentId })).positions) {
  const { transactionHash } = await agent.close({ positionId })
  console.log(`closed position ${positionId} in ${transactionHash}`)
}
