import { TRADE_TYPES } from '@agent-trading-service/protocol/trade-events'
import { z } from 'zod'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import { agentParams } from '../resources/agent.ts'
import { pageLimit, positionId, presentAsOf } from '../resources/primitives.ts'
import { presentTrade, presentTradeCursor, tradeCursor, tradeList } from '../resources/trade.ts'
import { defineOperation } from './define-operation.ts'

export const getTradeHistory = defineOperation(
  {
    id: 'getTradeHistory',
    tool: {
      name: 'svc_get_trade_history',
      set: 'history',
      description:
        'Lists the trades of an agent, newest first; filter by type, symbol or positionId. Example: {"agentId":"1","type":"ExitExecuted"}',
    },
    method: 'get',
    path: '/agents/{agentId}/trades',
    tag: 'Positions',
    summary: 'List trades',
    description:
      'Returns one record per open, add, reduce, ladder change, exit and force-close, or part of one, newest first, with amounts, price and realized PnL. Complete up to the block of `asOf`. `type`, `symbol` and `positionId` filter the list; `cursor` continues a previous page. Over HTTP, `format=csv` (or `Accept: text/csv`) returns the trades as CSV, with the next page in the `Link` header.',
    params: agentParams,
    query: z.object({
      limit: pageLimit,
      cursor: tradeCursor.optional(),
      type: z.enum(TRADE_TYPES).optional(),
      symbol: z.string().min(1).optional().meta({ example: 'NVDA' }),
      positionId: positionId.optional(),
    }),
    csv: 'trades',
    cache: 'none',
    status: 200,
    output: tradeList,
    errors: [404, 502, 503],
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
      nextCursor: next ? presentTradeCursor(next) : null,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)
