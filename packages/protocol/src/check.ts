import type { ContractErrorCode } from './decode-revert.ts'
import type { LadderProblem } from './exit-ladder-validation.ts'

/**
 * One rule that the router applies to an intent. `limit`, `used` and `after` are figures in the rule's own unit (amounts
 * in USDC base units); `code` is the error that the intent would be refused with: one of the contracts, or of the service.
 */
export type Check = {
  rule: string
  code: ContractErrorCode | 'GAS_BUDGET_EXHAUSTED' | 'INTAKE_CLOSED'
  pass: boolean
  limit?: bigint
  used?: bigint
  after?: bigint
  problem?: LadderProblem
}
