import { TriggerType } from '@agent-trading-service/protocol/enums'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { type InputSchema, losslessInput } from '@agent-trading-service/protocol/lossless-input'
import { losslessJson } from '@agent-trading-service/protocol/lossless-json'
import {
  PERCENT_TEXT,
  percentToBps,
  STOP_PERCENT_TEXT,
  stopPercentToBps,
  wholeExits,
} from '@agent-trading-service/protocol/percent'
import type { ExitBounds } from '@agent-trading-service/protocol/vault-track-config'
import { z } from 'zod'
import { malformed } from '../errors/refuse.ts'
import { present } from './present.ts'
import { bps } from './primitives.ts'

const MAX_EXIT_BPS = 10_000
const MAX_RULES = 5

/** An exit rule of a response. The specification allows only these three fields. */
export const exitRule = z
  .strictObject({
    triggerType: z.enum(['StopLoss', 'TakeProfit']),
    triggerBps: bps('Signed distance of the trigger from the entry price: negative for a StopLoss'),
    exitBps: z.int().min(1).max(MAX_EXIT_BPS).describe('Share of the remaining tokens to sell; basis points'),
  })
  .meta({ id: 'ExitRule' })

export const presentExitRule = ({ triggerType, triggerBps, exitBps }: ExitRule): z.input<typeof exitRule> => ({
  triggerType: triggerType === TriggerType.StopLoss ? 'StopLoss' : 'TakeProfit',
  triggerBps: Number(triggerBps),
  exitBps,
})

/** An exit rule of a request. The sign of triggerBps determines the type; a triggerType, if sent, must agree. */
const exitRuleInput = z
  .strictObject({
    triggerType: z.enum(['StopLoss', 'TakeProfit']).optional(),
    triggerBps: z
      .int()
      .refine(value => value !== 0, 'must not be zero: negative is a StopLoss, positive a TakeProfit')
      .describe('Distance from the entry price; bps: negative StopLoss, positive TakeProfit'),
    exitBps: exitRule.shape.exitBps,
  })
  .refine(
    ({ triggerType, triggerBps }) => triggerType === undefined || (triggerType === 'StopLoss') === triggerBps < 0,
    'triggerType contradicts the sign of triggerBps',
  )
  .meta({ id: 'ExitRuleInput' })

/** The exit ladder of a body. */
export const exits = z
  .array(exitRuleInput)
  .min(1)
  .max(MAX_RULES)
  .meta({
    description: 'The exit ladder: 1 to 5 rules in order; the last rule must exit 10000',
    example: [
      { triggerBps: -800, exitBps: 10000 },
      { triggerBps: 1500, exitBps: 10000 },
    ],
  })

export const toExitRules = (given: z.output<typeof exits>): ExitRule[] =>
  given.map(({ triggerBps, exitBps }) => ({
    triggerType: triggerBps < 0 ? TriggerType.StopLoss : TriggerType.TakeProfit,
    triggerBps: BigInt(triggerBps),
    exitBps,
  }))

/** The exit ladder of a query: JSON as in a body, or `-800:10000,1500:5000`. Parses to protocol exit rules. */
const exitsQuery = z
  .string()
  .max(1000)
  .transform((text, ctx): ExitRule[] => {
    const given = text.trimStart().startsWith('[') ? parseJson(text) : parsePairs(text)
    const result = exits.safeParse(given)
    if (result.success) return toExitRules(result.data)
    const pairs = text.trimStart().startsWith('[') ? toPairs(given) : text
    const problem = isPairs(pairs) ? `: ${result.error.issues[0]?.message}` : inBasisPoints(pairs)
    ctx.addIssue({ code: 'custom', message: `must be a ladder such as -800:10000,1500:10000${problem}` })
    return z.NEVER
  })
  .meta({
    description: 'Exit ladder as `triggerBps:exitBps` pairs or as JSON',
    example: '-800:10000,1500:10000',
    'x-list': 'json',
  })

/** A distance in percent, such as `8` or `2.5`; parses to basis points, exactly. */
export const percent = (toBps: (text: string) => number | undefined, accepted: string) =>
  z
    .string()
    .max(16)
    .transform((text, ctx): number => {
      const bps = toBps(text)
      if (bps !== undefined) return bps
      ctx.addIssue({ code: 'custom', message: `must be ${accepted}` })
      return z.NEVER
    })
    .meta({ pattern: '^.*[1-9].*$' })

/** A ladder in the query of a quote: `exits`, or one stop-loss and one take-profit that each sell everything. */
export const ladderQuery = {
  exits: exitsQuery.optional(),
  stopLossPercent: percent(stopPercentToBps, STOP_PERCENT_TEXT)
    .meta({ description: 'Instead of exits: stop-loss of everything; percent', example: '8' })
    .optional(),
  takeProfitPercent: percent(percentToBps, PERCENT_TEXT)
    .meta({ description: 'Take-profit of everything; percent', example: '15' })
    .optional(),
}

/** Returns the ladder that a query asks for; undefined if it names none. Throws INVALID_REQUEST if it names two. */
export function requestedLadder({
  exits,
  stopLossPercent,
  takeProfitPercent,
}: z.output<z.ZodObject<typeof ladderQuery>>): ExitRule[] | undefined {
  if (stopLossPercent === undefined && takeProfitPercent === undefined) return exits
  if (exits !== undefined)
    throw malformed('exits and stopLossPercent or takeProfitPercent both say where to sell: send one of them')
  return toExitRules(wholeExits(stopLossPercent, takeProfitPercent))
}

const listSchema = z.toJSONSchema(exits, { io: 'input' }) as InputSchema
const parseJson = (text: string): unknown => losslessInput(losslessJson(text), listSchema)

const PAIR = /^\s*(-?\d{1,9}):(\d{1,9})\s*$/
const isPairs = (text: string) => text.split(',').every(pair => PAIR.test(pair))

const toPairs = (ladder: unknown): string =>
  Array.isArray(ladder) ? ladder.map(rule => `${rule?.triggerBps}:${rule?.exitBps}`).join(',') : ''

/** Returns what to send instead of a ladder in percent; without percentages, what a ladder consists of. */
function inBasisPoints(text: string): string {
  const given = text.replaceAll(' ', '')
  const converted = given.replaceAll(/(-?\d{1,4}(?:\.\d{1,2})?)%/g, (_, percent) => `${Math.round(percent * 100)}`)
  const hint = converted !== given && isPairs(converted) ? `; send ${converted}` : ''
  return `, pairs of triggerBps:exitBps in basis points (10000 = 100 %)${hint}`
}

const parsePairs = (text: string): unknown =>
  text.split(',').map(pair => {
    const [, triggerBps, exitBps] = PAIR.exec(pair) ?? []
    return { triggerBps: Number(triggerBps), exitBps: Number(exitBps) }
  })

export const exitBounds = z
  .object({
    maxStopLossBps: bps('Deepest allowed stop-loss; 0 means no bound'),
    minTakeProfitBps: bps('Lowest allowed take-profit; 0 means no bound'),
    maxTakeProfitBps: bps('Highest allowed take-profit; 0 means no bound'),
    requireStopLoss: z.boolean(),
    requireTakeProfit: z.boolean(),
  })
  .meta({ id: 'ExitBounds' })

export const presentExitBounds = (bounds: ExitBounds): z.input<typeof exitBounds> => present(exitBounds, bounds)
