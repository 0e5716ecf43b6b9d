import type { Address } from 'viem'
import { ignoreUnreachable, isUnsupportedMethod, logUnexpected } from '../rpc/node-errors.ts'
import {
  blockNumberRequest,
  blockReceiptsRequest,
  type NodeReceipt,
  receiptRequest,
  transactionCountRequest,
} from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import { include } from './intent-outcomes.ts'
import type { Lane } from './lane.ts'

// Finds the receipts of attempts that a node has accepted. While there are many, the receipts of each block are read
// with one request. A send that waits for its own receipt signals each new block; without such a send, the node is
// polled.

/** The pauses after the first poll, which comes when most attempts of the lane have been included. */
const POLL_DELAYS_MS = [100, 100, 100, 100, 200, 400, 800]
const MAX_POLL_DELAY_MS = 1_600
const MIN_FIRST_POLL_MS = 50
const MAX_FIRST_POLL_MS = 1_000
/** How early the first poll is, relative to the time until attempts were found included. */
const EARLY = 0.8
/** How long a send that waits for its block replaces polling. */
const MAX_SIGNAL_WAIT_MS = 1_000
/** Up to this many attempts are looked up by hash; for more, whole blocks are read. */
const MAX_BY_HASH = 4
/** Every eighth poll without a result looks up the attempts by hash: their block may have been missed. */
const POLLS_BY_BLOCK = 8
/** After more blocks than this since the last poll, the attempts are looked up by hash instead. */
const MAX_BLOCKS_PER_POLL = 4
const MAX_RECEIPTS_PER_BATCH = 100
/** How many requests a node answers one after another within the time of a batch. */
const MAX_RECEIPTS_ONE_BY_ONE = 16

/**
 * Waits until an attempt is not pending, at most until the deadline (epoch milliseconds). Returns whether it is
 * pending.
 */
export async function isPendingUntil(lane: Lane, attempt: Attempt, deadline: number): Promise<boolean> {
  const { journal, watched } = lane
  const { hash } = attempt
  if (!journal.attempts.isPending(hash)) return false
  const ended = watched.get(hash)?.ended ?? Promise.withResolvers<void>()
  watched.set(hash, { attempt, deadline, ended })
  watch(lane).catch(logUnexpected)
  await ended.promise
  return journal.attempts.isPending(hash)
}

/** Tells the watch that the chain has a block. */
export function observeBlock(lane: Lane, number: number) {
  if (lane.watched.size === 0 || number <= (lane.lastBlockRead ?? -1)) return
  lane.newBlock = Math.max(number, lane.newBlock ?? 0)
  lane.newBlockSignal.resolve()
}

async function watch(lane: Lane): Promise<void> {
  if (lane.isWatching) return
  lane.isWatching = true
  try {
    for (let poll = 0; lane.watched.size > 0; ) {
      await pause(lane, poll)
      const pending = endWaits(lane)
      if (pending === 0) break
      await findReceipts(lane, poll).catch(ignoreUnreachable)
      poll = endWaits(lane) < pending ? 0 : poll + 1
    }
  } finally {
    lane.isWatching = false
  }
}

/** Waits for the next poll, a new block or the first deadline. */
async function pause(lane: Lane, poll: number): Promise<void> {
  const watched = [...lane.watched.values()]
  const firstAt = Math.min(...watched.map(({ attempt }) => attempt.sentAt)) + lane.expectedInclusionMs
  const delay =
    poll === 0
      ? Math.min(Math.max(firstAt - Date.now(), MIN_FIRST_POLL_MS), MAX_FIRST_POLL_MS)
      : (POLL_DELAYS_MS[poll - 1] ?? MAX_POLL_DELAY_MS)
  const until = Date.now() + (poll === 0 && lane.waitsForBlock > 0 ? MAX_SIGNAL_WAIT_MS : delay)
  const deadline = Math.min(...watched.map(({ deadline }) => deadline))
  await lane.withDeadline(lane.newBlockSignal.promise, Math.min(until, deadline), () => undefined)
  lane.newBlockSignal = Promise.withResolvers()
}

