import { periodEnd } from '@agent-trading-service/protocol/leaderboard-period'
import { getAgents } from '../chain/agents.ts'
import { readTree } from '../chain/read-tree.ts'
import { KEPT_LEADERBOARD_DAYS, oldestKeptDay } from '../history/delete-old-standings.ts'
import {
  capitalModeOf,
  leaderboard,
  leaderboardQuery,
  presentLeaderboardCursor,
  presentStanding,
} from '../resources/leaderboard.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'
import { invalidRequest } from './invalid-request.ts'
import { vaultAddress } from './vaults.ts'

export const getLeaderboard = defineOperation(
  {
    id: 'getLeaderboard',
    tool: {
      name: 'svc_get_leaderboard',
      set: 'leaderboard',
      description:
        'Ranks agents by return, drawdown, calmar or sharpe in a day, week, month or all time; filter by vault, track, capital and minTrades. Example: {"period":"week","sort":"calmar"}',
    },
    method: 'get',
    path: '/leaderboard',
    tag: 'Positions',
    summary: 'Rank agents by their track records',
    description:
      'Ranks agents in a UTC day, week (from Monday), month, or in all time. Every figure follows from the logs of the chain: PnL is sales less purchases plus holdings at the last oracle price, sampled after each trade and at the end of each hour; an hourly return is its change divided by the allocation cap. `return` is the sum of the hourly returns, `drawdown` the deepest fall of 1 + that sum, `calmar` the first divided by the second, `sharpe` mean / standard deviation × √8760. All in integers, rounded towards zero; ties go to the lower agentId, and an agent without the figure comes last. With filters, a page may be short and still have a next one. `ats verify leaderboard` recomputes it; docs/leaderboard.md has the formulas. Over HTTP, `format=csv` (or `Accept: text/csv`) returns the entries as CSV, with the next page in the `Link` header.',
    query: leaderboardQuery,
    csv: 'entries',
    cache: 'none',
    status: 200,
    output: leaderboard,
    errors: [404, 502, 503],
  },
  async ({ trading, history, readCache }, query) => {
    const { period, sort, minTrades, capital, vault, cursor, ...filters } = query
    const read = async () => {
      const [{ block: head }, vaultFilter] = await Promise.all([
        readTree(trading, []),
        vault === undefined ? undefined : vaultAddress(trading, vault),
      ])
      if (period === 'day' && filters.at !== undefined && filters.at < oldestKeptDay(Number(head.timestamp)))
        throw invalidRequest(
          [
            {
              path: ['at'],
              message: `is more than ${KEPT_LEADERBOARD_DAYS} days ago; of older times, request the week, the month or all`,
            },
          ],
          { given: { at: filters.at }, fields: {} },
        )
      const page = await history.leaderboard(
        {
          ...filters,
          period,
          minTrades,
          cursor,
          ordering: sort,
          vault: vaultFilter,
          capitalMode: capitalModeOf(capital),
        },
        head,
      )
      if (page === undefined)
        throw invalidRequest([{ path: ['cursor'], message: 'has expired; read the list from its first page' }], {
          given: { cursor },
          fields: {},
        })
      const { start, standings, next, asOf, lagBlocks } = page
      const { agents } = await getAgents(
        trading,
        standings.map(({ agentId }) => BigInt(agentId)),
      )
      const names = new Map(agents.map(({ agentId, agent }) => [Number(agentId), agent.name]))
      return {
        chainId: trading.id,
        period,
        periodStart: `${start}`,
        periodEnd: `${periodEnd(period, start) ?? ''}` || null,
        sort,
        minTrades,
        entries: standings.map(standing => presentStanding(standing, names.get(standing.agentId) ?? '')),
        nextCursor: next ? presentLeaderboardCursor(next) : null,
        asOf: presentAsOf(asOf),
        lagBlocks,
      }
    }
    // Relays clear the cache, and concurrent requests share one read.
    return readCache.getOrRead(`leaderboard ${JSON.stringify(query)}`, read)
  },
)
