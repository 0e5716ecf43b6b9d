import { TriggerType } from './enums.ts'
import { FULL_EXIT_BPS } from './exit-ladder-validation.ts'
import type { ExitRule } from './exit-rule.ts'
import type { ExitBounds } from './vault-track-config.ts'

const DEFAULT_STOP_LOSS_BPS = 800n
const DEFAULT_TAKE_PROFIT_BPS = 1_500n

/** Returns a ladder within the bounds: one StopLoss and one TakeProfit that each sell everything. */
export function defaultLadder(bounds: ExitBounds): ExitRule[] {
  const atMost = (value: bigint, bound: bigint) => (bound > 0n && bound < value ? bound : value)
  const atLeast = (value: bigint, bound: bigint) => (bound > value ? bound : value)
  const stopLossBps = atMost(DEFAULT_STOP_LOSS_BPS, bounds.maxStopLossBps)
  const takeProfitBps = atMost(atLeast(DEFAULT_TAKE_PROFIT_BPS, bounds.minTakeProfitBps), bounds.maxTakeProfitBps)
  return [
    { triggerType: TriggerType.StopLoss, triggerBps: -stopLossBps, exitBps: FULL_EXIT_BPS },
    { triggerType: TriggerType.TakeProfit, triggerBps: takeProfitBps, exitBps: FULL_EXIT_BPS },
  ]
}
