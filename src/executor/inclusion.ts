import { type Hex, numberToHex } from 'viem'
import { isUnreachable } from '../rpc/node-errors.ts'
import { callRequest, type NodeReceipt, receiptRequest } from '../rpc/requests.ts'
import { traceRevertData } from '../rpc/revert-data.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import type { ReceiptLog, RelayOutcome } from './intent.ts'
import type { JournalIntent } from './intent-table.ts'
import type { Journal } from './store.ts'

export type Inclusion = ReturnType<typeof createInclusion>

/** Turns receipts into outcomes: the receipt decides, and whoever waits for the digest is told. */
export function createInclusion({
  rpc,
  journal,
  from,
  onMined,
}: {
  rpc: RpcTransport
  journal: Journal
  from: Hex
  /** Told of the logs of each transaction that succeeded. */
  onMined: (logs: NodeReceipt['logs']) => void
}) {
  const waiting = new Map<Hex, PromiseWithResolvers<RelayOutcome>>()

  /** The outcome of an intent that is under way, whenever it comes. */
  function outcomeOf(digest: Hex): Promise<RelayOutcome> {
    const waiter = waiting.get(digest) ?? Promise.withResolvers<RelayOutcome>()
    waiting.set(digest, waiter)
    return waiter.promise
  }

  function tell(digest: Hex, outcome: RelayOutcome) {
    waiting.get(digest)?.resolve(outcome)
    waiting.delete(digest)
  }

  /** Records that an attempt is in a block. A second call for the same attempt changes nothing. */
  async function include(attempt: Attempt, receipt: NodeReceipt): Promise<void> {
    if (!journal.attempts.isPending(attempt.hash)) return
    const succeeded = BigInt(receipt.status) === 1n
    const blockNumber = Number(receipt.blockNumber)
    journal.attempts.include(
      attempt,
      { number: blockNumber, hash: blockHashOf(receipt) },
      succeeded ? 'mined' : 'reverted',
    )
    const { digest, hash } = attempt
    if (digest === null) return
    if (attempt.purpose === 'cancel')
      return end(digest, { reason: journal.intents.find(digest)?.reason ?? 'it was cancelled' })
    if (succeeded) {
      journal.intents.setState(digest, 'mined', { blockNumber })
      onMined(receipt.logs)
      return tell(digest, mined(receipt, hash))
    }
    journal.intents.setState(digest, 'reverted', { blockNumber })
    const intent = journal.intents.find(digest)
    const waiter = waiting.get(digest) // while it is run again another try may begin, and wait for its own outcome
    waiting.delete(digest)
    const revertData = intent && (await replay(intent, attempt, blockNumber))
    const isLatest =
      journal.attempts.ofIntent(digest).at(-1)?.hash === hash && journal.intents.find(digest)?.state === 'reverted'
    if (revertData !== undefined && isLatest) journal.intents.setState(digest, 'reverted', { blockNumber, revertData })
    waiter?.resolve({ state: 'reverted', hash, ...(revertData !== undefined && { data: revertData }) })
  }

  /** Whether a receipt says of an attempt what is known of it. */
  const isStill = ({ state }: Attempt, { status }: NodeReceipt): boolean =>
    state === (BigInt(status) === 1n ? 'mined' : 'reverted')

  /** Records the block of an attempt whose fate has not changed. */
  function move(attempt: Attempt, receipt: NodeReceipt) {
    const blockNumber = Number(receipt.blockNumber)
    const isMined = attempt.state === 'mined'
    journal.attempts.include(
      attempt,
      { number: blockNumber, hash: blockHashOf(receipt) },
      isMined ? 'mined' : 'reverted',
    )
    if (isMined && attempt.purpose === 'call' && attempt.digest !== null)
      journal.intents.setState(attempt.digest, 'mined', { blockNumber })
  }

  /** Ends an intent that can no longer execute and of which nothing was executed. */
  function end(digest: Hex, { data, reason }: { data?: Hex | undefined; reason: string }) {
    journal.intents.setState(digest, 'rejected', { reason, ...(data !== undefined && { revertData: data }) })
    tell(digest, { state: 'rejected', message: reason, ...(data !== undefined && { data }) })
  }

  /** What became of an intent that was executed, from the chain; `unknown` while the chain does not show it. */
  async function answer(intent: JournalIntent): Promise<RelayOutcome> {
    const attempts = journal.attempts.ofIntent(intent.digest)
    const included = attempts.findLast(({ state }) => state === 'mined' || state === 'reverted')
    const hash = included?.hash ?? attempts.at(-1)?.hash
    if (included === undefined || hash === undefined) return { state: 'unknown', ...(hash !== undefined && { hash }) }
    if (included.state === 'reverted')
      return { state: 'reverted', hash, ...(intent.revertData !== null && { data: intent.revertData }) }
    try {
      const { result } = await rpc.call(receiptRequest(hash))
      if (result) return mined(result, hash)
    } catch (error) {
      if (!isUnreachable(error)) throw error
    }
    return { state: 'unknown', hash }
  }

  /** The revert data of a mined call: run again on the state before its block, and on that of its block. */
  async function replay(
    { call }: JournalIntent,
    { gas, hash }: Attempt,
    blockNumber: number,
  ): Promise<Hex | undefined> {
    const request = { from, to: call.to, data: call.data, gas: numberToHex(gas) }
    for (const at of [blockNumber - 1, blockNumber]) {
      try {
        const { error } = await rpc.call(callRequest(request, at))
        if (error?.data !== undefined) return error.data
      } catch (error) {
        if (!isUnreachable(error)) throw error
      }
    }
    return traceRevertData(rpc, hash)
  }

  /** Gives up on everything: nothing of it will ever be in a block. */
  function abandon() {
    for (const digest of [...waiting.keys()]) tell(digest, { state: 'unknown' })
  }

  return { outcomeOf, include, isStill, move, end, answer, abandon }
}

function mined({ blockNumber, logs }: NodeReceipt, hash: Hex): RelayOutcome {
  const plain = logs.map(({ address, topics, data }): ReceiptLog => ({ address, topics, data }))
  return { state: 'mined', hash, blockNumber: BigInt(blockNumber), logs: plain }
}

/** A sequencer that answers before the block is sealed writes a zero hash: then it is not known yet. */
export const blockHashOf = ({ blockHash }: NodeReceipt): Hex | null =>
  blockHash === null || /^0x0*$/.test(blockHash) ? null : blockHash
