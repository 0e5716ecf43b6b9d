import { timingSafeEqual } from 'node:crypto'
import { sha256, stringToBytes } from 'viem'
import type { Call } from '../call.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'

/** Returns whether a request carries a secret as its bearer token. Compares in constant time; false without a secret. */
export function hasBearer(secret: string | undefined, bearer = ''): boolean {
  if (secret === undefined) return false
  const [expected, given] = [secret, bearer].map(text => sha256(stringToBytes(text), 'bytes'))
  return expected !== undefined && given !== undefined && timingSafeEqual(expected, given)
}

/** Throws OPERATOR_NOT_CONFIGURED or OPERATOR_ONLY unless the call carries the operator's secret. */
export function assertOperator({ config }: Context, { bearer }: Call): void {
  if (config.operatorSecret === undefined) throw refuse('OPERATOR_NOT_CONFIGURED')
  if (!hasBearer(config.operatorSecret, bearer)) throw refuse('OPERATOR_ONLY')
}
