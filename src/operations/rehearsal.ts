import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { z } from 'zod'
import { symbolsOf } from '../chain/token-symbols.ts'
import type { Context } from '../context.ts'
import { malformed, refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import { addressOut, asOf, digits, presentAsOf, uint, unixSeconds } from '../resources/primitives.ts'
import { presentTrade, trade } from '../resources/trade.ts'
import { defineOperation } from './define-operation.ts'

// Only a rehearsal serves these: its runner (`rehearsal/`) moves the market, at REHEARSAL_URL.

/**
 * The market when it is the agent's turn again. `tradesAfter` is the block of its call; null if nobody has traded
 * since.
 */
type Moment = {
  agentId: string
  time: number
  isOver: boolean
  prices: Record<string, string>
  block: { number: number; timestamp: number }
  tradesAfter: number | null
}

const MAX_TRADES = 100

const digitsOrNull = digits('Price in USD with 8 decimals').nullable()
const textOrNull = (value: bigint | undefined) => (value === undefined ? null : `${value}`)

export const advanceMarket = defineOperation(
  {
    id: 'advanceMarket',
    tool: {
      name: 'svc_advance_market',
      description:
        'Rehearsal: ends your turn and moves the market on, to `until` (Unix seconds) or to its next bar. Returns the time, prices and your trades since, exits included. Trade before you call it. Example: {"agentId":"1"}',
    },
    method: 'post',
    path: '/rehearsal/advance',
    tag: 'Prices',
    summary: 'Move the market of a rehearsal',
    description:
      "Ends the agent's turn: the market waits until every agent has ended its own, then plays its bars up to the earliest `until`. The keeper fires exits after each. Calling it again for a time that is reached changes nothing.",
    body: z.object({
      agentId: uint.optional().meta({ description: 'Required if several agents are rehearsed', example: '1' }),
      until: uint.optional().describe("Unix seconds of the chain's time; the next bar by default"),
    }),
    bodyIsOptional: true,
    requestKind: 'reads',
    waits: true,
    output: z.object({
      time: unixSeconds("The market's time: that of its last bar"),
      isOver: z.boolean().describe('Whether that was the last bar'),
      prices: z.record(z.string(), z.string()).describe('US dollars by symbol'),
      trades: z.array(trade).describe("The agent's trades since its call, oldest first"),
      asOf,
    }),
  },
  async (context: Context, { agentId, until }) => {
    const moment = await advance(context.config.rehearsalUrl, { agentId, until })
    const { time, isOver, prices, tradesAfter } = moment
    const block = { number: BigInt(moment.block.number), timestamp: BigInt(moment.block.timestamp) }
    return {
      time: `${time}`,
      isOver,
      prices,
      trades: tradesAfter === null ? [] : await readTrades(context, BigInt(moment.agentId), BigInt(tradesAfter)),
      asOf: presentAsOf(block),
    }
  },
)

export const fireExits = defineOperation(
  {
    id: 'fireExits',
    method: 'post',
    path: '/rehearsal/exits',
    tag: 'Prices',
    summary: 'Fire the due exits of a rehearsal',
    description:
      'Runs a cycle of the keeper, after the runner of a rehearsal has moved the market. Until somebody trades, the next one has nothing to do at prices that wake no exit and no order.',
    requestKind: 'reads',
    waits: true,
    output: z.object({
      waking: z
        .object({
          prices: z.array(z.object({ token: addressOut, below: digitsOrNull, above: digitsOrNull })),
          time: unixSeconds('When the next cycle has something to do at any price'),
        })
        .nullable()
        .describe('Null if the next cycle may have something to do at once'),
    }),
    errors: [502, 503],
  },
  async ({ keeper, history }: Pick<Context, 'history' | 'keeper'>) => {
    await history.catchUp() // tells the keeper what has happened since the last bar
    await keeper?.runCycle()
    const waking = await keeper?.waking()
    if (waking === undefined) return { waking: null }
    const prices = waking.prices.map(({ token, below, above }) => ({
      token,
      below: textOrNull(below),
      above: textOrNull(above),
    }))
    return { waking: { prices, time: `${waking.time}` } }
  },
)

/**
 * Asks the runner to move its market; resolves when it is the agent's turn again. Throws AGENT_NOT_FOUND or
 * INVALID_REQUEST.
 */
async function advance(
  url: string | undefined,
  { agentId, until }: { agentId?: bigint | undefined; until?: bigint | undefined },
): Promise<Moment> {
  if (url === undefined) throw refuse('UNKNOWN_PATH', { path: '/rehearsal/advance' })
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({ agentId: agentId?.toString(), until: until === undefined ? undefined : Number(until) }),
  })
  const body = await response.json<Moment & { problem?: string }>()
  if (response.ok) return body
  if (response.status === 404) throw refuse('AGENT_NOT_FOUND', { agentId: agentId ?? 0n })
  throw malformed(body.problem ?? 'the rehearsal refused it')
}

/** Returns the trades of an agent after a block, oldest first. */
async function readTrades({ trading, history }: HistoryContext, agentId: bigint, block: bigint) {
  const { trades } = await history.trades({ agentId, limit: MAX_TRADES })
  const since = trades.filter(({ blockNumber }: Trade) => blockNumber > block).reverse()
  const symbolOf = await symbolsOf(trading, since)
  return since.map(each => presentTrade(each, symbolOf(each.token)))
}
