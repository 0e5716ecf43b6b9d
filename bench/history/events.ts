import type { Address, Hex } from 'viem'
import type { Rows } from '../../src/history/store.ts'
import { TRADE_TYPES, type Trade } from '../../src/protocol/trade-events.ts'

// Synthetic events: one trade a block, of one agent after the other, each position opened, changed and closed in turn.

export const AGENTS = 20
/** Trades of one position. */
const LIFE = 4
export const SCOPE = 'bench'
const address = (prefix: string, id: number): Address => `0x${prefix}${`${id}`.padStart(40 - prefix.length, '0')}`
export const TOKENS = Array.from({ length: 10 }, (_, index) => address('70ce', index))
const VAULT = address('7a', 1)
export const hashOf = (block: number): Hex => `0x${block.toString(16).padStart(64, '0')}`

/** The position of a block's trade, its agent, and which trade of the position it is. */
export function placeOf(block: number): { positionId: number; agentId: number; turn: number } {
  const round = Math.floor((block - 1) / (AGENTS * LIFE))
  const inRound = (block - 1) % (AGENTS * LIFE)
  const agent = inRound % AGENTS
  return { positionId: round * AGENTS + agent + 1, agentId: agent + 1, turn: Math.floor(inRound / AGENTS) }
}

/** The rows of the blocks from one to another, both included. */
export function rowsOf(from: number, to: number): Rows {
  const rows: Rows = { trades: [], positions: [], agents: [], prices: [], events: [], blocks: [] }
  for (let block = from; block <= to; block++) {
    const { positionId, agentId, turn } = placeOf(block)
    const token = TOKENS[positionId % TOKENS.length] as Address
    const trade: Trade = {
      ...{ agentId: BigInt(agentId), positionId: BigInt(positionId), token, vault: VAULT, source: 'intent' },
      type: TRADE_TYPES[turn] as Trade['type'],
      ...{ blockNumber: BigInt(block), logIndex: 3, transactionHash: hashOf(block), timestamp: BigInt(block) },
      ...(turn < 3 && { usdcAmount: 250_000_000n, tokenAmount: 1_387_000_000_000_000_000n, priceUsdc: 180_250_000n }),
      ...(turn > 1 && { realizedPnlUsdc: -1_250_000n, exitBps: 10_000 }),
    }
    rows.trades.push(trade)
    if (turn === 0) rows.positions.push({ positionId, agentId, token, vault: VAULT, block, openedAt: block })
  }
  return rows
}
