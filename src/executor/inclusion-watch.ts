import type { Hex } from 'viem'
import { isUnsupportedMethod } from '../rpc/node-errors.ts'
import { blockNumberRequest, blockReceiptsRequest, type NodeReceipt, receiptRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { withDeadline } from '../timeout.ts'
import type { Attempt } from './attempt-table.ts'
import { ignoreUnreachable, logUnexpected } from './background-errors.ts'
import type { IntentOutcomes } from './intent-outcomes.ts'
import { maxReceipts } from './read-receipts.ts'
import type { Journal } from './store.ts'

const POLL_DELAYS_MS = [50, 50, 50, 50, 100, 100, 200, 400, 800]
const MAX_POLL_DELAY_MS = 1_600
/** How long a send that waits for its block replaces polling. */
const MAX_SIGNAL_WAIT_MS = 1_000
/** Up to this many attempts are looked up by hash; for more, whole blocks are read. */
const MAX_BY_HASH = 4
/** Every eighth poll without a result looks up the attempts by hash: their block may have been missed. */
const POLLS_BY_BLOCK = 8
const MAX_BLOCKS_PER_POLL = 4

/**
 * Finds the receipts of attempts that a node has accepted. While there are many, the receipts of each block are read
 * with one request. A send that waits for its own receipt signals each new block; without such a send, the node is
 * polled.
 */
export function createInclusionWatch({
  rpc,
  journal,
  intentOutcomes,
  expectsBlock,
}: {
  rpc: RpcTransport
  journal: Journal
  intentOutcomes: IntentOutcomes
  /** Whether a send is open whose node responds once it is in a block. */
  expectsBlock: () => boolean
}) {
  const watched = new Map<Hex, { attempt: Attempt; deadline: number; ended: PromiseWithResolvers<void> }>()
  let lastBlock: number | undefined
  let supportsBlockReceipts = true
  let isRunning = false
  /** A block that was not read yet, and the promise that the watch awaits. */
  let newBlock: number | undefined
  let signal = Promise.withResolvers<void>()

  /** Waits until an attempt is not pending, at most until the deadline (epoch milliseconds). Returns whether it is pending. */
  async function isPendingUntil(attempt: Attempt, deadline: number): Promise<boolean> {
    const { hash } = attempt
    if (!journal.attempts.isPending(hash)) return false
    const ended = watched.get(hash)?.ended ?? Promise.withResolvers<void>()
    watched.set(hash, { attempt, deadline, ended })
    run().catch(logUnexpected)
    await ended.promise
    return journal.attempts.isPending(hash)
  }

  /** Tells the watch that the chain has a block. */
  function observeBlock(number: number) {
    if (watched.size === 0 || number <= (lastBlock ?? -1)) return
    newBlock = Math.max(number, newBlock ?? 0)
    signal.resolve()
  }

  async function run(): Promise<void> {
    if (isRunning) return
    isRunning = true
    try {
      for (let poll = 0; watched.size > 0; ) {
        await pause(poll)
        const pending = endWaits()
        if (pending === 0) break
        await findReceipts(poll).catch(ignoreUnreachable)
        poll = endWaits() < pending ? 0 : poll + 1
      }
    } finally {
      isRunning = false
    }
  }

  /** Waits for the next poll, a new block or the first deadline. */
  async function pause(poll: number): Promise<void> {
    const delay = POLL_DELAYS_MS[poll] ?? MAX_POLL_DELAY_MS
    const until = Date.now() + (poll === 0 && expectsBlock() ? MAX_SIGNAL_WAIT_MS : delay)
    const deadline = Math.min(...[...watched.values()].map(({ deadline }) => deadline))
    await withDeadline(signal.promise, Math.min(until, deadline), () => undefined)
    signal = Promise.withResolvers()
  }

  /** Ends the waits for attempts that are included, or whose deadline has passed. Returns how many are left. */
  function endWaits(): number {
    for (const [hash, { deadline, ended }] of watched) {
      if (journal.attempts.isPending(hash) && Date.now() < deadline) continue
      watched.delete(hash)
      ended.resolve()
    }
    return watched.size
  }

  async function findReceipts(poll: number): Promise<void> {
    const block = newBlock
    newBlock = undefined
    const isByHash =
      watched.size <= MAX_BY_HASH || !supportsBlockReceipts || poll % POLLS_BY_BLOCK === POLLS_BY_BLOCK - 1
    const receipts = isByHash ? await receiptsByHash() : await receiptsByBlock(block)
    const included = receipts.flatMap(receipt => {
      const attempt = journal.attempts.findPending(receipt.transactionHash)
      return attempt ? [{ attempt, receipt }] : []
    })
    // The replay of a revert needs further requests; the next block does not wait for them.
    intentOutcomes.include(included).catch(logUnexpected)
  }

  async function receiptsByHash(): Promise<NodeReceipt[]> {
    const attempts = [...watched.values()].map(({ attempt }) => attempt).toSorted((a, b) => a.nonce - b.nonce)
    const responses = await rpc.batch(attempts.slice(0, maxReceipts(rpc)).map(({ hash }) => receiptRequest(hash)))
    return responses.flatMap(({ result }) => result ?? [])
  }

  /** Returns the receipts of the lane's pending attempts in the blocks that were not read yet. */
  async function receiptsByBlock(block: number | undefined): Promise<NodeReceipt[]> {
    const head = block ?? Number((await rpc.call(blockNumberRequest)).result ?? lastBlock ?? 0)
    const first = Math.max((lastBlock ?? head - 1) + 1, head - MAX_BLOCKS_PER_POLL + 1)
    if (head < first) return []
    const numbers = Array.from({ length: head - first + 1 }, (_, index) => first + index)
    const responses = await rpc.batch(numbers.map(number => blockReceiptsRequest(number, journal.attempts.isPending)))
    const found: NodeReceipt[] = []
    for (const [index, number] of numbers.entries()) {
      const { result, error } = responses[index] ?? {}
      if (error && isUnsupportedMethod(error)) supportsBlockReceipts = false
      if (!result) break
      lastBlock = number
      found.push(...result)
    }
    return found
  }

  return { isPendingUntil, observeBlock, isWatched: (hash: Hex) => watched.has(hash) }
}
