import type { Address, Hex } from 'viem'
import { logEvent } from '../log.ts'
import type { ChainHead } from './chain-head.ts'
import type { JournalIntent } from './intent-table.ts'
import { feesAt } from './transaction-fees.ts'

export type LaneAlerts = ReturnType<typeof createLaneAlerts>

/** The gas of a typical transaction, to estimate how many the balance pays for. */
const TYPICAL_GAS = 500_000n
/** With fewer transactions left, the operator should fund the account. */
const MIN_TRANSACTIONS_LEFT = 100n
const MAX_PENDING_MS = 5_000
const REPEAT_MS = 600_000

/**
 * Writes the log lines about a lane that an operator should act on, each at most once in ten minutes: a low balance,
 * and transactions that are not mined. Every reverted transaction is logged.
 */
export function createLaneAlerts({ address, priorityFeeWei }: { address: Address; priorityFeeWei: bigint }) {
  const loggedAt = new Map<string, number>()

  function isDue(event: string): boolean {
    const now = Date.now()
    if (now - (loggedAt.get(event) ?? 0) < REPEAT_MS) return false
    loggedAt.set(event, now)
    return true
  }

  return {
    observeBalance(head: ChainHead) {
      const transactionsLeft = head.balance / (TYPICAL_GAS * feesAt(head, priorityFeeWei).maxFeePerGas)
      if (transactionsLeft < MIN_TRANSACTIONS_LEFT && isDue('balance'))
        logEvent('executor balance low', {
          executor: address,
          balanceWei: `${head.balance}`,
          transactionsLeft: Number(transactionsLeft),
        })
    },

    /** `since` is when the oldest pending transaction was sent (milliseconds). */
    observePending(since: number | undefined) {
      const pendingMs = since === undefined ? 0 : Date.now() - since
      if (pendingMs > MAX_PENDING_MS && isDue('lag'))
        logEvent('executor lag', { executor: address, pendingSeconds: Math.floor(pendingMs / 1_000) })
    },

    recordImplausibleNonce(nonce: number) {
      if (isDue('nonce')) logEvent('implausible nonce', { executor: address, nonce })
    },

    recordRevert({
      hash,
      intent,
    }: {
      hash: Hex
      intent: Pick<JournalIntent, 'digest' | 'kind' | 'group'> | undefined
    }) {
      logEvent('transaction reverted', {
        executor: address,
        hash,
        ...(intent && { kind: intent.kind, digest: intent.digest, group: intent.group }),
      })
    },
  }
}
