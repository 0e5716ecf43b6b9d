import { type Hex, numberToHex } from 'viem'
import { logEvent } from '../log.ts'
import { count, observe } from '../metrics/recorder.ts'
import { ignoreUnreachable } from '../rpc/node-errors.ts'
import { callRequest, type NodeReceipt, receiptRequest } from '../rpc/requests.ts'
import { traceRevertData } from '../rpc/trace-revert-data.ts'
import type { Attempt, Inclusion } from './attempt-table.ts'
import { FILLER_ACCOUNT, type GasCharge } from './gas-budgets.ts'
import { priceWithL1, weightOfGas } from './gas-price.ts'
import type { IntentSummary, JournalIntent } from './intent-table.ts'
import type { Lane } from './lane.ts'
import { DROPPED, type RelayOutcome } from './relay-types.ts'
import { callOf } from './signing-account.ts'

// Records receipts in the journal and resolves the outcomes that callers wait for.

type InclusionWithReceipt = Inclusion & { receipt: NodeReceipt }

/** Resolves with the outcome of an intent in flight, without a timeout. */
export function awaitOutcome({ waiters }: Lane, digest: Hex): Promise<RelayOutcome> {
  const waiter = waiters.get(digest) ?? Promise.withResolvers<RelayOutcome>()
  waiters.set(digest, waiter)
  return waiter.promise
}

function resolveOutcome({ waiters }: Lane, digest: Hex, outcome: RelayOutcome) {
  waiters.get(digest)?.resolve(outcome)
  waiters.delete(digest)
}

/**
 * Records that pending attempts were mined, with one statement per table, and resolves their outcomes. Skips attempts
 * that are no longer pending. Resolves once every revert has been replayed.
 */
export async function include(
  lane: Lane,
  included: readonly { attempt: Attempt; receipt: NodeReceipt }[],
): Promise<void> {
  const { journal, gasBudgets } = lane
  const inclusions = new Map<Hex, InclusionWithReceipt>()
  for (const { attempt, receipt } of included) {
    const pending = journal.attempts.findPending(attempt.hash)
    if (pending) inclusions.set(pending.hash, { attempt: pending, receipt, ...resultOf(receipt) })
  }
  if (inclusions.size === 0) return
  for (const { block } of inclusions.values()) lane.observeBlock(BigInt(block.number))
  const all = [...inclusions.values()]
  const intents = journal.intents.findAll(all.flatMap(({ attempt: { digest } }) => digest ?? []))
  const intentOf = ({ digest }: Attempt) => (digest === null ? undefined : intents.get(digest))
  const calls = all.flatMap(inclusion => {
    const { attempt, state, block } = inclusion
    return attempt.purpose === 'call' && attempt.digest !== null
      ? [{ ...inclusion, digest: attempt.digest, state, blockNumber: block.number }]
      : []
  })

  const charges = all.flatMap(inclusion => chargeOf(lane, inclusion, intentOf(inclusion.attempt)) ?? [])
  journal.attempts.include(all, gasBudgets.charge(charges))
  if (calls.length > 0) journal.intents.include(calls)
  for (const { digest, attempt, state } of calls) {
    const intent = intents.get(digest)
    if (state === 'reverted' && intent)
      lane.reverts.add({ party: intent.party, digest, kind: intent.kind, at: attempt.sentAt })
  }
  for (const { attempt } of all) {
    if (attempt.purpose !== 'cancel' || attempt.digest === null) continue
    const intent = intentOf(attempt)
    // Each costs the lane seconds in which it accepts nothing, so they count like reverts.
    if (intent?.reason === DROPPED)
      lane.reverts.add({ party: intent.party, digest: intent.digest, kind: intent.kind, at: attempt.sentAt })
    reject(lane, attempt.digest, { reason: intent?.reason ?? 'it was cancelled' })
  }
  for (const { digest, attempt, receipt, state } of calls)
    if (state === 'mined') resolveOutcome(lane, digest, minedOutcome(receipt, attempt.hash))

  // No caller waits for the rest.
  for (const inclusion of all) recordInclusion(lane, inclusion, intentOf(inclusion.attempt))
  for (const { receipt, state } of calls) if (state === 'mined') lane.forwardLogs(receipt)
  void lane.storeNotes(calls.map(({ digest, attempt: { hash } }) => ({ hash, note: intents.get(digest)?.note })))
  await Promise.all(
    calls.map(({ digest, attempt, state, blockNumber }) =>
      state === 'reverted' ? explainRevert(lane, digest, attempt, blockNumber) : undefined,
    ),
  )
}

/** Records the result and the cost of a transaction for operators. */
function recordInclusion(
  { address, accountName: account }: Lane,
  { attempt: { hash, purpose, sentAt, gasUsed: recordedGas }, receipt, state, gasUsed }: InclusionWithReceipt,
  intent: IntentSummary | undefined,
) {
  const labels = { account, kind: purpose === 'cancel' ? 'cancel' : (intent?.kind ?? 'unknown') }
  count('ats_transactions', { ...labels, result: state })
  observe('ats_inclusion_duration_seconds', { account }, (Date.now() - sentAt) / 1_000)
  const gas = gasUsed - recordedGas // after a reorg the same transaction may be mined again
  if (gas > 0) {
    const l1Gas = l1GasOf(receipt)
    count('ats_transaction_gas', { ...labels, part: 'l2' }, gas)
    if (l1Gas > 0) count('ats_transaction_gas', { ...labels, part: 'l1' }, l1Gas)
    if (receipt.effectiveGasPrice) {
      const wei = (gas + l1Gas) * Number(BigInt(receipt.effectiveGasPrice))
      count('ats_transaction_fees_ether', { account }, wei / 1e18)
    }
  }
  if (state === 'reverted')
    logEvent('transaction reverted', {
      executor: address,
      hash,
      ...(intent && { kind: intent.kind, digest: intent.digest, group: intent.group }),
    })
}

