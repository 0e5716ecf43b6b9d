import type { Hex } from 'viem'
import { logEvent } from '../log.ts'
import { blockRequest, type NodeReceipt, receiptRequest, transactionCountRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import type { Head } from './chain-head.ts'
import type { Delivery } from './delivery.ts'
import type { Inclusion } from './inclusion.ts'
import type { JournalIntent } from './intent-table.ts'
import { logUnexpected } from './log-failure.ts'
import type { Sequencer } from './nonce-sequencer.ts'
import type { createSimulator } from './simulation.ts'
import type { Journal } from './store.ts'

/** The last block that a reorganisation is looked for is this far behind the head. */
const CONFIRMATIONS = 64
const RESEND_MS = 1_000
/** An answer that has not come after this long may never come. */
const AWAITED_MS = 3_000
const LONGEST_RESEND_MS = 15_000
/** Passes and rounds of sending that follow each other at once begin this much apart. */
const PASS_MS = 100
/** How many transactions one pass sends again, lowest nonces first. */
const RESENDS = 32
/** How many of them are on the way at once; a node may answer each only when it is mined. */
const RESENDS_AT_ONCE = 6
const REPAIRS = 64
const RECEIPTS = 100
const BLOCKS = 32
const EXPIRED = 'the deadline passed before the call was included'

/** Brings journal and chain together: what every alarm does, and what a disorder asks for at once. */
export function createReconciliation({
  rpc,
  journal,
  sequencer,
  inclusion,
  delivery,
  simulate,
  address,
  onForeign,
}: {
  rpc: RpcTransport
  journal: Journal
  sequencer: Sequencer
  inclusion: Inclusion
  delivery: Delivery
  simulate: ReturnType<typeof createSimulator>
  address: Hex
  /** Somebody else has used the account's key. */
  onForeign: () => void
}) {
  const resends = new Map<Hex, { at: number; times: number }>()
  /** Nonce and balance of the account at the last pass: once they change, what was refused may be taken. */
  let standing = ''
  /** Nonces that the chain has used and of which no receipt is ours, with the block at which that was first seen. */
  const suspects = new Map<number, number>()
  /** The highest block whose hash has been confirmed, with everything below it. */
  let checkpoint: { number: number; hash: Hex } | undefined
  let running: Promise<void> | undefined
  let isSending = false
  /** The head that the next round of sending is for. */
  let sendFor: Head | undefined
  let isWanted = false

  /** Runs a pass, or another one after the pass that is running. Throws CHAIN_UNREACHABLE when no node answers. */
  function reconcile(): Promise<void> {
    isWanted = true
    running ??= (async () => {
      try {
        while (isWanted) {
          isWanted = false
          await pass()
          if (isWanted) await scheduler.wait(PASS_MS)
        }
      } finally {
        running = undefined
      }
    })()
    return running
  }

  async function pass() {
    const head = await sequencer.refresh()
    await settleUsedNonces(head)
    await watchBlocks(head)
    send(head).catch(logUnexpected)
    for (const orphan of journal.intents.withoutPendingAttempt()) await renew(orphan, head)
  }

  /** Sends what the chain misses beside the passes, for a node may take its time over each answer; one round at a time. */
  async function send(head: Head) {
    sendFor = head
    if (isSending) return
    isSending = true
    try {
      for (let next: Head | undefined = head; next; next = sendFor) {
        sendFor = undefined
        await repairGap(next)
        await sendAgain(next)
        if (sendFor) await scheduler.wait(PASS_MS)
      }
    } finally {
      isSending = false
    }
  }

  /** Settles open attempts whose nonce the chain has used: by our receipt, or by somebody else's transaction. */
  async function settleUsedNonces(head: Head) {
    const used = journal.attempts.pending().filter(attempt => attempt.nonce < head.nonce && !isAwaited(attempt))
    for (let i = 0; i < used.length; i += RECEIPTS) {
      const attempts = used.slice(i, i + RECEIPTS)
      const receipts = await receiptsAt(head, attempts)
      const missing = new Set<number>()
      for (const [index, attempt] of attempts.entries()) {
        const receipt = receipts[index]
        if (receipt) await inclusion.include(attempt, receipt)
        else if (receipt === null) missing.add(attempt.nonce)
      }
      for (const nonce of missing) supersedeWhenCertain(nonce, head)
    }
    for (const nonce of suspects.keys()) if (nonce >= head.nonce) suspects.delete(nonce)
  }

  /** Receipts from a node that has seen the nonces used; undefined where it did not answer. */
  async function receiptsAt(head: Head, attempts: readonly Attempt[]): Promise<(NodeReceipt | null | undefined)[]> {
    const [, ...receipts] = await rpc.batch(
      [transactionCountRequest(address), ...attempts.map(({ hash }) => receiptRequest(hash))],
      ([count]) => Number(count.result) >= head.nonce,
    )
    return receipts.map(({ result }) => result)
  }

  function supersedeWhenCertain(nonce: number, { number }: Head) {
    if (journal.attempts.atNonce(nonce).every(({ state }) => state !== 'pending')) return
    const seenAt = suspects.get(nonce)
    if (seenAt === undefined) suspects.set(nonce, number)
    else if (number > seenAt) {
      suspects.delete(nonce)
      journal.attempts.markNonceUsedElsewhere(nonce)
      onForeign()
      logEvent('foreign transaction', { executor: address, nonce })
    }
  }

  /** Sends or fills the nonces that the chain still misses below the lowest open one: nothing behind them can be mined. */
  async function repairGap(head: Head) {
    const lowest = journal.attempts.pending()[0]?.nonce
    if (lowest === undefined) return
    const missing: Attempt[] = []
    for (let nonce = head.nonce; nonce < Math.min(lowest, head.nonce + REPAIRS); nonce++) {
      const attempts = journal.attempts.atNonce(nonce)
      const included = attempts.find(({ state }) => state === 'mined' || state === 'reverted')
      if (included && !included.final) continue // newer than the head, or lost with its block, which the watch will see
      missing.push(included ?? attempts.at(-1) ?? (await sequencer.fill(nonce)))
    }
    await inTurn(missing, delivery.resend)
  }

  /** Sends open attempts again in the order of their nonces; cancels those whose deadline has passed. */
  async function sendAgain(head: Head) {
    if (standing !== `${head.nonce} ${head.balance}`) for (const resend of resends.values()) resend.times = 0
    standing = `${head.nonce} ${head.balance}`
    const latest = new Map<number, Attempt>()
    for (const attempt of journal.attempts.pending())
      if (attempt.nonce >= head.nonce) latest.set(attempt.nonce, attempt)
    const isNext = ({ nonce }: Attempt) => nonce === head.nonce
    const due = [...latest.values()].filter(attempt => isDue(attempt) && (isNext(attempt) || !isAwaited(attempt)))
    await inTurn(due.slice(0, RESENDS), async attempt => {
      if (!journal.attempts.isPending(attempt.hash)) return true
      // A replacement is followed on its own; the pass goes on.
      if (isExpired(attempt, head)) delivery.cancel(attempt, EXPIRED).catch(logUnexpected)
      else if (attempt.maxFee < head.baseFee) delivery.raiseFee(attempt).catch(logUnexpected)
      else if (!(await delivery.resend(attempt))) return false
      resends.set(attempt.hash, { at: Date.now(), times: (resends.get(attempt.hash)?.times ?? 0) + 1 })
      return true
    })
    for (const hash of resends.keys()) if (!journal.attempts.isPending(hash)) resends.delete(hash)
  }

  /** Whether a node is about to say that it is included: asking beside it only makes a busy lane busier. */
  const isAwaited = ({ hash, sentAt }: Attempt) => delivery.isOnTheWay(hash) && Date.now() - sentAt < AWAITED_MS

  function isDue({ hash, sentAt }: Attempt): boolean {
    const past = resends.get(hash)
    const wait = Math.min(RESEND_MS * 2 ** (past?.times ?? 0), LONGEST_RESEND_MS)
    return Date.now() - (past?.at ?? sentAt) >= wait
  }

  function isExpired({ digest, purpose }: Attempt, head: Head): boolean {
    if (digest === null || purpose === 'cancel') return false
    const intent = journal.intents.find(digest)
    return intent !== undefined && intent.deadline < head.timestamp
  }

  /** Finds blocks of ours that the chain has lost: their transactions are open again, and are sent again. */
  async function watchBlocks(head: Head) {
    if (!journal.attempts.hasWatched()) return
    const numbers = journal.attempts.watchedBlocks(checkpoint === undefined ? 0 : checkpoint.number + 1, BLOCKS)
    const asked = [...(checkpoint === undefined ? [] : [checkpoint.number]), ...numbers].filter(n => n <= head.number)
    if (asked.length === 0) return
    const answers = await rpc.batch(asked.map(number => blockRequest(number)))
    const hashes = new Map(asked.map((n, i) => [n, answers[i]?.result?.hash]))
    if (checkpoint !== undefined && hashes.get(checkpoint.number) !== checkpoint.hash) {
      checkpoint = undefined
      isWanted = true // everything that is not final is looked at again
      return
    }
    for (const number of numbers) {
      const hash = hashes.get(number)
      if (hash === undefined) break
      if (!(await verify(journal.attempts.watchedIn(number).filter(({ blockHash }) => blockHash !== hash)))) break
      checkpoint = { number, hash }
    }
    journal.finalize(Math.min(head.number - CONFIRMATIONS, checkpoint?.number ?? -1))
  }

  /**
   * Looks where attempts are that were in a block which is not the chain's, or not known by its hash; answers whether the
   * node said it of all of them. What became of one that is in a block as before is known, and stays.
   */
  async function verify(attempts: readonly Attempt[]): Promise<boolean> {
    if (attempts.length === 0) return true
    const answers = await rpc.batch(attempts.map(({ hash }) => receiptRequest(hash)))
    let isAnswered = true
    for (const [index, attempt] of attempts.entries()) {
      const receipt = answers[index]?.result
      if (receipt === undefined) isAnswered = false
      else if (receipt !== null && inclusion.isStill(attempt, receipt)) inclusion.move(attempt, receipt)
      else {
        journal.attempts.reopen(attempt.nonce)
        if (attempt.digest !== null) journal.intents.setState(attempt.digest, 'sent')
        if (receipt) await inclusion.include(attempt, receipt)
        else resends.set(attempt.hash, { at: 0, times: 0 })
      }
    }
    return isAnswered
  }

  /** Gives an intent whose nonce was taken by a foreign transaction a new one, if the chain still accepts it. */
  async function renew({ digest, kind, group, groupNonce, deadline, call }: JournalIntent, head: Head) {
    const attempts = journal.attempts.ofIntent(digest)
    const receipts = await receiptsAt(head, attempts)
    const executed = attempts.find((_, index) => receipts[index])
    if (executed) return void (await verify([executed])) // a node that was behind had hidden it
    if (receipts.includes(undefined)) return // what was not answered may have been executed
    if (deadline < head.timestamp) return inclusion.end(digest, { reason: EXPIRED })
    const verdict = await simulate(kind, call, sequencer.feesAt(head))
    if (verdict.is === 'refused') return inclusion.end(digest, { data: verdict.data, reason: verdict.message })
    if (verdict.is !== 'passes') return
    const relay = { digest, kind, group, groupNonce, deadline: BigInt(deadline), call }
    delivery.deliver(await sequencer.prepare(relay, verdict.gas)).catch(logUnexpected)
  }

  return { reconcile }
}

/** Works on attempts in their order, some at once, and begins no more after the first that comes to nothing. */
async function inTurn(attempts: readonly Attempt[], work: (attempt: Attempt) => Promise<boolean>): Promise<void> {
  const rest = attempts.values()
  let isOver = false
  const worker = async () => {
    for (const attempt of rest) {
      if (isOver) return
      if (!(await work(attempt))) isOver = true
    }
  }
  await Promise.all(Array.from({ length: RESENDS_AT_ONCE }, worker))
}
