import { env } from 'cloudflare:workers'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { formatUnits } from 'viem'
import { z } from 'zod'
import { readTree } from '../chain/read-tree.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { ORACLE_DECIMALS } from '../resources/price.ts'
import { asOf, presentAsOf, uint, unixSeconds } from '../resources/primitives.ts'
import { presentTrade, trade } from '../resources/trade.ts'
import { defineOperation } from './define-operation.ts'
import type { Operation } from './operation.ts'

/** What the rehearsal says about its market; after `settle` it waits for the keeper's work and is asked again. */
type Moment = { time: number; isOver: boolean; settle: boolean }

const MAX_TRADES = 100

const advanceMarket = defineOperation(
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
      until: uint.optional().meta({ description: "Unix seconds of the chain's time; the next bar by default" }),
    }),
    bodyIsOptional: true,
    cache: 'none',
    rateLimit: 'reads',
    waits: true,
    status: 200,
    output: z.object({
      time: unixSeconds("The market's time: that of its last bar"),
      isOver: z.boolean().meta({ description: 'Whether that was the last bar' }),
      prices: z.record(z.string(), z.string()).meta({ description: 'US dollars by symbol' }),
      trades: z.array(trade).meta({ description: "The agent's trades since its call, oldest first" }),
      asOf,
    }),
    errors: [404, 502, 503],
  },
  async (context, { agentId, until }) => {
    const { trading, keeper, config } = context
    const { block: before } = await readTree(trading, [])
    let blocks = before.number
    let moment = await ask(config.rehearsalUrl, { agentId, until })
    while (moment.settle) {
      blocks++
      await keeper?.runCycle()
      moment = await ask(config.rehearsalUrl, { agentId, until })
    }
    const { time, isOver } = moment
    const { block, registered } = await readVaultsAndTokens(trading)
    return {
      time: `${time}`,
      isOver,
      prices: Object.fromEntries(
        registered.tokens.map(({ symbol, address }) => [
          symbol,
          formatUnits(registered.quoteIn(address).price, ORACLE_DECIMALS),
        ]),
      ),
      // Without further blocks nobody has traded.
      trades: agentId && block.number > blocks ? await tradesSince(context, agentId, before.number) : [],
      asOf: presentAsOf(block),
    }
  },
)

/** The operations that only a rehearsal has. */
export const rehearsalOperations: readonly Operation[] = 'REHEARSAL_URL' in env ? [advanceMarket] : []

/** Asks the rehearsal to move its market; resolves when it is the agent's turn again. */
async function ask(
  url: string | undefined,
  question: { agentId?: bigint | undefined; until?: bigint | undefined },
): Promise<Moment> {
  if (url === undefined) throw refuse('UNKNOWN_PATH', { path: '/rehearsal/advance' })
  const { agentId, until } = question
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({ agentId: agentId?.toString(), until: until === undefined ? undefined : Number(until) }),
  })
  const body = await response.json<Moment & { problem?: string }>()
  if (response.ok) return body
  if (response.status === 404) throw refuse('AGENT_NOT_FOUND', { agentId: agentId ?? 0n })
  throw refuse('INVALID_REQUEST', { problem: body.problem ?? 'the rehearsal refused it' })
}

async function tradesSince({ trading, history }: Context, agentId: bigint, block: bigint) {
  const { trades } = await history.trades(trading, { agentId, limit: MAX_TRADES })
  const since = trades.filter(({ blockNumber }: Trade) => blockNumber > block).reverse()
  const symbolOf = await symbolsOf(
    trading,
    since.map(({ token }) => token),
  )
  return since.map(each => presentTrade(each, symbolOf(each.token)))
}
