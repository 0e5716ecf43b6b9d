import { TriggerType } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { MAX_TRIGGER_BPS } from './exit-triggers.ts'
import type { ExitBounds } from './vault-track-config.ts'

/** The position manager stores at most this many rules per position, fired ones included. */
const MAX_RULES = 5
/** The `exitBps` of a rule that sells everything that is left. */
export const FULL_EXIT_BPS = 10_000

/** What is wrong with a ladder; with the rule's index, its value and the limit where they apply. */
export type LadderProblem = {
  problem: string
  ruleIndex?: number
  given?: bigint
  limit?: bigint
}

/** Returns what is wrong with the shape of a ladder (protocol.md, "Rules"); undefined if it is valid. */
export function findShapeProblem(exits: readonly ExitRule[], firedRules = 0): LadderProblem | undefined {
  if (exits.length === 0) return { problem: 'it has no rules' }
  const ruleCount = firedRules + exits.length
  if (ruleCount > MAX_RULES)
    return {
      problem: firedRules === 0 ? 'it has too many rules' : 'the fired and the new rules together are too many',
      given: BigInt(ruleCount),
      limit: BigInt(MAX_RULES),
    }
  let deepestStop: bigint | undefined
  let highestTake: bigint | undefined
  for (const [ruleIndex, { triggerType, triggerBps, exitBps }] of exits.entries()) {
    if (exitBps < 1 || exitBps > FULL_EXIT_BPS)
      return {
        problem: 'exitBps must be from 1 to 10000',
        ruleIndex,
        given: BigInt(exitBps),
        limit: BigInt(FULL_EXIT_BPS),
      }
    const rule = { ruleIndex, given: triggerBps }
    if (triggerType === TriggerType.StopLoss) {
      if (triggerBps >= 0n) return { problem: 'a StopLoss needs a negative triggerBps', ...rule }
      if (deepestStop !== undefined && triggerBps >= deepestStop)
        return { problem: 'each StopLoss must be deeper than the one before', ...rule, limit: deepestStop }
      deepestStop = triggerBps
    } else {
      if (triggerBps <= 0n) return { problem: 'a TakeProfit needs a positive triggerBps', ...rule }
      if (highestTake !== undefined && triggerBps <= highestTake)
        return { problem: 'each TakeProfit must be higher than the one before', ...rule, limit: highestTake }
      highestTake = triggerBps
    }
  }
  const lastExitBps = exits.at(-1)?.exitBps ?? 0
  if (lastExitBps !== FULL_EXIT_BPS)
    return {
      problem: 'the last rule must exit everything that is left',
      ruleIndex: exits.length - 1,
      given: BigInt(lastExitBps),
      limit: BigInt(FULL_EXIT_BPS),
    }
  return undefined
}

/** The track's bounds; with the extension, a required StopLoss counts only if one StopLoss sells everything. */
export type LadderBounds = ExitBounds & { stopsMustSellAll: boolean }

/** Returns which of the track's exit bounds a ladder of valid shape breaks; undefined if none. */
export function findBoundsProblem(exits: readonly ExitRule[], bounds: LadderBounds): LadderProblem | undefined {
  const { maxStopLossBps, minTakeProfitBps, maxTakeProfitBps } = bounds
  for (const [ruleIndex, { triggerType, triggerBps }] of exits.entries()) {
    const rule = { ruleIndex, given: triggerBps }
    const distance = triggerBps < 0n ? -triggerBps : triggerBps
    if (distance > MAX_TRIGGER_BPS) return { problem: 'the trigger is too far', ...rule, limit: MAX_TRIGGER_BPS }
    if (triggerType === TriggerType.StopLoss && maxStopLossBps > 0n && distance > maxStopLossBps)
      return { problem: 'the StopLoss is deeper than maxStopLossBps', ...rule, limit: -maxStopLossBps }
    if (triggerType === TriggerType.TakeProfit && minTakeProfitBps > 0n && distance < minTakeProfitBps)
      return { problem: 'the TakeProfit is below minTakeProfitBps', ...rule, limit: minTakeProfitBps }
    if (triggerType === TriggerType.TakeProfit && maxTakeProfitBps > 0n && distance > maxTakeProfitBps)
      return { problem: 'the TakeProfit is above maxTakeProfitBps', ...rule, limit: maxTakeProfitBps }
  }
  const stops = exits.filter(({ triggerType }) => triggerType === TriggerType.StopLoss)
  if (bounds.requireStopLoss && stops.length === 0) return { problem: 'the track requires a StopLoss' }
  if (bounds.requireStopLoss && bounds.stopsMustSellAll && stops.every(({ exitBps }) => exitBps < FULL_EXIT_BPS))
    return { problem: 'the track requires that one StopLoss sells everything that is left' }
  if (bounds.requireTakeProfit && !exits.some(({ triggerType }) => triggerType === TriggerType.TakeProfit))
    return { problem: 'the track requires a TakeProfit' }
  return undefined
}

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
