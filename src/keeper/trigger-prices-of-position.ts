import { TriggerType } from '@agent-trading-service/protocol/enums'
import { triggerPriceOf } from '@agent-trading-service/protocol/exit-triggers'
import type { WatchedPosition } from '@agent-trading-service/protocol/position'

/** Prices (8 decimals) at or below and at or above which a pending rule may fire; undefined without such a rule. */
export type PriceTriggers = { below: bigint | undefined; above: bigint | undefined }

/** A PnL is truncated to whole bps, so a rule may fire up to one bps before its trigger price. */
const MARGIN_BPS = 1n

/** Returns the first prices at which a position's pending rules may fire, never later than the router fires them. */
export function priceTriggersOf(position: WatchedPosition, decimals: number): PriceTriggers {
  const triggers: PriceTriggers = { below: undefined, above: undefined }
  if (position.tokenAmount === 0n) return triggers
  for (const rule of position.exitRules.slice(position.nextRuleIndex)) {
    const isStopLoss = rule.triggerType === TriggerType.StopLoss
    const triggerBps = isStopLoss ? rule.triggerBps + MARGIN_BPS : rule.triggerBps - MARGIN_BPS
    const price = triggerPriceOf({ ...rule, triggerBps }, position, decimals)
    if (isStopLoss) triggers.below = triggers.below === undefined || price > triggers.below ? price : triggers.below
    else triggers.above = triggers.above === undefined || price < triggers.above ? price : triggers.above
  }
  return triggers
}
