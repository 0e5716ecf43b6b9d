import type { Hex } from 'viem'
import { sleep } from '../concurrency.ts'
import { logEvent } from '../log.ts'
import { FINAL_SECONDS, MAX_REORG_SECONDS } from '../rpc/finality.ts'
import { logUnexpected, unreachable } from '../rpc/node-errors.ts'
import {
  blockNumberRequest,
  blockRequest,
  chainIdRequest,
  type NodeBlock,
  type NodeReceipt,
  receiptRequest,
  transactionRequest,
} from '../rpc/requests.ts'
import { sendBatchSize } from '../rpc/submit.ts'
import type { Attempt } from './attempt-table.ts'
import type { ChainHead } from './chain-head.ts'
import { isPendingUntil, maxReceipts, readReceipts } from './inclusion-watch.ts'
import { hasSameResult, include, reject, updateBlock } from './intent-outcomes.ts'
import type { JournalIntent } from './intent-table.ts'
import type { Lane } from './lane.ts'
import { findNonceUse, isRestored, recordForeignTransactions } from './pause-rules.ts'
import { DROPPED } from './relay-types.ts'
import { cancel, expectsResponse, raiseFee, resend, sendUntilIncluded, simulateNow } from './send-attempt.ts'
import { signAtNextNonce, signFiller } from './sign-attempt.ts'

/** How many blocks one request compares. A lane may have a transaction in each block, so a pass makes several. */
const MAX_BLOCKS_PER_REQUEST = 32
const MAX_REQUESTS_PER_CHECK = 32
const MAX_PENDING_MS = 5_000
/** A younger transaction is on its way. A pass looks a second after it was signed. */
const EXPECTED_INCLUSION_MS = 900
const DEADLINE_PASSED = 'the deadline passed before the call was included'

/**
 * A transaction that every later one waits for is dropped if no node knows it this long after it was signed, after that
 * many accepted sends and blocks.
 */
const DROPPED_AFTER_MS = 10_000
const MIN_SENDS_BEFORE_DROP = 3
const MIN_BLOCKS_BEFORE_DROP = 3

const MIN_RESEND_DELAY_MS = 1_000
const MAX_RESEND_DELAY_MS = 15_000
/** How long a node may lack a block that another one has shown. After that, the block counts as removed. */
const MAX_LAG_MS = 2_000
/** How long passes look for a reported reorg, of which the lane's own node may learn later. */
const REORG_WATCH_MS = 30_000
/** How long receipts may come later than their block, before the nonce is suspected again. */
const LATE_RECEIPTS_SECONDS = 30
const CONFIRM_INTERVAL_MS = 250
/** How long the lanes of agents wait for the relayer's after a reorg. */
const MAX_RESEND_WAIT_MS = 1_000

/** How many transactions one pass resends, lowest nonces first. */
const MAX_RESENDS_PER_ROUND = 128
/** How many are sent in parallel. A node may hold each response until the transaction is mined. */
const MAX_PARALLEL_RESENDS = 6
/** How many missing nonces one pass fills. */
const MAX_REPAIRS_PER_ROUND = 64

/**
 * Reconciles the journal with the chain, when an alarm finds a reason and immediately after a nonce conflict. Throws
 * CHAIN_UNREACHABLE.
 */
export async function reconcile(lane: Lane): Promise<void> {
  const { journal } = lane
  alertOfLag(lane)
  // The account matters only while something is in flight.
  if (!hasInFlight(lane)) {
    await checkBlocks(lane)
    if (!hasInFlight(lane)) return
  }
  const head = await lane.refreshHead()
  await resolveUsedNonces(lane, head)
  await checkBlocks(lane, head)
  if (lane.hasTakenBack) {
    lane.hasTakenBack = false
    await lane.resendRegistrations().catch(logUnexpected)
  }
  lane.resendMissing().catch(logUnexpected)
  for (const intent of journal.intents.withoutPendingAttempt()) await renew(lane, intent, head)
}

/**
 * Returns whether something needs more than waiting: a transaction that is pending for long, an intent without one, or
 * a block that may be gone.
 */
export function needsReconciliation(lane: Lane): boolean {
  const { journal } = lane
  const since = journal.attempts.lowestPendingSince()
  return (
    suspectsReorg(lane) ||
    (since !== undefined && Date.now() - since >= EXPECTED_INCLUSION_MS) ||
    journal.intents.withoutPendingAttempt().length > 0
  )
}

/** Whether a reorg was reported of late, or the head is below a block of the journal. */
export const suspectsReorg = ({ belowSince, reorgReportedAt }: Lane): boolean =>
  belowSince !== undefined || Date.now() - reorgReportedAt < REORG_WATCH_MS

