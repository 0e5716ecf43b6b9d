import type { Address, Hex } from 'viem'
import { type NodeReceipt, receiptRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import { ignoreUnreachable } from './background-errors.ts'
import type { GasBudgets } from './gas-budgets.ts'
import type { JournalIntent } from './intent-table.ts'
import type { LaneAlerts } from './lane-alerts.ts'
import type { LaneMetrics } from './lane-metrics.ts'
import type { RelayOutcome } from './relay-types.ts'
import { replayRevert } from './replay-revert.ts'
import type { Journal } from './store.ts'

export type IntentOutcomes = ReturnType<typeof createIntentOutcomes>

/** Records receipts in the journal and resolves the outcomes that callers wait for. */
export function createIntentOutcomes({
  rpc,
  journal,
  gasBudgets,
  alerts,
  metrics,
  from,
  onMined,
}: {
  rpc: RpcTransport
  journal: Journal
  gasBudgets: GasBudgets
  alerts: LaneAlerts
  metrics: LaneMetrics
  from: Address
  /** Called with the logs of every call that succeeded. */
  onMined: (logs: NodeReceipt['logs']) => void
}) {
  const waiters = new Map<Hex, PromiseWithResolvers<RelayOutcome>>()

  /** Resolves with the outcome of an intent in flight, without a timeout. */
  function awaitOutcome(digest: Hex): Promise<RelayOutcome> {
    const waiter = waiters.get(digest) ?? Promise.withResolvers<RelayOutcome>()
    waiters.set(digest, waiter)
    return waiter.promise
  }

  function resolveOutcome(digest: Hex, outcome: RelayOutcome) {
    waiters.get(digest)?.resolve(outcome)
    waiters.delete(digest)
  }

  /** Records that a pending attempt is in a block. Does nothing if the attempt is not pending any more. */
  async function include(attempt: Attempt, receipt: NodeReceipt): Promise<void> {
    if (!journal.attempts.isPending(attempt.hash)) return
    const state = stateOf(receipt)
    const block = blockOf(receipt)
    recordInclusion(attempt, receipt)
    chargeGas(attempt, receipt)
    journal.attempts.include(attempt, { block, gasUsed: gasOf(receipt) }, state)
    const { digest, hash } = attempt
    if (state === 'reverted')
      alerts.recordRevert({ hash, intent: digest === null ? undefined : journal.intents.find(digest) })
    if (digest === null) return
    if (attempt.purpose === 'cancel')
      return reject(digest, { reason: journal.intents.find(digest)?.reason ?? 'it was cancelled' })
    journal.intents.setState(digest, state, { blockNumber: block.number })
    if (state === 'reverted') return explainRevert(digest, attempt, block.number)
    onMined(receipt.logs)
    resolveOutcome(digest, minedOutcome(receipt, hash))
  }

  function recordInclusion(attempt: Attempt, receipt: NodeReceipt) {
    const { digest, gasUsed } = attempt
    metrics.recordInclusion(attempt, {
      kind: digest === null ? undefined : journal.intents.find(digest)?.kind,
      result: stateOf(receipt),
      gas: gasOf(receipt) - gasUsed,
      gasPrice: receipt.effectiveGasPrice ? BigInt(receipt.effectiveGasPrice) : undefined,
    })
  }

  /** Charges the gas that was not charged yet: after a reorg the same transaction may be included again. */
  function chargeGas({ digest, gasUsed }: Attempt, receipt: NodeReceipt) {
    const spenders =
      digest === null ? ['lane'] : (gasBudgets.spendersOf(digest) ?? journal.intents.find(digest)?.spenders ?? [])
    const gas = gasOf(receipt) - gasUsed
    if (gas > 0) gasBudgets.charge(spenders, gas, { isReverted: stateOf(receipt) === 'reverted' })
  }

  async function explainRevert(digest: Hex, attempt: Attempt, blockNumber: number): Promise<void> {
    const call = journal.intents.find(digest)?.call
    // During the replay the intent may be relayed again. That relay waits for its own outcome.
    const waiter = waiters.get(digest)
    waiters.delete(digest)
    const { hash } = attempt
    const revertData = call && (await replayRevert(rpc, { from, call, attempt, blockNumber }))
    const isLatest =
      journal.attempts.ofIntent(digest).at(-1)?.hash === hash && journal.intents.find(digest)?.state === 'reverted'
    if (revertData !== undefined && isLatest) journal.intents.setState(digest, 'reverted', { blockNumber, revertData })
    waiter?.resolve({ state: 'reverted', hash, ...(revertData !== undefined && { data: revertData }) })
  }

  /** Records the new block of an attempt whose result is the same after a reorg. */
  function updateBlock(attempt: Attempt, receipt: NodeReceipt) {
    const block = blockOf(receipt)
    const state = stateOf(receipt)
    journal.attempts.include(attempt, { block, gasUsed: gasOf(receipt) }, state)
    if (state === 'mined' && attempt.purpose === 'call' && attempt.digest !== null)
      journal.intents.setState(attempt.digest, 'mined', { blockNumber: block.number })
  }

  /** Rejects an intent of which nothing was executed and nothing can be executed any more. */
  function reject(digest: Hex, { data, reason }: { data?: Hex | undefined; reason: string }) {
    journal.intents.setState(digest, 'rejected', { reason, ...(data !== undefined && { revertData: data }) })
    resolveOutcome(digest, { state: 'rejected', message: reason, ...(data !== undefined && { data }) })
  }

  /** Returns the outcome of an intent that was mined; `unknown` while the node has no receipt. */
  async function storedOutcome(intent: JournalIntent): Promise<RelayOutcome> {
    const attempts = journal.attempts.ofIntent(intent.digest)
    const included = attempts.findLast(({ state }) => state === 'mined' || state === 'reverted')
    const hash = included?.hash ?? attempts.at(-1)?.hash
    if (included === undefined || hash === undefined) return { state: 'unknown', ...(hash !== undefined && { hash }) }
    if (included.state === 'reverted')
      return { state: 'reverted', hash, ...(intent.revertData !== null && { data: intent.revertData }) }
    const response = await rpc.call(receiptRequest(hash)).catch(ignoreUnreachable)
    return response?.result ? minedOutcome(response.result, hash) : { state: 'unknown', hash }
  }

  /** Resolves every wait with `unknown`: the chain was replaced by another one. */
  function abandonAll() {
    for (const digest of [...waiters.keys()]) resolveOutcome(digest, { state: 'unknown' })
  }

  return { awaitOutcome, include, updateBlock, reject, storedOutcome, abandonAll }
}

/** Whether a receipt confirms the result that is journalled for an attempt. */
export const hasSameResult = (attempt: Attempt, receipt: NodeReceipt): boolean => attempt.state === stateOf(receipt)

const gasOf = ({ gasUsed }: NodeReceipt) => Number(gasUsed)

const stateOf = ({ status }: NodeReceipt) => (BigInt(status) === 1n ? 'mined' : 'reverted')

/** Returns a receipt's block. A sequencer that responds before it seals the block returns a zero hash, here null. */
const blockOf = ({ blockNumber, blockHash }: NodeReceipt): { number: number; hash: Hex | null } => ({
  number: Number(blockNumber),
  hash: blockHash === null || /^0x0*$/.test(blockHash) ? null : blockHash,
})

const minedOutcome = ({ blockNumber, logs }: NodeReceipt, hash: Hex): RelayOutcome => ({
  state: 'mined',
  hash,
  blockNumber: BigInt(blockNumber),
  logs: logs.map(({ address, topics, data }) => ({ address, topics, data })),
})
