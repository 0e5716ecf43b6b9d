import type { Hex } from 'viem'
import type { RevertibleTable } from './table.ts'

/** A file about one week of an agent, and its state on chain. `value` is parts per million. */
export type FeedbackRow = {
  agentId: number
  weekStart: number
  erc8004AgentId: string
  value: number
  /** Exactly what is served. Its keccak256 is `hash`. */
  content: string
  hash: Hex
  /** A block before it can have been posted. */
  createdBlock: number
}

/** Feedback is about final blocks, so there is nothing to undo. */
export const feedbackTable: RevertibleTable = { name: 'feedback', rollback: () => [] }
