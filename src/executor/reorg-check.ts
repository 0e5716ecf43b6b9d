import type { Hex } from 'viem'
import { blockRequest, receiptRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import type { ChainHead } from './chain-head.ts'
import { hasSameResult, type IntentOutcomes } from './intent-outcomes.ts'
import { maxReceipts } from './read-receipts.ts'
import type { Resender } from './resend-fill-or-cancel.ts'
import type { Journal } from './store.ts'

/** A block that is this deep is final. */
const CONFIRMATIONS = 64
const MAX_BLOCKS_PER_CHECK = 32

/** Detects reorgs that removed blocks with attempts. */
export function createReorgCheck({
  rpc,
  journal,
  intentOutcomes,
  resender,
}: {
  rpc: RpcTransport
  journal: Journal
  intentOutcomes: IntentOutcomes
  resender: Resender
}) {
  /** The highest block whose hash is confirmed, together with every block below it. */
  let checkpoint: { number: number; hash: Hex } | undefined

  /**
   * Compares journalled blocks with the chain, marks attempts of removed blocks as pending and those of deep blocks as
   * final. Returns whether the check must run again from the first block. Throws CHAIN_UNREACHABLE.
   */
  async function check(head: ChainHead): Promise<'complete' | 'repeat'> {
    if (!journal.attempts.hasWatched()) return 'complete'
    const watched = journal.attempts.watchedBlocks((checkpoint?.number ?? -1) + 1, MAX_BLOCKS_PER_CHECK)
    const numbers = [...(checkpoint === undefined ? [] : [checkpoint.number]), ...watched]
    const known = numbers.filter(number => number <= head.number)
    if (known.length === 0) return 'complete'
    const blocks = await rpc.batch(known.map(number => blockRequest(number)))
    const hashes = new Map(known.map((number, index) => [number, blocks[index]?.result?.hash]))
    if (checkpoint !== undefined && hashes.get(checkpoint.number) !== checkpoint.hash) {
      checkpoint = undefined
      return 'repeat'
    }
    for (const number of watched) {
      const hash = hashes.get(number)
      if (hash === undefined) break
      const displaced = journal.attempts.watchedIn(number).filter(({ blockHash }) => blockHash !== hash)
      if (!(await recheck(displaced))) break
      checkpoint = { number, hash }
    }
    journal.finalize(Math.min(head.number - CONFIRMATIONS, checkpoint?.number ?? -1))
    return 'complete'
  }

  /**
   * Updates attempts whose block is not on the chain, or was journalled without a hash. Attempts with the same result
   * in another block stay mined; all others become pending. Returns whether the node responded for each;
   * attempts beyond one batch are left to the next check.
   */
  async function recheck(displaced: readonly Attempt[]): Promise<boolean> {
    if (displaced.length === 0) return true
    const attempts = displaced.slice(0, maxReceipts(rpc))
    const responses = await rpc.batch(attempts.map(({ hash }) => receiptRequest(hash)))
    let isComplete = attempts.length === displaced.length
    for (const [index, attempt] of attempts.entries()) {
      const receipt = responses[index]?.result
      if (receipt === undefined) isComplete = false
      else if (receipt !== null && hasSameResult(attempt, receipt)) intentOutcomes.updateBlock(attempt, receipt)
      else {
        journal.attempts.reopen(attempt.nonce)
        if (attempt.digest !== null) journal.intents.setState(attempt.digest, 'sent')
        if (receipt) await intentOutcomes.include([{ attempt, receipt }])
        else resender.expedite(attempt.hash)
      }
    }
    return isComplete
  }

  return { check, recheck }
}
