import { TriggerType } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import type { WatchedPosition } from './position.ts'

const BPS = 10_000n

/** The farthest trigger: the position manager packs it into 24 signed bits. */
export const MAX_TRIGGER_BPS = 8_388_607n

/** Whether a PnL in bps triggers a rule: a StopLoss at or below its trigger, a TakeProfit at or above it. */
export const isTriggered = ({ triggerType, triggerBps }: ExitRule, pnl: bigint): boolean =>
  triggerType === TriggerType.StopLoss ? pnl <= triggerBps : pnl >= triggerBps

/** Returns the price that triggers a rule: the highest one for a StopLoss, the lowest one for a TakeProfit. */
export function triggerPriceOf(
  { triggerType, triggerBps }: ExitRule,
  position: WatchedPosition,
  decimals: number,
): bigint {
  const { dueExit, entryPriceUsdc, usdcCostBasis, tokenAmount } = position
  const [paid, tokens] =
    dueExit === undefined ? [entryPriceUsdc, 1n] : [usdcCostBasis * 10n ** BigInt(decimals), tokenAmount]
  const scaled = paid * 100n * (BPS + triggerBps)
  const divisor = BPS * tokens
  if (scaled <= 0n) return 0n
  return triggerType === TriggerType.StopLoss ? scaled / divisor : (scaled + divisor - 1n) / divisor
}

/** Returns the pending rules that a new ladder replaces by none of their kind: its stop-losses, or its take-profits. */
export const droppedRules = <Rule extends { triggerBps: bigint | number }>(
  pending: readonly Rule[],
  exits: readonly { triggerBps: bigint | number }[],
): Rule[] => pending.filter(rule => !exits.some(({ triggerBps }) => triggerBps < 0 === rule.triggerBps < 0))