/** Looks at once for transactions that a reorg has removed, with all blocks above `ancestor`. */
export function reportReorg(lane: Lane, ancestor: number): void {
  if (lane.journal.attempts.newestWatchedBlock() <= ancestor) return
  expectReorg(lane)
  lane.reconcile().catch(logUnexpected)
}

/** Resends at once what a reorg has removed. Resolves when it is sent or mined, at most after a second. */
export async function resendLost(lane: Lane): Promise<void> {
  if (!lane.journal.attempts.hasWatched()) return
  expectReorg(lane)
  const isResent = lane.reconcile().then(() => lane.resendMissing())
  await lane.withDeadline(isResent, Date.now() + MAX_RESEND_WAIT_MS, () => undefined)
}

function expectReorg(lane: Lane) {
  lane.reorgReportedAt = Date.now()
  lane.belowSince = 0
  lane.forgetBlock()
  void lane.alarm.passOften()
}

/**
 * Waits until the journal is right about the blocks of its transactions: a node that lags has caught up, or a block is
 * gone.
 */
export async function confirmBlocks(lane: Lane): Promise<void> {
  const until = Date.now() + MAX_LAG_MS + CONFIRM_INTERVAL_MS
  await lane.reconcile().catch(logUnexpected)
  while (lane.belowSince !== undefined && Date.now() < until) {
    await sleep(CONFIRM_INTERVAL_MS)
    await lane.reconcile().catch(logUnexpected)
  }
}

const hasInFlight = ({ journal }: Lane): boolean =>
  journal.attempts.pendingTotals().count > 0 || journal.intents.withoutPendingAttempt().length > 0

/** Reads the number of the newest block, from a node of the lane's chain. Throws CHAIN_UNREACHABLE. */
async function readHeadNumber({ rpc, chainId }: Lane): Promise<{ number: number }> {
  const [, number] = await rpc.batch(
    [chainIdRequest, blockNumberRequest] as const,
    ([id]) => Number(id.result) === chainId,
  )
  if (number.error) throw unreachable('the node did not return its newest block')
  return { number: Number(number.result) }
}

function alertOfLag(lane: Lane) {
  const since = lane.journal.attempts.lowestPendingSince()
  const pendingMs = since === undefined ? 0 : Date.now() - since
  if (pendingMs > MAX_PENDING_MS && lane.isAlertDue('lag'))
    logEvent('executor lag', { executor: lane.address, pendingSeconds: Math.floor(pendingMs / 1_000) })
}

/**
 * Finds out whose transactions used the account nonces of pending attempts: ours, or another holder's of the key.
 * Throws CHAIN_UNREACHABLE.
 */
async function resolveUsedNonces(lane: Lane, head: ChainHead): Promise<void> {
  const { journal, rpc, address, suspects } = lane
  const isAwaited = (attempt: Attempt) => expectsResponse(lane, attempt)
  const atUsedNonces = journal.attempts.pending().filter(({ nonce }) => nonce < head.nonce)
  const used = atUsedNonces.filter(attempt => !isAwaited(attempt))
  /**
   * Whether a node reported every pending attempt at a used nonce as not mined. An attempt that is still awaited may
   * be mined.
   */
  const isMissing = new Map(atUsedNonces.filter(isAwaited).map(({ nonce }) => [nonce, false]))
  const size = maxReceipts(rpc)
  for (let start = 0; start < used.length; start += size) {
    const attempts = used.slice(start, start + size)
    const receipts = await readReceipts(rpc, { address, nonce: head.nonce, attempts })
    const included: { attempt: Attempt; receipt: NodeReceipt }[] = []
    for (const [index, attempt] of attempts.entries()) {
      const receipt = receipts[index]
      if (receipt) included.push({ attempt, receipt })
      isMissing.set(attempt.nonce, receipt === null && isMissing.get(attempt.nonce) !== false)
    }
    await include(lane, included)
  }
  for (const [nonce, isUsedElsewhere] of isMissing)
    if (isUsedElsewhere && (await suspectForeignUse(lane, nonce, head)) === 'own') break // the node shows receipts late
  for (const nonce of suspects.keys())
    if (nonce >= head.nonce || !journal.attempts.hasPendingAt(nonce)) suspects.delete(nonce)
}

/**
 * Decides that a nonce was used by someone else once it lacks our receipt at two heads of different times, unless its
 * block has our transaction: a node may know a block before its receipts. Returns `own` in that case. Throws
 * CHAIN_UNREACHABLE.
 */
