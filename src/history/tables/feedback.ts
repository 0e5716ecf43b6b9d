import type { Hex } from 'viem'
import type { RevertibleTable } from './table.ts'

/** A feedback file: one week of an agent, with its state on chain. `value` is in parts per million. */
export type FeedbackRow = {
  agentId: number
  weekStart: number
  erc8004AgentId: string
  value: number
  /** The exact content that is served. Its keccak256 is `hash`. */
  content: string
  hash: Hex
  /** A block before which it cannot have been posted. */
  createdBlock: number
}

/** Feedback is about final blocks, so there is nothing to undo. */
export const feedbackTable: RevertibleTable = { name: 'feedback', rollback: () => [] }
