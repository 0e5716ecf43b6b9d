/** A rule of an exit ladder, as the contracts encode it. */
export type ExitRule = {
  /** A `TriggerType`. */
  triggerType: number
  /** PnL against the entry price: negative for a StopLoss, positive for a TakeProfit. */
  triggerBps: bigint
  /** Share of the remaining tokens to sell. */
  exitBps: number
}