/** Returns the gas that was not charged yet: after a reorg the same transaction may be mined again. */
function chargeOf(
  { gasBudgets, gasPrices }: Lane,
  { attempt: { digest, gasUsed: chargedGas }, receipt, state, gasUsed }: InclusionWithReceipt,
  intent: IntentSummary | undefined,
): GasCharge | undefined {
  const spenders = digest === null ? [FILLER_ACCOUNT] : (gasBudgets.payersOf(digest) ?? intent?.spenders ?? [])
  const gas = gasUsed - chargedGas
  const price = priceWithL1(BigInt(receipt.effectiveGasPrice ?? 0), { l2Gas: gasUsed, l1Gas: l1GasOf(receipt) })
  const weight = weightOfGas(price, gasPrices)
  return gas > 0 ? { spenders, gas, weight, isReverted: state === 'reverted' } : undefined
}

async function explainRevert(lane: Lane, digest: Hex, attempt: Attempt, blockNumber: number): Promise<void> {
  const { journal, waiters } = lane
  // During the replay the intent may be relayed again. That relay waits for its own outcome.
  const waiter = waiters.get(digest)
  waiters.delete(digest)
  const { hash } = attempt
  let revertData: Hex | undefined
  try {
    revertData = await replayRevert(lane, { attempt, blockNumber })
    const isLatest =
      journal.attempts.ofIntent(digest).at(-1)?.hash === hash && journal.intents.find(digest)?.state === 'reverted'
    if (revertData !== undefined && isLatest) journal.intents.setState(digest, 'reverted', { blockNumber, revertData })
  } finally {
    // Whatever fails, the intent's place in the lane and its gas become free.
    waiter?.resolve({ state: 'reverted', hash, ...(revertData !== undefined && { data: revertData }) })
  }
}

/**
 * Returns the revert data of a mined call: replays it on the state before its block and on that of its block, and
 * traces it if it passes on both. Undefined if the node returns no revert data.
 */
async function replayRevert(
  { rpc, address }: Lane,
  { attempt, blockNumber }: { attempt: Attempt; blockNumber: number },
): Promise<Hex | undefined> {
  const call = callOf(attempt.raw)
  const parameters = { from: address, to: call.to, data: call.data, gas: numberToHex(attempt.gas) }
  for (const block of [blockNumber - 1, blockNumber]) {
    const response = await rpc.call(callRequest(parameters, { block })).catch(ignoreUnreachable)
    if (response?.error?.data !== undefined) return response.error.data
  }
  return traceRevertData(rpc, attempt.hash)
}

/** Records the new block of an attempt whose result is the same after a reorg. */
export function updateBlock({ journal }: Lane, attempt: Attempt, receipt: NodeReceipt) {
  const { block, state, gasUsed } = resultOf(receipt)
  journal.attempts.include([{ attempt, block, state, gasUsed }])
  if (state === 'mined' && attempt.purpose === 'call' && attempt.digest !== null)
    journal.intents.include([{ digest: attempt.digest, state, blockNumber: block.number }])
}

/** Rejects an intent that was not executed and can no longer be. */
export function reject(lane: Lane, digest: Hex, { data, reason }: { data?: Hex | undefined; reason: string }) {
  lane.journal.intents.setState(digest, 'rejected', { reason, ...(data !== undefined && { revertData: data }) })
  resolveOutcome(lane, digest, { state: 'rejected', message: reason, ...(data !== undefined && { data }) })
}

/** Returns the outcome of an intent that was mined; `unknown` while the node has no receipt. */
export async function storedOutcome({ journal, rpc }: Lane, intent: JournalIntent): Promise<RelayOutcome> {
  const attempts = journal.attempts.ofIntent(intent.digest)
  const calls = attempts.filter(({ purpose }) => purpose === 'call')
  const included = calls.find(({ state }) => state === 'mined') ?? calls.findLast(({ state }) => state === 'reverted')
  const hash = included?.hash ?? attempts.at(-1)?.hash
  if (included === undefined || hash === undefined) return { state: 'unknown', ...(hash !== undefined && { hash }) }
  if (included.state === 'reverted')
    return { state: 'reverted', hash, ...(intent.revertData !== null && { data: intent.revertData }) }
  const response = await rpc.call(receiptRequest(hash)).catch(ignoreUnreachable)
  return response?.result ? minedOutcome(response.result, hash) : { state: 'unknown', hash }
}

/** Whether a receipt confirms the result that is journalled for an attempt. */
export const hasSameResult = (attempt: Attempt, receipt: NodeReceipt): boolean => attempt.state === stateOf(receipt)

const resultOf = (receipt: NodeReceipt): Omit<Inclusion, 'attempt'> => ({
  state: stateOf(receipt),
  block: blockOf(receipt),
  gasUsed: Number(receipt.gasUsed) - l1GasOf(receipt),
})

/** Returns the gas of a receipt that was for its data on L1. */
const l1GasOf = ({ gasUsedForL1 }: NodeReceipt) => Number(gasUsedForL1 ?? 0) || 0

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
