import type { Address } from 'viem'
import { logEvent } from '../log.ts'
import type { NodeReceipt } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import type { ChainHead } from './chain-head.ts'
import type { IntentOutcomes } from './intent-outcomes.ts'
import { maxReceipts, readReceipts } from './read-receipts.ts'
import type { AttemptSender } from './send-until-included.ts'
import type { Journal } from './store.ts'

/**
 * Finds out whose transactions used the account nonces of pending attempts: ours, or those of someone else with the
 * key.
 */
export function createAccountNonceCheck({
  rpc,
  journal,
  intentOutcomes,
  sender,
  address,
  onForeignTransaction,
}: {
  rpc: RpcTransport
  journal: Journal
  intentOutcomes: IntentOutcomes
  sender: AttemptSender
  address: Address
  /** Called when someone else has used the account's key. */
  onForeignTransaction: () => void
}) {
  /** Used nonces for which we have no receipt, with the head at which that was first seen. */
  const suspects = new Map<number, number>()

  /** Resolves pending attempts whose nonce is used at a head. Throws CHAIN_UNREACHABLE. */
  async function check(head: ChainHead): Promise<void> {
    const atUsedNonces = journal.attempts.pending().filter(({ nonce }) => nonce < head.nonce)
    const used = atUsedNonces.filter(attempt => !sender.expectsResponse(attempt))
    /**
     * Whether a node reported every pending attempt at a used nonce as not mined. An attempt that is still awaited may
     * be mined.
     */
    const isMissing = new Map(atUsedNonces.filter(sender.expectsResponse).map(({ nonce }) => [nonce, false]))
    const size = maxReceipts(rpc)
    for (let start = 0; start < used.length; start += size) {
      const attempts = used.slice(start, start + size)
      const receipts = await readReceipts(rpc, { address, nonce: head.nonce, attempts })
      const included: { attempt: Attempt; receipt: NodeReceipt }[] = []
      for (const [index, attempt] of attempts.entries()) {
        const receipt = receipts[index]
        if (receipt) included.push({ attempt, receipt })
        isMissing.set(attempt.nonce, receipt === null && isMissing.get(attempt.nonce) !== false)
      }
      await intentOutcomes.include(included)
    }
    for (const [nonce, isUsedElsewhere] of isMissing) if (isUsedElsewhere) suspectForeignUse(nonce, head)
    for (const nonce of suspects.keys())
      if (nonce >= head.nonce || !journal.attempts.hasPendingAt(nonce)) suspects.delete(nonce)
  }

  /** Decides that a nonce was used by someone else once it lacks our receipt at two different heads. */
  function suspectForeignUse(nonce: number, { number }: ChainHead) {
    if (!journal.attempts.hasPendingAt(nonce)) return
    const suspectedAt = suspects.get(nonce)
    if (suspectedAt === undefined) suspects.set(nonce, number)
    else if (number > suspectedAt) {
      suspects.delete(nonce)
      journal.attempts.markNonceUsedElsewhere(nonce)
      onForeignTransaction()
      logEvent('foreign transaction', { executor: address, nonce })
    }
  }

  return { check }
}