async function suspectForeignUse(lane: Lane, nonce: number, head: ChainHead): Promise<'own' | undefined> {
  const { journal, rpc, address, suspects } = lane
  const { number, timestamp } = head
  if (!journal.attempts.hasPendingAt(nonce)) return
  const suspectedAt = suspects.get(nonce) ?? timestamp
  suspects.set(nonce, suspectedAt)
  if (timestamp <= suspectedAt) return
  const used = await findNonceUse(rpc, { address, nonce, head: number })
  if (!journal.attempts.hasPendingAt(nonce)) return
  if (journal.attempts.atNonce(nonce).some(({ hash }) => hash === used?.hash)) {
    suspects.set(nonce, timestamp + LATE_RECEIPTS_SECONDS) // a reorg may replace it
    return 'own'
  }
  suspects.delete(nonce)
  journal.attempts.markNonceUsedElsewhere(nonce)
  // What no node shows may be ours, sent before the journal was restored or with fees that it does not know.
  if (used === undefined || isRestored(journal)) return
  recordForeignTransactions(journal, nonce)
  logEvent('foreign transaction', { executor: address, nonce })
  lane.describeForeignTransaction(nonce, used)
}

/**
 * Detects reorgs: compares journalled blocks with the chain, marks attempts of removed blocks as pending and attempts
 * of final blocks as final. Without a head, it believes a node only if it has all blocks: then it is on the lane's
 * chain. Throws CHAIN_UNREACHABLE.
 */
async function checkBlocks(lane: Lane, head?: { number: number }, requests = 1): Promise<void> {
  const { journal, rpc } = lane
  if (head !== undefined) await recheckAbove(lane, head.number)
  if (!journal.attempts.hasWatched()) return
  const { checkpoint } = lane
  const watched = journal.attempts.watchedBlocks((checkpoint?.number ?? -1) + 1, MAX_BLOCKS_PER_REQUEST)
  const numbers = [...(checkpoint === undefined ? [] : [checkpoint.number]), ...watched]
  const known = head === undefined ? numbers : numbers.filter(number => number <= head.number)
  if (known.length === 0) return
  const [finalized, ...blocks] = await rpc.batch([blockRequest('finalized'), ...known.map(blockRequest)])
  const hashes = new Map(known.map((number, index) => [number, blocks[index]?.result?.hash]))
  if (head === undefined) {
    const isJournalled = (number: number) =>
      number === checkpoint?.number
        ? hashes.get(number) === checkpoint.hash
        : journal.attempts.watchedIn(number).every(({ blockHash }) => blockHash === hashes.get(number))
    if (!known.every(isJournalled)) return checkBlocks(lane, await readHeadNumber(lane))
    lane.belowSince = undefined
  }
  if (checkpoint !== undefined && hashes.get(checkpoint.number) !== checkpoint.hash) {
    lane.checkpoint = undefined
    return checkBlocks(lane, head)
  }
  for (const number of watched) {
    const hash = hashes.get(number)
    if (hash === undefined) break
    const displaced = journal.attempts.watchedIn(number).filter(({ blockHash }) => blockHash !== hash)
    if (!(await recheck(lane, displaced))) break
    lane.checkpoint = { number, hash }
  }
  journal.finalize(Math.min(finalBlock(lane, finalized.result), lane.checkpoint?.number ?? -1))
  const isPartial = watched.length === MAX_BLOCKS_PER_REQUEST && lane.checkpoint?.number === watched.at(-1)
  if (isPartial && requests < MAX_REQUESTS_PER_CHECK) await checkBlocks(lane, head, requests + 1)
}

/** Returns the newest final block: the one that the node names, unless its finality stands still. */
function finalBlock({ journal }: Lane, finalized: NodeBlock | null | undefined): number {
  const seconds = finalized ? MAX_REORG_SECONDS : FINAL_SECONDS
  const old = journal.attempts.newestBlockBefore(Date.now() - seconds * 1_000)
  return Math.max(finalized ? Number(finalized.number) : -1, old)
}

/**
 * Looks for the attempts of blocks above the head, unless a node that lags may soon reach them. After a rewind, the
 * chain might need minutes to grow as far again.
 */
async function recheckAbove(lane: Lane, head: number): Promise<void> {
  const { journal, checkpoint } = lane
  lane.belowSince = journal.attempts.newestWatchedBlock() <= head ? undefined : (lane.belowSince ?? Date.now())
  if (lane.belowSince === undefined || Date.now() - lane.belowSince < MAX_LAG_MS) return
  if (checkpoint !== undefined && checkpoint.number > head) lane.checkpoint = undefined
  await recheck(lane, journal.attempts.watchedAbove(head))
}

