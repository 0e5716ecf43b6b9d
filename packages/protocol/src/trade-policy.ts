/** The trade policy of a vault and track, as `limitsOf` of the TradePolicy returns it. A limit of 0 is no limit. */
export type TradePolicy = {
  maxEntrySlippageBps: bigint
  maxExitSlippageBps: bigint
  exitSlippageStartBps: bigint
  /** Seconds. */
  exitWideningSeconds: bigint
  /** USDC base units. */
  minTradeUsdc: bigint
  maxSpotDeviationBps: bigint
  maxTwapDeviationBps: bigint
  /** Seconds. */
  twapWindow: bigint
  /** Seconds. */
  maxDeadlineSeconds: bigint
}
