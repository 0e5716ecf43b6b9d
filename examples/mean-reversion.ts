// Buys a token that is far below its average of two days, and sells it at the average. For a rehearsal:
//   npx ats rehearse --market gbm --seed 7 -- \
//     node --conditions=@agent-trading-service/source examples/mean-reversion.ts
// With the client from npm, `node mean-reversion.ts` does; Node 20 runs no TypeScript, so `npx tsx mean-reversion.ts`
// there.
import { AgentTradingError, createClient, parseToken } from '@agent-trading-service/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { advance } from './advance.ts'

const { BASE = 'http://127.0.0.1:8787', RPC_URL = '', ATS_AGENT = '', AGENT_KEY } = process.env
const account = privateKeyToAccount(AGENT_KEY as Hex)
const client = createClient({ baseUrl: BASE, account, ...(RPC_URL && { rpcUrl: RPC_URL }) })
const agent = client.agent(ATS_AGENT)

const HOUR = 3_600
/** Prices in the average, one an hour. */
const LOOKBACK = 48
/** How far below the average it buys, in basis points. */
const DISTANCE_BPS = 200n

const past = new Map<string, bigint[]>()

/**
 * Returns how far the newest price is below the average, in basis points; negative above it, undefined with too few
 * prices.
 */
function distanceBps(prices: readonly bigint[]): bigint | undefined {
  if (prices.length < LOOKBACK) return undefined
  const average = prices.reduce((sum, price) => sum + price, 0n) / BigInt(prices.length)
  return ((average - (prices.at(-1) ?? 0n)) * 10_000n) / average
}

/** Sells what is back at its average, then buys what is far below. */
async function trade(): Promise<void> {
  const { positions } = await client.listPositions({ agentId: ATS_AGENT })
  for (const [symbol, prices] of past) {
    const distance = distanceBps(prices)
    if (distance === undefined) continue
    const held = positions.find(position => position.symbol === symbol)
    if (held && distance <= 0n) await agent.close({ positionId: held.positionId, note: 'back at the average' })
    if (held || distance < DISTANCE_BPS) continue
    const exits = [{ triggerBps: -500, exitBps: 10_000 }]
    await agent.open({ symbol, usdcAmount: '90', exits, note: `${Number(distance) / 100} % below the average` })
  }
}

do {
  const { prices } = await client.getPrices({})
  for (const { symbol, priceUsd } of Object.values(prices))
    past.set(symbol, [...(past.get(symbol) ?? []), parseToken(priceUsd, 18)].slice(-LOOKBACK))
  try {
    await trade()
  } catch (error) {
    if (!(error instanceof AgentTradingError) || error.kind === 'untrusted-quote') throw error
    console.error(`${error.code}: ${error.message}`) // the report counts it
  }
} while (await advance(BASE, ATS_AGENT, HOUR))
