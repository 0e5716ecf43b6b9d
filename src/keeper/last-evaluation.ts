import type { WatchedPosition } from '@agent-trading-service/protocol/position'
import type { WatchedPositions } from '../chain/watched-positions.ts'

/** What the keeper saw at one block: the price has 8 decimals, `at` is the block's time in Unix seconds. */
export type Evaluation = { blockNumber: string; price: string; at: string }

/** Returns what a cycle saw of a position. */
export const evaluationOf = ({ block, marketOf }: WatchedPositions, position: WatchedPosition): Evaluation => ({
  blockNumber: `${block.number}`,
  price: `${marketOf(position).quote.price}`,
  at: `${block.timestamp}`,
})
