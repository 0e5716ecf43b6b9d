import type { ExtensionTerms } from '@agent-trading-service/protocol/check'
import type { Block } from '../chain/configured-chain.ts'
import { nowAt } from '../clock.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'

const SUGGESTED_LIFETIME_SECONDS = 600n
/**
 * How much less than the trade policy's limit is suggested: the block that executes may be a little behind the clock.
 */
const POLICY_MARGIN_SECONDS = 15n
const DAY_SECONDS = 86_400n
// Unix seconds have ten digits until the year 2286; thirteen or fourteen digits are milliseconds.
const MIN_MILLISECONDS = 1_000_000_000_000n
const MAX_MILLISECONDS = 99_999_999_999_999n

/**
 * Returns the deadline of a quote: the requested one, or ten minutes from now, or less if the trade policy allows less.
 * Throws the refusal of a requested one that every submission would reject.
 */
export function quoteDeadline(requested: bigint | undefined, block: Block, extension?: ExtensionTerms): bigint {
  if (requested === undefined) {
    const maxSeconds = extension?.tradePolicy.maxDeadlineSeconds || SUGGESTED_LIFETIME_SECONDS
    const isShort = maxSeconds < SUGGESTED_LIFETIME_SECONDS
    return nowAt(block) + (isShort ? maxSeconds - POLICY_MARGIN_SECONDS : SUGGESTED_LIFETIME_SECONDS)
  }
  const refusal = deadlineRefusal(requested, block)
  if (refusal)
    throw refusal.withRemedy('Send a future deadline in Unix seconds, or leave it out: the quote suggests one.')
  return requested
}

/** Returns the refusal of a deadline that has passed or is in milliseconds; undefined if it is acceptable. */
export function deadlineRefusal(deadline: bigint, block: Block): Refusal | undefined {
  const now = nowAt(block)
  const facts = { given: deadline, serverTime: now }
  if (deadline >= MIN_MILLISECONDS && deadline <= MAX_MILLISECONDS) return refuse('DEADLINE_IN_MILLISECONDS', facts)
  return deadline < now ? refuse('EXPIRED_DEADLINE', facts) : undefined
}

/** Returns the `warnings` field of a response for a deadline that is accepted but far ahead, otherwise no field. */
export const deadlineWarnings = (deadline: bigint, block: Block): { warnings?: string[] } =>
  deadline > nowAt(block) + DAY_SECONDS
    ? {
        warnings: [
          'The deadline is more than 24 hours ahead: until then, only the nonce limits how long this signature is valid.',
        ],
      }
    : {}