/**
 * Updates attempts whose block is not on the chain, or was journalled without a hash. Attempts with the same result
 * in another block stay mined; all others become pending. Returns whether the node responded for each;
 * attempts beyond one batch are left to the next check.
 */
async function recheck(lane: Lane, displaced: readonly Attempt[]): Promise<boolean> {
  const { journal, rpc, chainId } = lane
  if (displaced.length === 0) return true
  const attempts = displaced.slice(0, maxReceipts(rpc))
  const [, ...responses] = await rpc.batch(
    [chainIdRequest, ...attempts.map(({ hash }) => receiptRequest(hash))] as const,
    ([id]) => Number(id.result) === chainId,
  )
  let isComplete = attempts.length === displaced.length
  for (const [index, attempt] of attempts.entries()) {
    const receipt = responses[index]?.result
    if (receipt === undefined) isComplete = false
    else if (receipt !== null && hasSameResult(attempt, receipt)) updateBlock(lane, attempt, receipt)
    else {
      journal.attempts.reopen(attempt.nonce)
      if (attempt.digest !== null) takeBack(lane, attempt.digest)
      if (receipt) await include(lane, [{ attempt, receipt }])
      else expedite(lane, attempt.hash)
    }
  }
  return isComplete
}

/** Records that a reorg took back an intent's transaction. */
function takeBack(lane: Lane, digest: Hex) {
  const { journal, reverts } = lane
  lane.hasTakenBack = true
  journal.intents.setState(digest, 'sent')
  const intent = journal.intents.find(digest)
  if (intent) reverts.remove(intent.party, digest)
}

/**
 * Signs an intent again after a foreign transaction used its nonce, or rejects it if the chain no longer accepts it.
 */
async function renew(lane: Lane, intent: JournalIntent, head: ChainHead): Promise<void> {
  const { journal, rpc, address } = lane
  const { digest, deadline } = intent
  // The reorg check observes reverted ones.
  const attempts = journal.attempts.ofIntent(digest).filter(({ state }) => state !== 'reverted')
  const receipts = await readReceipts(rpc, { address, nonce: head.nonce, attempts })
  const executed = attempts.find((_, index) => receipts[index])
  if (executed) {
    await recheck(lane, [executed]) // an earlier response came from a lagging node
    return
  }
  if (receipts.includes(undefined)) return // an attempt without a response may have been executed
  if (deadline < head.timestamp) return reject(lane, digest, { reason: DEADLINE_PASSED })
  const { call, simulation } = await simulateNow(lane, intent, head)
  if (simulation.kind === 'rejected') return reject(lane, digest, { data: simulation.data, reason: simulation.message })
  if (simulation.kind !== 'passed') return
  const request = { ...intent, deadline: BigInt(deadline) }
  sendUntilIncluded(lane, await signAtNextNonce(lane, request, { call, gas: simulation.gas })).catch(logUnexpected)
}

/**
 * Resends transactions that the chain lacks at the last head. Runs in the background: a node may respond slowly, and
 * reconciliation does not wait.
 */
export async function resendMissing(lane: Lane): Promise<void> {
  const { head } = lane
  if (head === undefined) return
  await repairGap(lane, head)
  await resendPending(lane, head)
}

/** Resends or fills the nonces below the lowest pending one that the chain lacks. Later nonces wait for them. */
async function repairGap(lane: Lane, head: ChainHead) {
  const { journal } = lane
  const lowest = journal.attempts.pending()[0]?.nonce
  if (lowest === undefined) return
  const missing: Attempt[] = []
  for (let nonce = head.nonce; nonce < Math.min(lowest, head.nonce + MAX_REPAIRS_PER_ROUND); nonce++) {
    const attempts = journal.attempts.atNonce(nonce)
    const included = attempts.find(({ state }) => state === 'mined' || state === 'reverted')
    // It was mined after this head, or a reorg removed its block, which the reorg check will find.
    if (included && !included.final) continue
    missing.push(included ?? attempts.at(-1) ?? (await signFiller(lane, nonce)))
  }
  await inNonceOrder(lane, missing, attempts => resend(lane, attempts))
}

