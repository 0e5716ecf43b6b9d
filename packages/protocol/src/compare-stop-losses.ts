import { TriggerType } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'

const BPS = 10_000n
/** A whole position; the shares that five rules leave of it are exact. */
const WHOLE = BPS ** 5n

/**
 * Whether the stop-losses of `rules` leave at most as much of the position, at every price, as the stop-losses of `previous`: each
 * is replaced by stops at the same price or earlier that together sell as much. Take-profits do not count.
 */
export const protectsAsWellAs = (rules: readonly ExitRule[], previous: readonly ExitRule[]): boolean =>
  stopsOf(previous).every(({ triggerBps }) => leftAt(rules, triggerBps) <= leftAt(previous, triggerBps))

/** Returns what is left of `WHOLE` once every stop-loss that is met at the PnL has fired. */
const leftAt = (rules: readonly ExitRule[], pnlBps: bigint): bigint =>
  stopsOf(rules)
    .filter(({ triggerBps }) => pnlBps <= triggerBps)
    .reduce((left, { exitBps }) => (left / BPS) * (BPS - BigInt(exitBps)), WHOLE)

const stopsOf = (rules: readonly ExitRule[]) => rules.filter(({ triggerType }) => triggerType === TriggerType.StopLoss)
