import { timingSafeEqual } from 'node:crypto'
import { sha256, stringToBytes } from 'viem'

/** Returns whether a request carries a secret as its bearer token. Compares in constant time; false without a secret. */
export function hasBearer(secret: string | undefined, bearer = ''): boolean {
  if (secret === undefined) return false
  const [expected, given] = [secret, bearer].map(text => sha256(stringToBytes(text), 'bytes'))
  return expected !== undefined && given !== undefined && timingSafeEqual(expected, given)
}