/** Resends pending attempts in the order of their nonces, and cancels those whose deadline has passed. */
async function resendPending(lane: Lane, head: ChainHead) {
  const { journal, resends } = lane
  const state = `${head.nonce} ${head.balance}`
  if (lane.accountState !== state) for (const resend of resends.values()) resend.times = 0
  lane.accountState = state
  const latest = new Map<number, Attempt>()
  for (const attempt of journal.attempts.pending()) if (attempt.nonce >= head.nonce) latest.set(attempt.nonce, attempt)
  const due = [...latest.values()].filter(
    attempt => isDue(lane, attempt) && (attempt.nonce === head.nonce || !expectsResponse(lane, attempt)),
  )
  await inNonceOrder(lane, due.slice(0, MAX_RESENDS_PER_ROUND), async attempts => {
    const turnOf = ({ hash }: Attempt) => (resends.get(hash)?.times ?? 0) + 1
    const pending = attempts.filter(({ hash }) => journal.attempts.isPending(hash))
    const missing = pending.filter(attempt => !isReplaced(lane, attempt, head))
    const [first] = missing
    if (first !== undefined && !(await resend(lane, missing, turnOf(first)))) return false
    for (const attempt of missing)
      isPendingUntil(lane, attempt, Date.now() + lane.inclusionTimeoutMs).catch(logUnexpected)
    for (const attempt of pending) {
      const firstHead = resends.get(attempt.hash)?.firstHead ?? head.number
      resends.set(attempt.hash, { at: Date.now(), times: turnOf(attempt), firstHead })
    }
    return true
  })
  for (const hash of resends.keys()) if (!journal.attempts.isPending(hash)) resends.delete(hash)
}

/**
 * Replaces an attempt that must not be resent as it is, in the background: its deadline has passed, its fee is too low,
 * or it was accepted again and again and may have vanished.
 */
function isReplaced(lane: Lane, attempt: Attempt, head: ChainHead): boolean {
  if (isExpired(lane, attempt, head)) cancel(lane, attempt, DEADLINE_PASSED).catch(logUnexpected)
  else if (attempt.maxFee < head.baseFee) raiseFee(lane, attempt).catch(logUnexpected)
  else if (mayBeDropped(lane, attempt, head)) cancelIfDropped(lane, attempt).catch(logUnexpected)
  else return false
  return true
}

/**
 * Whether the chain has gone on without a transaction that is next in line and that nodes accept. Every second time, it
 * is resent instead.
 */
function mayBeDropped(lane: Lane, { hash, digest, nonce, purpose, sentAt }: Attempt, head: ChainHead): boolean {
  const { times, firstHead = head.number } = lane.resends.get(hash) ?? { times: 0 }
  if (digest === null || purpose === 'cancel' || nonce !== head.nonce || lane.refusals.has(hash)) return false
  const hasGoneOn = lane.makesBlocksOnDemand || head.number >= firstHead + MIN_BLOCKS_BEFORE_DROP
  const isTried = times >= MIN_SENDS_BEFORE_DROP && times % 2 === 1
  return hasGoneOn && isTried && Date.now() - sentAt >= DROPPED_AFTER_MS
}

/**
 * Fills the nonce of a transaction that no node knows: a sequencer may filter it, and says so to nobody. One that waits
 * in a pool is left alone.
 */
async function cancelIfDropped(lane: Lane, attempt: Attempt): Promise<void> {
  const { result } = await lane.rpc.call(transactionRequest(attempt.hash))
  if (result !== null) return
  logEvent('transaction dropped', { executor: lane.address, nonce: attempt.nonce, hash: attempt.hash })
  await cancel(lane, attempt, DROPPED)
}

function isDue({ resends, startedAt }: Lane, { hash, sentAt }: Attempt): boolean {
  if (sentAt < startedAt && !resends.has(hash)) return true // the process that signed it may not have sent it
  const last = resends.get(hash)
  const delay = Math.min(MIN_RESEND_DELAY_MS * 2 ** (last?.times ?? 0), MAX_RESEND_DELAY_MS)
  return Date.now() - (last?.at ?? sentAt) >= delay
}

function isExpired({ journal }: Lane, { digest, purpose }: Attempt, head: ChainHead): boolean {
  if (digest === null || purpose === 'cancel') return false
  const intent = journal.intents.find(digest)
  return intent !== undefined && intent.deadline < head.timestamp
}

/** Makes the next pass resend an attempt without a delay. */
function expedite({ resends }: Lane, hash: Hex) {
  resends.set(hash, { at: 0, times: 0 })
}

/**
 * Calls `work` for attempts in order, for as many together as the node takes in a batch and for several in parallel,
 * and starts no more once a call returns false.
 */
async function inNonceOrder(
  { rpc }: Lane,
  attempts: readonly Attempt[],
  work: (attempts: readonly Attempt[]) => Promise<boolean>,
): Promise<void> {
  const rest = [...attempts]
  let isStopped = false
  const worker = async () => {
    while (!isStopped && rest.length > 0) if (!(await work(rest.splice(0, sendBatchSize(rpc))))) isStopped = true
  }
  await Promise.all(Array.from({ length: MAX_PARALLEL_RESENDS }, worker))
}
