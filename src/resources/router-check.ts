import type { Check } from '@agent-trading-service/protocol/check'
import { z } from 'zod'
import { remedyOf } from '../errors/catalogue.ts'

export const check = z
  .object({
    rule: z.string().meta({ example: 'allocationCap' }),
    code: z.string().meta({ description: 'The error code a submission would get if this rule fails' }),
    pass: z.boolean(),
    limit: z.string().nullable().meta({ description: "The rule's limit in its own unit (amounts: USDC base units)" }),
    used: z.string().nullable().meta({
      description:
        'What counts towards the limit before the intent; in the unit of the limit, amounts in USDC base units',
    }),
    after: z
      .string()
      .nullable()
      .meta({ description: 'What counts towards the limit after the intent; in the unit of the limit' }),
    problem: z.string().optional(),
    ruleIndex: z.int().optional().meta({ description: 'Index of the offending exit rule' }),
    remedy: z.string().optional(),
  })
  .meta({ id: 'Check', description: "A rule of the router; gasBudget and intake are the service's" })

export function presentCheck({ rule, code, pass, limit, used, after, problem }: Check): z.input<typeof check> {
  return {
    rule,
    code,
    pass,
    limit: textOrNull(limit ?? problem?.limit),
    used: textOrNull(used ?? problem?.given),
    after: textOrNull(after),
    ...(problem && { problem: problem.problem }),
    ...(problem?.ruleIndex !== undefined && { ruleIndex: problem.ruleIndex }),
    ...(!pass && { remedy: remedyOf(code) }),
  }
}

const textOrNull = (value: bigint | string | undefined) => (value === undefined ? null : `${value}`)
