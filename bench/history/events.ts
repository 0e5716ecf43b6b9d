import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { TRADE_TYPES, type Trade } from '@agent-trading-service/protocol/trade-events'
import type { Address, Hex } from 'viem'
import type { IndexRows } from '../../src/history/store.ts'
import { openedPositions } from '../../src/history/tables/positions.ts'

// Synthetic events: each block has one trade, and agents trade in turn. Each position is opened, increased, reduced and
// closed.

export const AGENTS = 20
const TRADES_PER_POSITION = 4
export const INDEX_KEY = 'bench'
const address = (prefix: string, id: number): Address => `0x${prefix}${`${id}`.padStart(40 - prefix.length, '0')}`
export const TOKENS = Array.from({ length: 10 }, (_, index) => address('70ce', index))
const VAULT = address('7a', 1)
export const hashOf = (block: number): Hex => `0x${block.toString(16).padStart(64, '0')}`

/** Returns the position and agent of a block's trade, and the index of the trade within the position. */
export function tradeAt(block: number): { positionId: number; agentId: number; tradeIndex: number } {
  const generation = Math.floor((block - 1) / (AGENTS * TRADES_PER_POSITION))
  const offset = (block - 1) % (AGENTS * TRADES_PER_POSITION)
  const agent = offset % AGENTS
  return {
    positionId: generation * AGENTS + agent + 1,
    agentId: agent + 1,
    tradeIndex: Math.floor(offset / AGENTS),
  }
}

/** Returns the rows of an inclusive range of blocks. */
export function rowsOf(from: number, to: number): IndexRows {
  const trades: Trade[] = []
  for (let block = from; block <= to; block++) trades.push(tradeOf(block))
  return { trades, positions: openedPositions(trades), agents: [], prices: [], events: [], blocks: [] }
}

function tradeOf(block: number): Trade {
  const { positionId, agentId, tradeIndex } = tradeAt(block)
  return {
    agentId: BigInt(agentId),
    positionId: BigInt(positionId),
    token: TOKENS[positionId % TOKENS.length] as Address,
    vault: VAULT,
    capitalMode: CapitalMode.Real,
    source: 'intent',
    type: TRADE_TYPES[tradeIndex] as Trade['type'],
    blockNumber: BigInt(block),
    logIndex: 3,
    transactionHash: hashOf(block),
    timestamp: BigInt(block),
    ...(tradeIndex < 3 && {
      usdcAmount: 250_000_000n,
      tokenAmount: 1_387_000_000_000_000_000n,
      priceUsdc: 180_250_000n,
    }),
    ...(tradeIndex > 1 && { realizedPnlUsdc: -1_250_000n, exitBps: 10_000 }),
  }
}
