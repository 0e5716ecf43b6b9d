import type { Hex } from 'viem'

/** Why an exit waits although nothing has failed. */
export type Deferral = 'priceStale' | 'marketClosed' | 'tradingPaused'

/** The last result for a position's exits. Times are Unix seconds of the chain. */
export type ExitOutcome =
  | { kind: 'notReached'; at: string }
  /** For an exit that someone else fired, `transactionHash` and `usdcOut` are absent if the node does not serve its event. */
  | {
      kind: 'executed'
      firedBy: 'keeper' | 'others'
      at: string
      ruleIndex: number
      transactionHash?: Hex
      usdcOut?: string
    }
  | { kind: 'deferred'; at: string; reason: Deferral }
  | { kind: 'failed'; at: string; code: string; message: string; nextTryAt: string }
