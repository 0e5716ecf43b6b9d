// Buys the token that has risen most within a day, with a stop-loss, and sells it once it falls below its average. For
// a rehearsal:
//   npx ats rehearse --market trend --seed 7 -- node --conditions=@agent-trading-service/source examples/momentum.ts
// With the client from npm, `node momentum.ts` does; Node 20 runs no TypeScript, so `npx tsx momentum.ts` there.
import { AgentTradingError, createClient, parseToken } from '@agent-trading-service/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { advance } from './advance.ts'

const { BASE = 'http://127.0.0.1:8787', RPC_URL = '', ATS_AGENT = '', AGENT_KEY, LOOK_EVERY_SECONDS } = process.env
const account = privateKeyToAccount(AGENT_KEY as Hex)
const client = createClient({ baseUrl: BASE, account, ...(RPC_URL && { rpcUrl: RPC_URL }) })
const agent = client.agent(ATS_AGENT)

const LOOK_EVERY = Number(LOOK_EVERY_SECONDS ?? 3_600)
/** Prices looked back at, one an hour by default. */
const LOOKBACK = 24
/** The least rise to buy at, in basis points. */
const MIN_RISE_BPS = 100n

const past = new Map<string, bigint[]>()
const riseBps = (prices: readonly bigint[]) => {
  const [oldest = 0n, newest = 0n] = [prices[0], prices.at(-1)]
  return prices.length < LOOKBACK || oldest === 0n ? 0n : ((newest - oldest) * 10_000n) / oldest
}
const average = (prices: readonly bigint[]) => prices.reduce((sum, price) => sum + price, 0n) / BigInt(prices.length)

/** Buys or sells at most one token, by the prices so far. */
async function trade(): Promise<void> {
  const { positions } = await client.listPositions({ agentId: ATS_AGENT })
  for (const { positionId, symbol } of positions) {
    const prices = past.get(symbol) ?? []
    if (prices.length > 0 && (prices.at(-1) ?? 0n) < average(prices)) {
      await agent.close({ positionId, note: 'below the average of the day' })
      return
    }
  }
  const [best] = [...past].sort(([, a], [, b]) => Number(riseBps(b) - riseBps(a)))
  if (best === undefined || positions.some(({ symbol }) => symbol === best[0])) return
  const [symbol, prices] = best
  const rise = riseBps(prices)
  if (rise < MIN_RISE_BPS) return
  const exits = [{ triggerBps: -300, exitBps: 10_000 }]
  await agent.open({ symbol, usdcAmount: '90', exits, note: `rose ${Number(rise) / 100} % within a day` })
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
} while (await advance(BASE, ATS_AGENT, LOOK_EVERY))
