import type { Address } from 'viem'
import type { RpcTransport } from '../rpc/transport.ts'
import type { AttemptSigner } from './assign-nonce-and-sign.ts'
import { logUnexpected } from './background-errors.ts'
import type { ChainHead, HeadCache } from './chain-head.ts'
import type { IntentOutcomes } from './intent-outcomes.ts'
import type { JournalIntent } from './intent-table.ts'
import type { LaneAlerts } from './lane-alerts.ts'
import { readReceipts } from './read-receipts.ts'
import { createReorgCheck } from './reorg-check.ts'
import { createResender, DEADLINE_PASSED } from './resend-fill-or-cancel.ts'
import { createAccountNonceCheck } from './resolve-used-nonces.ts'
import type { AttemptSender } from './send-until-included.ts'
import type { Simulate } from './simulation.ts'
import type { Journal } from './store.ts'
import { feesAt } from './transaction-fees.ts'

const MIN_PASS_INTERVAL_MS = 100

/** Reconciles the journal with the chain, on every alarm and immediately after a nonce conflict. */
export function createReconciliation({
  rpc,
  journal,
  heads,
  attemptSigner,
  intentOutcomes,
  sender,
  simulate,
  alerts,
  address,
  priorityFeeWei,
  onForeignTransaction,
}: {
  rpc: RpcTransport
  journal: Journal
  heads: HeadCache
  attemptSigner: AttemptSigner
  intentOutcomes: IntentOutcomes
  sender: AttemptSender
  simulate: Simulate
  alerts: LaneAlerts
  address: Address
  priorityFeeWei: bigint
  /** Called when someone else has used the account's key. */
  onForeignTransaction: () => void
}) {
  const accountNonces = createAccountNonceCheck({ rpc, journal, intentOutcomes, sender, address, onForeignTransaction })
  const resender = createResender({ journal, attemptSigner, sender })
  const reorgs = createReorgCheck({ rpc, journal, intentOutcomes, resender })
  let running: Promise<void> | undefined
  let isRequested = false

  /** Runs a pass. A call during a pass runs another pass after it. Throws CHAIN_UNREACHABLE. */
  function reconcile(): Promise<void> {
    isRequested = true
    running ??= runRequested()
    return running
  }

  async function runRequested(): Promise<void> {
    try {
      while (isRequested) {
        isRequested = false
        await runPass()
        if (isRequested) await scheduler.wait(MIN_PASS_INTERVAL_MS)
      }
    } finally {
      running = undefined
    }
  }

  async function runPass(): Promise<void> {
    alerts.observePending(journal.attempts.lowestPendingSince())
    const head = await heads.refresh()
    await accountNonces.check(head)
    if ((await reorgs.check(head)) === 'repeat') isRequested = true
    resender.run(head).catch(logUnexpected)
    for (const intent of journal.intents.withoutPendingAttempt()) await renew(intent, head)
  }

  /**
   * Signs an intent again after a foreign transaction used its nonce, or rejects it if the chain no longer accepts it.
   */
  async function renew(intent: JournalIntent, head: ChainHead): Promise<void> {
    const { digest, kind, group, groupNonce, deadline, call, spenders } = intent
    // The reorg check observes reverted ones.
    const attempts = journal.attempts.ofIntent(digest).filter(({ state }) => state !== 'reverted')
    const receipts = await readReceipts(rpc, { address, nonce: head.nonce, attempts })
    const executed = attempts.find((_, index) => receipts[index])
    if (executed) {
      await reorgs.recheck([executed]) // an earlier response came from a lagging node
      return
    }
    if (receipts.includes(undefined)) return // an attempt without a response may have been executed
    if (deadline < head.timestamp) return intentOutcomes.reject(digest, { reason: DEADLINE_PASSED })
    const simulation = await simulate(kind, call, feesAt(head, priorityFeeWei))
    if (simulation.kind === 'rejected')
      return intentOutcomes.reject(digest, { data: simulation.data, reason: simulation.message })
    if (simulation.kind !== 'passed') return
    const request = { digest, kind, group, groupNonce, deadline: BigInt(deadline), call, spenders }
    sender.send(await attemptSigner.prepare(request, simulation.gas)).catch(logUnexpected)
  }

  return { reconcile }
}
