import type { TrackConfig } from '../chain/listings.ts'
import type { ExitRule } from './typed-data.ts'

export const MAX_RULES = 5
export const STOP_LOSS = 0
export const TAKE_PROFIT = 1
// The position manager packs a trigger into 24 signed bits.
const MAX_TRIGGER_BPS = 8_388_607n

export type ExitBounds = Pick<
  TrackConfig,
  'maxStopLossBps' | 'minTakeProfitBps' | 'maxTakeProfitBps' | 'requireStopLoss' | 'requireTakeProfit'
>

/** What is wrong with a ladder: the rule's index where one rule is at fault, and the bound that it breaks. */
export type LadderProblem = { problem: string; ruleIndex?: number; limit?: string; given?: string }

/** The shape that every ladder must have (protocol.md, "Rules"), or what is wrong with it. */
export function shapeProblem(exits: readonly ExitRule[], firedRules = 0): LadderProblem | undefined {
  if (exits.length === 0) return { problem: 'it has no rules' }
  if (firedRules + exits.length > MAX_RULES)
    return {
      problem: firedRules === 0 ? 'it has too many rules' : 'the rules that fired and the new ones are too many',
      limit: `${MAX_RULES}`,
      given: `${firedRules + exits.length}`,
    }
  let deepestStop: bigint | undefined
  let highestTake: bigint | undefined
  for (const [ruleIndex, { triggerType, triggerBps, exitBps }] of exits.entries()) {
    const at = { ruleIndex, given: `${triggerBps}` }
    if (exitBps < 1 || exitBps > 10_000)
      return { problem: 'exitBps must be 1 to 10000', ruleIndex, given: `${exitBps}`, limit: '10000' }
    if (triggerType === STOP_LOSS) {
      if (triggerBps >= 0n) return { problem: 'a StopLoss needs a negative triggerBps', ...at }
      if (deepestStop !== undefined && triggerBps >= deepestStop)
        return { problem: 'each StopLoss must be deeper than the one before', ...at, limit: `${deepestStop}` }
      deepestStop = triggerBps
    } else {
      if (triggerBps <= 0n) return { problem: 'a TakeProfit needs a positive triggerBps', ...at }
      if (highestTake !== undefined && triggerBps <= highestTake)
        return { problem: 'each TakeProfit must be higher than the one before', ...at, limit: `${highestTake}` }
      highestTake = triggerBps
    }
  }
  if (exits.at(-1)?.exitBps !== 10_000)
    return {
      problem: 'the last rule must exit everything that is left',
      ruleIndex: exits.length - 1,
      given: `${exits.at(-1)?.exitBps}`,
      limit: '10000',
    }
  return undefined
}

/** What the track's exit bounds refuse about a well-shaped ladder. */
export function boundsProblem(exits: readonly ExitRule[], bounds: ExitBounds): LadderProblem | undefined {
  for (const [ruleIndex, { triggerType, triggerBps }] of exits.entries()) {
    const at = { ruleIndex, given: `${triggerBps}` }
    const distance = triggerBps < 0n ? -triggerBps : triggerBps
    if (distance > MAX_TRIGGER_BPS) return { problem: 'the trigger is too far', ...at, limit: `${MAX_TRIGGER_BPS}` }
    if (triggerType === STOP_LOSS && bounds.maxStopLossBps > 0n && distance > bounds.maxStopLossBps)
      return { problem: 'the StopLoss is deeper than maxStopLossBps', ...at, limit: `-${bounds.maxStopLossBps}` }
    if (triggerType === TAKE_PROFIT && bounds.minTakeProfitBps > 0n && distance < bounds.minTakeProfitBps)
      return { problem: 'the TakeProfit is below minTakeProfitBps', ...at, limit: `${bounds.minTakeProfitBps}` }
    if (triggerType === TAKE_PROFIT && bounds.maxTakeProfitBps > 0n && distance > bounds.maxTakeProfitBps)
      return { problem: 'the TakeProfit is above maxTakeProfitBps', ...at, limit: `${bounds.maxTakeProfitBps}` }
  }
  if (bounds.requireStopLoss && !exits.some(({ triggerType }) => triggerType === STOP_LOSS))
    return { problem: 'the track requires a StopLoss' }
  if (bounds.requireTakeProfit && !exits.some(({ triggerType }) => triggerType === TAKE_PROFIT))
    return { problem: 'the track requires a TakeProfit' }
  return undefined
}

/** PnL in bps of a price (8 decimals) against an entry price (USDC base units), truncated towards zero. */
export function pnlBps(price: bigint, entryPriceUsdc: bigint): bigint {
  const entry = entryPriceUsdc * 100n
  return entry === 0n ? 0n : ((price - entry) * 10_000n) / entry
}

/** Whether a rule's trigger is met at a PnL: a StopLoss at or below it, a TakeProfit at or above it. */
export const isTriggered = ({ triggerType, triggerBps }: ExitRule, pnl: bigint): boolean =>
  triggerType === STOP_LOSS ? pnl <= triggerBps : pnl >= triggerBps

/** A ladder that fits the bounds: a stop-loss and a take-profit that each sell everything. */
export function defaultExit(bounds: ExitBounds): ExitRule[] {
  const lower = (a: bigint, bound: bigint) => (bound > 0n && bound < a ? bound : a)
  const stop = lower(800n, bounds.maxStopLossBps)
  const take = lower(bounds.minTakeProfitBps > 1500n ? bounds.minTakeProfitBps : 1500n, bounds.maxTakeProfitBps)
  return [
    { triggerType: STOP_LOSS, triggerBps: -stop, exitBps: 10_000 },
    { triggerType: TAKE_PROFIT, triggerBps: take, exitBps: 10_000 },
  ]
}
