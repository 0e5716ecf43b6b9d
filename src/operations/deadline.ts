import type { Block } from '../chain/block.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { ExtensionTerms } from '../protocol/router-check-inputs.ts'

const SUGGESTED_LIFETIME_SECONDS = 600n
const DAY_SECONDS = 86_400n
// Unix seconds have ten digits until the year 2286; thirteen or fourteen digits are milliseconds.
const MIN_MILLISECONDS = 1_000_000_000_000n
const MAX_MILLISECONDS = 99_999_999_999_999n

/** Returns the deadline that a quote suggests: ten minutes after the block, in Unix seconds. */
export const suggestedDeadline = ({ timestamp }: Block): bigint => timestamp + SUGGESTED_LIFETIME_SECONDS

/** Returns the deadline that a quote suggests, within the trade policy if there is one. */
export function quoteDeadline(block: Block, extension: ExtensionTerms | undefined): bigint {
  const maxSeconds = extension?.tradePolicy.maxDeadlineSeconds || SUGGESTED_LIFETIME_SECONDS
  return maxSeconds < SUGGESTED_LIFETIME_SECONDS ? block.timestamp + maxSeconds : suggestedDeadline(block)
}

/** Returns the refusal of a deadline that has passed at the block or is in milliseconds; undefined if it is acceptable. */
export function deadlineRefusal(deadline: bigint, { timestamp }: Block): Refusal | undefined {
  const facts = { given: deadline, serverTime: timestamp }
  if (deadline >= MIN_MILLISECONDS && deadline <= MAX_MILLISECONDS) return refuse('DEADLINE_IN_MILLISECONDS', facts)
  return deadline < timestamp ? refuse('EXPIRED_DEADLINE', facts) : undefined
}

/** Returns the `warnings` field of a response for a deadline that is accepted but far ahead, otherwise no field. */
export const deadlineWarnings = (deadline: bigint, { timestamp }: Block): { warnings?: string[] } =>
  deadline > timestamp + DAY_SECONDS
    ? {
        warnings: [
          'The deadline is more than 24 hours ahead: until then, only the nonce limits how long this signature is valid.',
        ],
      }
    : {}
