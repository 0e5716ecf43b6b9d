import { TriggerType } from './enums.ts'

/** A rule of an exit ladder, as the contracts encode it. */
export type ExitRule = {
  /** A `TriggerType`. */
  triggerType: number
  /** PnL against the entry price: negative for a StopLoss, positive for a TakeProfit. */
  triggerBps: bigint
  /** Share of the remaining tokens to sell. */
  exitBps: number
}

/**
 * A rule as people and programs write it: at `triggerBps` from the entry price (negative: stop-loss), sell `exitBps` of
 * what remains.
 */
export type LadderRule = { triggerBps: number; exitBps: number }

/** Returns a ladder as the contracts have it. */
export const toContractRules = (exits: readonly LadderRule[]): ExitRule[] =>
  exits.map(({ triggerBps, exitBps }) => ({
    triggerType: triggerBps < 0 ? TriggerType.StopLoss : TriggerType.TakeProfit,
    triggerBps: BigInt(triggerBps),
    exitBps,
  }))
