import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Address } from 'viem'
import { type OpenPosition, readOpenPositions } from '../history/tables/positions.ts'

/** A token in a vault, and the agents of the open positions in it by the position's id. */
export type HeldMarket = { vault: Address; token: Address; agents: Map<bigint, number> }

/** Holds the open positions at the log's position. They are read once; trades and reorgs change them from then on. */
export function createOpenPositions(db: D1Database) {
  let positions: Map<bigint, OpenPosition> | undefined
  const markets = new Map<string, HeldMarket>()
  /** Agents with trades that a reorg withdrew. */
  const outdatedAgents = new Set<number>()

  function add(position: OpenPosition) {
    const { positionId, agentId, vault, token } = position
    remove(positionId) // after a reorg, another agent may have the id
    const key = keyOf(position)
    const market = markets.get(key) ?? { vault, token, agents: new Map<bigint, number>() }
    markets.set(key, market)
    market.agents.set(positionId, agentId)
    positions?.set(positionId, position)
  }

  function remove(positionId: bigint) {
    const position = positions?.get(positionId)
    if (position === undefined) return
    positions?.delete(positionId)
    const market = markets.get(keyOf(position))
    market?.agents.delete(positionId)
    if (market?.agents.size === 0) markets.delete(keyOf(position))
  }

  return {
    /** Updates the open positions. The trades are in order. */
    applyTrades(trades: readonly Trade[]) {
      if (positions === undefined) return
      for (const { type, positionId, agentId, token, vault } of trades) {
        if (type === 'PositionOpened') add({ positionId, agentId: Number(agentId), token, vault })
        if (type === 'PositionClosed') remove(positionId)
      }
    },

    /** Forgets the positions of agents, or all of them. A reorg may have opened or closed some. */
    forget(agentIds: readonly number[] | 'all') {
      if (agentIds === 'all') positions = undefined
      else for (const agentId of agentIds) outdatedAgents.add(agentId)
    },

    /** Returns the markets with open positions after block `through`, the log's position. Reads what is not known. */
    async markets(through: number): Promise<readonly HeldMarket[]> {
      if (positions === undefined) {
        const all = await readOpenPositions(db, through)
        positions = new Map()
        markets.clear()
        for (const position of all) add(position)
      } else if (outdatedAgents.size > 0) {
        const theirs = await readOpenPositions(db, through, [...outdatedAgents])
        for (const { positionId, agentId } of positions.values()) if (outdatedAgents.has(agentId)) remove(positionId)
        for (const position of theirs) add(position)
      }
      outdatedAgents.clear()
      return [...markets.values()]
    },
  }
}

const keyOf = ({ vault, token }: Pick<OpenPosition, 'vault' | 'token'>) => `${vault} ${token}`
