import { type Hex, numberToHex } from 'viem'
import { tracedRevert } from '../chain/transactions.ts'
import { type Receipt, type Rpc, Unreachable } from '../rpc/json-rpc.ts'
import type { Log, Outcome } from './client.ts'
import type { Attempt, Intent, Journal } from './store.ts'

export type Settlement = ReturnType<typeof createSettlement>

/** Turns receipts into outcomes: the receipt decides, and whoever waits for the digest is told. */
export function createSettlement({
  rpc,
  journal,
  from,
  onMined,
}: {
  rpc: Rpc
  journal: Journal
  from: Hex
  /** Told of the logs of each transaction that succeeded. */
  onMined: (logs: Receipt['logs']) => void
}) {
  const waiting = new Map<Hex, PromiseWithResolvers<Outcome>>()

  /** The outcome of an intent that is under way, whenever it comes. */
  function outcomeOf(digest: Hex): Promise<Outcome> {
    const waiter = waiting.get(digest) ?? Promise.withResolvers<Outcome>()
    waiting.set(digest, waiter)
    return waiter.promise
  }

  function tell(digest: Hex, outcome: Outcome) {
    waiting.get(digest)?.resolve(outcome)
    waiting.delete(digest)
  }

  /** Records that an attempt is in a block. A second call for the same attempt changes nothing. */
  async function include(attempt: Attempt, receipt: Receipt): Promise<void> {
    if (!journal.isOpen(attempt.hash)) return
    const succeeded = BigInt(receipt.status) === 1n
    const blockNumber = Number(receipt.blockNumber)
    journal.include(attempt, { number: blockNumber, hash: blockHashOf(receipt) }, succeeded ? 'mined' : 'reverted')
    const { digest, hash } = attempt
    if (digest === null) return
    if (attempt.purpose === 'noop') return end(digest, { reason: journal.intent(digest)?.reason ?? 'it was cancelled' })
    if (succeeded) {
      journal.setIntent(digest, 'mined', { blockNumber })
      onMined(receipt.logs)
      return tell(digest, mined(receipt, hash))
    }
    journal.setIntent(digest, 'reverted', { blockNumber })
    const intent = journal.intent(digest)
    const waiter = waiting.get(digest) // while it is run again another try may begin, and wait for its own outcome
    waiting.delete(digest)
    const revertData = intent && (await replay(intent, attempt, blockNumber))
    const isLatest = journal.attemptsOf(digest).at(-1)?.hash === hash && journal.intent(digest)?.state === 'reverted'
    if (revertData !== undefined && isLatest) journal.setIntent(digest, 'reverted', { blockNumber, revertData })
    waiter?.resolve({ state: 'reverted', hash, ...(revertData !== undefined && { data: revertData }) })
  }

  /** Whether a receipt says of an attempt what is known of it. */
  const isStill = ({ state }: Attempt, { status }: Receipt): boolean =>
    state === (BigInt(status) === 1n ? 'mined' : 'reverted')

  /** Records the block of an attempt whose fate has not changed. */
  function move(attempt: Attempt, receipt: Receipt) {
    const blockNumber = Number(receipt.blockNumber)
    const isMined = attempt.state === 'mined'
    journal.include(attempt, { number: blockNumber, hash: blockHashOf(receipt) }, isMined ? 'mined' : 'reverted')
    if (isMined && attempt.purpose === 'call' && attempt.digest !== null)
      journal.setIntent(attempt.digest, 'mined', { blockNumber })
  }

  /** Ends an intent that can no longer execute and of which nothing was executed. */
  function end(digest: Hex, { data, reason }: { data?: Hex | undefined; reason: string }) {
    journal.setIntent(digest, 'rejected', { reason, ...(data !== undefined && { revertData: data }) })
    tell(digest, { state: 'refused', message: reason, ...(data !== undefined && { data }) })
  }

  /** What became of an intent that was executed, from the chain; `unknown` while the chain does not show it. */
  async function answer(intent: Intent): Promise<Outcome> {
    const attempts = journal.attemptsOf(intent.digest)
    const included = attempts.findLast(({ state }) => state === 'mined' || state === 'reverted')
    const hash = included?.hash ?? attempts.at(-1)?.hash
    if (included === undefined || hash === undefined) return { state: 'unknown', ...(hash !== undefined && { hash }) }
    if (included.state === 'reverted')
      return { state: 'reverted', hash, ...(intent.revertData !== null && { data: intent.revertData }) }
    try {
      const { result } = await rpc.call('eth_getTransactionReceipt', [hash])
      if (result) return mined(result as Receipt, hash)
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
    }
    return { state: 'unknown', hash }
  }

  /** The revert data of a mined call: run again on the state before its block, and on that of its block. */
  async function replay({ call }: Intent, { gas, hash }: Attempt, blockNumber: number): Promise<Hex | undefined> {
    const request = { from, to: call.to, data: call.data, gas: numberToHex(gas) }
    for (const at of [blockNumber - 1, blockNumber]) {
      try {
        const { error } = await rpc.call('eth_call', [request, numberToHex(at)])
        if (error?.data !== undefined) return error.data
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error
      }
    }
    return tracedRevert(async (method, params) => (await rpc.call(method, [...params])).result, hash)
  }

  /** Gives up on everything: nothing of it will ever be in a block. */
  function abandon() {
    for (const digest of [...waiting.keys()]) tell(digest, { state: 'unknown' })
  }

  return { outcomeOf, include, isStill, move, end, answer, abandon }
}

function mined({ blockNumber, logs }: Receipt, hash: Hex): Outcome {
  const plain = logs.map(({ address, topics, data }): Log => ({ address, topics, data }))
  return { state: 'mined', hash, blockNumber: BigInt(blockNumber), logs: plain }
}

/** A sequencer that answers before the block is sealed writes a zero hash: then it is not known yet. */
export const blockHashOf = ({ blockHash }: Receipt): Hex | null =>
  blockHash === null || /^0x0*$/.test(blockHash) ? null : blockHash
