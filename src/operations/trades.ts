import { z } from 'zod'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import { TRADE_TYPES } from '../protocol/trade-events.ts'
import { agentParams } from '../resources/agent.ts'
import { positionId } from '../resources/primitives.ts'
import { presentCursor, presentTrade, tradeCursor, tradeList } from '../resources/trade.ts'
import { defineOperation } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'

export const getTradeHistory = defineOperation(
  {
    id: 'getTradeHistory',
    tool: 'svc_get_trade_history',
    method: 'get',
    path: '/agents/{agentId}/trades',
    tag: 'Positions',
    summary: 'Trade history',
    description:
      'One record for each open, add, reduce, ladder change, exit and force close, newest first, with amounts, price and realized PnL; complete to the block of asOf. `type`, `symbol` and `positionId` leave only what they name; `cursor` goes on where a page ended. Over HTTP `format=csv` (or `Accept: text/csv`) answers the trades as CSV, with the next page in the `Link` header.',
    params: agentParams,
    query: z.object({
      limit: z.coerce.number<string | number>().int().min(1).max(100).default(50),
      cursor: tradeCursor.optional(),
      type: z.enum(TRADE_TYPES).optional(),
      symbol: z.string().min(1).optional().meta({ example: 'NVDA' }),
      positionId: positionId.optional(),
    }),
    csv: 'trades',
    status: 200,
    output: tradeList,
    errors: [400, 404, 502, 503],
  },
  async ({ trading, history }, { agentId, limit, cursor, type, symbol, positionId }) => {
    const token = symbol === undefined ? undefined : await tokenBySymbol(trading, symbol)
    const query = { agentId, limit, before: cursor, type, token, positionId }
    const { trades, next, asOf, lagBlocks } = await history.trades(trading, query)
    const symbolOf = await symbolsOf(
      trading,
      trades.map(({ token }) => token),
    )
    return {
      agentId: `${agentId}`,
      trades: trades.map(trade => presentTrade(trade, symbolOf(trade.token))),
      nextCursor: next ? presentCursor(next) : null,
      asOf: presentBlock(asOf),
      lagBlocks,
    }
  },
)
