import type { AttemptSigner } from './assign-nonce-and-sign.ts'
import type { Attempt } from './attempt-table.ts'
import { ignoreUnreachable } from './background-errors.ts'
import type { HeadCache } from './chain-head.ts'
import type { Journal } from './store.ts'

/** Replaces attempts at their nonces. Only the latest attempt at a nonce is replaced. */
export function createAttemptReplacer({
  journal,
  heads,
  attemptSigner,
  send,
}: {
  journal: Journal
  heads: HeadCache
  attemptSigner: AttemptSigner
  /** Sends the replacement and waits for its inclusion. */
  send: (replacement: Attempt) => Promise<void>
}) {
  /** Replaces an attempt whose fee is below the base fee by the same call with a higher fee. */
  async function raiseFee(attempt: Attempt): Promise<void> {
    const { digest, purpose } = attempt
    const intent = digest === null || purpose === 'cancel' ? undefined : journal.intents.find(digest)
    await heads.refresh().catch(ignoreUnreachable)
    if (isLatest(attempt)) await send(await attemptSigner.replace(attempt, intent?.call))
  }

  /** Replaces an attempt by a zero-value transfer. Whichever of the two is mined decides the intent's outcome. */
  async function cancel(attempt: Attempt, reason: string): Promise<void> {
    if (attempt.purpose === 'cancel' || !isLatest(attempt)) return
    if (attempt.digest !== null) journal.intents.setReason(attempt.digest, reason)
    await send(await attemptSigner.replace(attempt))
  }

  function isLatest({ nonce, hash }: Attempt): boolean {
    const pending = journal.attempts.atNonce(nonce).filter(({ state }) => state === 'pending')
    return pending.at(-1)?.hash === hash
  }

  return { raiseFee, cancel }
}
