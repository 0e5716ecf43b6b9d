import { TRADE_TYPES } from '@agent-trading-service/protocol/trade-events'
import { z } from 'zod'
import { chargeRowsRead } from '../call.ts'
import { getAgentNames } from '../chain/agents.ts'
import { vaultAddress } from '../chain/find-vault.ts'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import type { HistoryContext } from '../history/client.ts'
import { pageLimit, positionId, presentAsOf, vaultReference } from '../resources/primitives.ts'
import { presentTrade, presentTradeCursor, tradeCursor, tradeFeed, tradeList } from '../resources/trade.ts'
import { defineOperation } from './define-operation.ts'

const pageOfTrades = {
  limit: pageLimit,
  cursor: tradeCursor.optional(),
  type: z.enum(TRADE_TYPES).optional(),
  symbol: z.string().min(1).optional().meta({ example: 'NVDA' }),
}

export const listTrades = defineOperation(
  {
    id: 'listTrades',
    tool: {
      name: 'svc_list_trades',
      set: 'venue',
      description:
        'Lists the trades of all agents, newest first, with what they said about them; filter by vault, symbol or type. Example: {"vault":"genesis","symbol":"NVDA"}',
    },
    path: '/trades',
    tag: 'Positions',
    summary: 'List the trades of all agents',
    description:
      'Returns the trades of all agents, newest first, as `GET /agents/{agentId}/trades` does of one, with the name of each agent. `vault`, `symbol` and `type` filter the list; a page with filters looks through 500 trades, so it may be short and still have a next one. `GET /events` streams new ones.',
    query: z.object({ ...pageOfTrades, vault: vaultReference.optional().meta({ example: 'genesis' }) }),
    csv: 'trades',
    cache: 'etag',
    output: tradeFeed,
  },
  async ({ trading, history }: HistoryContext, { limit, cursor, type, symbol, vault: id }, call) => {
    const token = symbol === undefined ? undefined : await tokenBySymbol(trading, symbol)
    const vault = id === undefined ? undefined : await vaultAddress(trading, id)
    const { trades, next, asOf, lagBlocks, rowsRead } = await history.trades({
      limit,
      before: cursor,
      type,
      token,
      vault,
    })
    await chargeRowsRead(call, rowsRead)
    const [symbolOf, names] = await Promise.all([
      symbolsOf(trading, trades),
      getAgentNames(
        trading,
        trades.map(({ agentId }) => agentId),
      ),
    ])
    return {
      trades: trades.map(trade => ({
        ...presentTrade(trade, symbolOf(trade.token)),
        agentId: `${trade.agentId}`,
        agentName: names.get(`${trade.agentId}`) ?? '',
      })),
      nextCursor: next ? presentTradeCursor(next) : null,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)

export const getTradeHistory = defineOperation(
  {
    id: 'getTradeHistory',
    tool: {
      name: 'svc_get_trade_history',
      set: 'history',
      description:
        'Lists the trades of an agent, newest first; filter by type, symbol or positionId. Example: {"agentId":"1","type":"ExitExecuted"}',
    },
    path: '/agents/{agentId}/trades',
    tag: 'Positions',
    summary: 'List trades',
    description:
      'Returns one record per open, add, reduce, ladder change, exit and force-close, or part of one, newest first, with amounts, price and realized PnL. Complete up to the block of `asOf`. `type`, `symbol` and `positionId` filter the list; `cursor` continues a previous page. Over HTTP, `format=csv` (or `Accept: text/csv`) returns the trades as CSV, with the next page in the `Link` header.',
    query: z.object({ ...pageOfTrades, positionId: positionId.optional() }),
    csv: 'trades',
    output: tradeList,
  },
  async ({ trading, history }: HistoryContext, { agentId, limit, cursor, type, symbol, positionId }, call) => {
    const token = symbol === undefined ? undefined : await tokenBySymbol(trading, symbol)
    const query = { agentId, limit, before: cursor, type, token, positionId }
    const { trades, next, asOf, lagBlocks, rowsRead } = await history.trades(query)
    await chargeRowsRead(call, rowsRead)
    const symbolOf = await symbolsOf(trading, trades)
    return {
      agentId: `${agentId}`,
      trades: trades.map(trade => presentTrade(trade, symbolOf(trade.token))),
      nextCursor: next ? presentTradeCursor(next) : null,
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)
