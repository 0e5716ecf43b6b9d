import type { Code } from '../../../src/errors/catalogue.ts'
import type { LadderProblem } from './exit-ladder-validation.ts'

/**
 * One rule that the router applies to an intent. `limit`, `used` and `after` are figures in the rule's own unit (amounts
 * in USDC base units); `code` is the error that the intent would be refused with.
 */
export type Check = {
  rule: string
  code: Code
  pass: boolean
  limit?: bigint
  used?: bigint
  after?: bigint
  problem?: LadderProblem
}
