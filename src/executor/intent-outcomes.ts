import type { Address, Hex } from 'viem'
import { type NodeReceipt, receiptRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt, Inclusion } from './attempt-table.ts'
import { ignoreUnreachable } from './background-errors.ts'
import type { GasBudgets, GasCharge } from './gas-budgets.ts'
import type { JournalIntent } from './intent-table.ts'
import type { LaneAlerts } from './lane-alerts.ts'
import type { LaneMetrics } from './lane-metrics.ts'
import type { RelayOutcome } from './relay-types.ts'
import { replayRevert } from './replay-revert.ts'
import type { Journal } from './store.ts'

export type IntentOutcomes = ReturnType<typeof createIntentOutcomes>

type InclusionWithReceipt = Inclusion & { receipt: NodeReceipt }

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

  /**
   * Records that pending attempts were mined, with one statement per table, and resolves their outcomes. Skips attempts
   * that are no longer pending. Resolves once every revert has been replayed.
   */
  async function include(included: readonly { attempt: Attempt; receipt: NodeReceipt }[]): Promise<void> {
    const inclusions = new Map<Hex, InclusionWithReceipt>()
    for (const {
      attempt: { hash },
      receipt,
    } of included) {
      const attempt = journal.attempts.findPending(hash)
      if (attempt) inclusions.set(hash, { attempt, receipt, ...resultOf(receipt) })
    }
    if (inclusions.size === 0) return
    const all = [...inclusions.values()]
    const intents = journal.intents.findAll(all.flatMap(({ attempt: { digest } }) => digest ?? []))
    const intentOf = ({ digest }: Attempt) => (digest === null ? undefined : intents.get(digest))
    const calls = all.flatMap(inclusion => {
      const { attempt, state, block } = inclusion
      return attempt.purpose === 'call' && attempt.digest !== null
        ? [{ ...inclusion, digest: attempt.digest, state, blockNumber: block.number }]
        : []
    })

    gasBudgets.charge(all.flatMap(inclusion => chargeOf(inclusion, intentOf(inclusion.attempt)) ?? []))
    journal.attempts.include(all)
    if (calls.length > 0) journal.intents.include(calls)
    for (const { attempt } of all)
      if (attempt.purpose === 'cancel' && attempt.digest !== null)
        reject(attempt.digest, { reason: intentOf(attempt)?.reason ?? 'it was cancelled' })
    for (const { digest, attempt, receipt, state } of calls)
      if (state === 'mined') resolveOutcome(digest, minedOutcome(receipt, attempt.hash))

    // No caller waits for the rest.
    for (const inclusion of all) recordInclusion(inclusion, intentOf(inclusion.attempt))
    for (const { receipt, state } of calls) if (state === 'mined') onMined(receipt.logs)
    await Promise.all(
      calls.map(({ digest, attempt, state, blockNumber }) =>
        state === 'reverted' ? explainRevert(digest, attempt, blockNumber) : undefined,
      ),
    )
  }

  function recordInclusion(
    { attempt, receipt, state, gasUsed }: InclusionWithReceipt,
    intent: JournalIntent | undefined,
  ) {
    const { hash } = attempt
    metrics.recordInclusion(attempt, {
      kind: intent?.kind,
      result: state,
      gas: gasUsed - attempt.gasUsed,
      gasPrice: receipt.effectiveGasPrice ? BigInt(receipt.effectiveGasPrice) : undefined,
    })
    if (state === 'reverted') alerts.recordRevert({ hash, intent })
  }

  /** Returns the gas that was not charged yet: after a reorg the same transaction may be mined again. */
  function chargeOf(
    { attempt: { digest, gasUsed: chargedGas }, state, gasUsed }: InclusionWithReceipt,
    intent: JournalIntent | undefined,
  ): GasCharge | undefined {
    const spenders = digest === null ? ['lane'] : (gasBudgets.spendersOf(digest) ?? intent?.spenders ?? [])
    const gas = gasUsed - chargedGas
    return gas > 0 ? { spenders, gas, isReverted: state === 'reverted' } : undefined
  }

  async function explainRevert(digest: Hex, attempt: Attempt, blockNumber: number): Promise<void> {
    const call = journal.intents.find(digest)?.call
    // During the replay the intent may be relayed again. That relay waits for its own outcome.
    const waiter = waiters.get(digest)
    waiters.delete(digest)
    const { hash } = attempt
    let revertData: Hex | undefined
    try {
      revertData = call && (await replayRevert(rpc, { from, call, attempt, blockNumber }))
      const isLatest =
        journal.attempts.ofIntent(digest).at(-1)?.hash === hash && journal.intents.find(digest)?.state === 'reverted'
      if (revertData !== undefined && isLatest)
        journal.intents.setState(digest, 'reverted', { blockNumber, revertData })
    } finally {
      // Whatever fails, the intent's place in the lane and its gas become free.
      waiter?.resolve({ state: 'reverted', hash, ...(revertData !== undefined && { data: revertData }) })
    }
  }

  /** Records the new block of an attempt whose result is the same after a reorg. */
  function updateBlock(attempt: Attempt, receipt: NodeReceipt) {
    const { block, state, gasUsed } = resultOf(receipt)
    journal.attempts.include([{ attempt, block, state, gasUsed }])
    if (state === 'mined' && attempt.purpose === 'call' && attempt.digest !== null)
      journal.intents.setState(attempt.digest, 'mined', { blockNumber: block.number })
  }

  /** Rejects an intent that was not executed and can no longer be. */
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

  /** Resolves every wait with `unknown`, because the chain was replaced. */
  function abandonAll() {
    for (const digest of [...waiters.keys()]) resolveOutcome(digest, { state: 'unknown' })
  }

  return { awaitOutcome, include, updateBlock, reject, storedOutcome, abandonAll }
}

/** Whether a receipt confirms the result that is journalled for an attempt. */
export const hasSameResult = (attempt: Attempt, receipt: NodeReceipt): boolean => attempt.state === stateOf(receipt)

const resultOf = (receipt: NodeReceipt): Omit<Inclusion, 'attempt'> => ({
  state: stateOf(receipt),
  block: blockOf(receipt),
  gasUsed: Number(receipt.gasUsed),
})

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
