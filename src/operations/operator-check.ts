import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { hasBearer } from './bearer-check.ts'

/** Throws OPERATOR_NOT_CONFIGURED or OPERATOR_ONLY unless the call carries the operator's secret. */
export function assertOperator({ config, bearer }: Context): void {
  if (config.operatorSecret === undefined) throw refuse('OPERATOR_NOT_CONFIGURED')
  if (!hasBearer(config.operatorSecret, bearer)) throw refuse('OPERATOR_ONLY')
}