/** Ends the waits for attempts that are included, or whose deadline has passed. Returns how many are left. */
function endWaits({ journal, watched }: Lane): number {
  for (const [hash, { deadline, ended }] of watched) {
    if (journal.attempts.isPending(hash) && Date.now() < deadline) continue
    watched.delete(hash)
    ended.resolve()
  }
  return watched.size
}

async function findReceipts(lane: Lane, poll: number): Promise<void> {
  const block = lane.newBlock
  lane.newBlock = undefined
  const isByHash =
    lane.watched.size <= MAX_BY_HASH || !lane.supportsBlockReceipts || poll % POLLS_BY_BLOCK === POLLS_BY_BLOCK - 1
  const receipts = isByHash ? await receiptsByHash(lane) : await receiptsByBlock(lane, block)
  const included = receipts.flatMap(receipt => {
    const attempt = lane.journal.attempts.findPending(receipt.transactionHash)
    return attempt ? [{ attempt, receipt }] : []
  })
  for (const { attempt } of included)
    if (!lane.resends.has(attempt.hash)) learnInclusionTime(lane, Date.now() - attempt.sentAt)
  // The replay of a revert needs further requests; the next block does not wait for them.
  include(lane, included).catch(logUnexpected)
}

/** Providers bill each poll. The first one comes a little early, so that it follows a time that becomes shorter. */
function learnInclusionTime(lane: Lane, ms: number) {
  const expected = lane.expectedInclusionMs
  lane.expectedInclusionMs = (3 * expected + EARLY * Math.min(ms, 2 * expected + MIN_FIRST_POLL_MS)) / 4
}

async function receiptsByHash({ rpc, watched }: Lane): Promise<NodeReceipt[]> {
  const attempts = [...watched.values()].map(({ attempt }) => attempt).toSorted((a, b) => a.nonce - b.nonce)
  const responses = await rpc.batch(attempts.slice(0, maxReceipts(rpc)).map(({ hash }) => receiptRequest(hash)))
  return responses.flatMap(({ result }) => result ?? [])
}

/** Returns the receipts of the lane's pending attempts in the blocks that were not read yet. */
async function receiptsByBlock(lane: Lane, block: number | undefined): Promise<NodeReceipt[]> {
  const { rpc, journal, lastBlockRead } = lane
  const head = block ?? Number((await rpc.call(blockNumberRequest)).result ?? lastBlockRead ?? 0)
  const first = (lastBlockRead ?? head - 1) + 1
  if (head < first) return []
  if (head - first >= MAX_BLOCKS_PER_POLL) {
    lane.lastBlockRead = head
    return receiptsByHash(lane)
  }
  const numbers = Array.from({ length: head - first + 1 }, (_, index) => first + index)
  const responses = await rpc.batch(numbers.map(number => blockReceiptsRequest(number, journal.attempts.isPending)))
  const found: NodeReceipt[] = []
  for (const [index, number] of numbers.entries()) {
    const { result, error } = responses[index] ?? {}
    if (error && isUnsupportedMethod(error)) lane.supportsBlockReceipts = false
    if (!result) break
    lane.lastBlockRead = number
    found.push(...result)
  }
  return found
}

/** Returns how many receipts to request at once: few from a node that accepts no batches. */
export const maxReceipts = (rpc: RpcTransport): number =>
  rpc.preferred()?.acceptsBatches ? MAX_RECEIPTS_PER_BATCH : MAX_RECEIPTS_ONE_BY_ONE

/**
 * Returns the receipts of attempts from a node on which the account's nonce is at least `nonce`: null for an attempt
 * that is not mined there, undefined if the node did not respond for it. Throws CHAIN_UNREACHABLE.
 */
export async function readReceipts(
  rpc: RpcTransport,
  { address, nonce, attempts }: { address: Address; nonce: number; attempts: readonly Attempt[] },
): Promise<(NodeReceipt | null | undefined)[]> {
  const [, ...receipts] = await rpc.batch(
    [transactionCountRequest(address), ...attempts.map(({ hash }) => receiptRequest(hash))],
    ([count]) => Number(count.result) >= nonce,
  )
  return receipts.map(({ result }) => result)
}
