import type { Hex } from 'viem'

/** Why an exit waits although nothing has failed. */
export type Deferral = 'priceStale' | 'marketClosed' | 'tradingPaused'

/** An exit that the pool does not fill, or fills only in part. It is tried again at `nextTryAt`. */
type WaitingForPool =
  | {
      kind: 'partlyExecuted'
      at: string
      /** Absent for a position that the agent's owner closes. */
      ruleIndex?: number
      transactionHash: Hex
      usdcOut: string
      /** The amount that stays due, in the token's base units. */
      tokensLeft: string
      nextTryAt: string
    }
  /** The pool's price is below the exit's floor, or too far from the oracle's. */
  | { kind: 'deferred'; at: string; reason: 'poolPrice'; nextTryAt: string }

/** The last result for a position's exits. Times are Unix seconds of the chain. */
export type ExitOutcome =
  | { kind: 'notReached'; at: string }
  /** For a position that the agent's owner closed, `ruleIndex` is absent. For an exit that someone else fired, `transactionHash` and `usdcOut` are absent if the node does not serve its event. */
  | {
      kind: 'executed'
      firedBy: 'keeper' | 'others'
      at: string
      ruleIndex?: number
      transactionHash?: Hex
      usdcOut?: string
    }
  | { kind: 'deferred'; at: string; reason: Deferral }
  | WaitingForPool
  | { kind: 'failed'; at: string; code: string; message: string; nextTryAt: string }
