import type { Hex } from 'viem'
import type { AttemptSigner } from './assign-nonce-and-sign.ts'
import type { Attempt } from './attempt-table.ts'
import { logUnexpected } from './background-errors.ts'
import type { ChainHead } from './chain-head.ts'
import type { AttemptSender } from './send-until-included.ts'
import type { Journal } from './store.ts'

export type Resender = ReturnType<typeof createResender>

export const DEADLINE_PASSED = 'the deadline passed before the call was included'

const MIN_RESEND_DELAY_MS = 1_000
const MAX_RESEND_DELAY_MS = 15_000
const MIN_ROUND_INTERVAL_MS = 100
/** How many transactions one pass resends, lowest nonces first. */
const MAX_RESENDS_PER_ROUND = 32
/** How many are sent in parallel. A node may hold each response until the transaction is mined. */
const MAX_PARALLEL_RESENDS = 6
/** How many missing nonces one pass fills. */
const MAX_REPAIRS_PER_ROUND = 64

/**
 * Resends transactions that the chain lacks, in background passes: a node may respond slowly, and reconciliation does
 * not wait.
 */
export function createResender({
  journal,
  attemptSigner,
  sender,
}: {
  journal: Journal
  attemptSigner: AttemptSigner
  sender: AttemptSender
}) {
  /** When and how often attempts were resent; the delay doubles each time. */
  const resends = new Map<Hex, { at: number; times: number }>()
  /** Nonce and balance at the last pass. After a change a node may accept a transaction that it rejected before. */
  let accountState = ''
  let isRunning = false
  /** The head for the next pass. */
  let nextHead: ChainHead | undefined

  /** Runs a pass for a head. A call during a pass schedules the next pass, for the newest head. */
  async function run(head: ChainHead): Promise<void> {
    nextHead = head
    if (isRunning) return
    isRunning = true
    try {
      for (let current: ChainHead | undefined = head; current; current = nextHead) {
        nextHead = undefined
        await repairGap(current)
        await resendPending(current)
        if (nextHead) await scheduler.wait(MIN_ROUND_INTERVAL_MS)
      }
    } finally {
      isRunning = false
    }
  }

  /** Resends or fills the nonces below the lowest pending one that the chain lacks. Later nonces wait for them. */
  async function repairGap(head: ChainHead) {
    const lowest = journal.attempts.pending()[0]?.nonce
    if (lowest === undefined) return
    const missing: Attempt[] = []
    for (let nonce = head.nonce; nonce < Math.min(lowest, head.nonce + MAX_REPAIRS_PER_ROUND); nonce++) {
      const attempts = journal.attempts.atNonce(nonce)
      const included = attempts.find(({ state }) => state === 'mined' || state === 'reverted')
      // It was mined after this head, or a reorg removed its block, which the reorg check will find.
      if (included && !included.final) continue
      missing.push(included ?? attempts.at(-1) ?? (await attemptSigner.fill(nonce)))
    }
    await inNonceOrder(missing, attempt => sender.resend(attempt))
  }

  /** Resends pending attempts in the order of their nonces, and cancels those whose deadline has passed. */
  async function resendPending(head: ChainHead) {
    const state = `${head.nonce} ${head.balance}`
    if (accountState !== state) for (const resend of resends.values()) resend.times = 0
    accountState = state
    const latest = new Map<number, Attempt>()
    for (const attempt of journal.attempts.pending())
      if (attempt.nonce >= head.nonce) latest.set(attempt.nonce, attempt)
    const due = [...latest.values()].filter(
      attempt => isDue(attempt) && (attempt.nonce === head.nonce || !sender.expectsResponse(attempt)),
    )
    await inNonceOrder(due.slice(0, MAX_RESENDS_PER_ROUND), async attempt => {
      const { hash } = attempt
      const turn = (resends.get(hash)?.times ?? 0) + 1
      if (!journal.attempts.isPending(hash)) return true
      // Replacements are sent in the background; the pass does not wait for their inclusion.
      if (isExpired(attempt, head)) sender.cancel(attempt, DEADLINE_PASSED).catch(logUnexpected)
      else if (attempt.maxFee < head.baseFee) sender.raiseFee(attempt).catch(logUnexpected)
      else if (!(await sender.resend(attempt, turn))) return false
      resends.set(hash, { at: Date.now(), times: turn })
      return true
    })
    for (const hash of resends.keys()) if (!journal.attempts.isPending(hash)) resends.delete(hash)
  }

  function isDue({ hash, sentAt }: Attempt): boolean {
    const last = resends.get(hash)
    const delay = Math.min(MIN_RESEND_DELAY_MS * 2 ** (last?.times ?? 0), MAX_RESEND_DELAY_MS)
    return Date.now() - (last?.at ?? sentAt) >= delay
  }

  function isExpired({ digest, purpose }: Attempt, head: ChainHead): boolean {
    if (digest === null || purpose === 'cancel') return false
    const intent = journal.intents.find(digest)
    return intent !== undefined && intent.deadline < head.timestamp
  }

  /** Makes the next pass resend an attempt without a delay. */
  function expedite(hash: Hex) {
    resends.set(hash, { at: 0, times: 0 })
  }

  return { run, expedite }
}

/** Calls `work` for attempts in order, several in parallel, and starts no more once a call returns false. */
async function inNonceOrder(attempts: readonly Attempt[], work: (attempt: Attempt) => Promise<boolean>): Promise<void> {
  const rest = attempts.values()
  let isStopped = false
  const worker = async () => {
    for (const attempt of rest) {
      if (isStopped) return
      if (!(await work(attempt))) isStopped = true
    }
  }
  await Promise.all(Array.from({ length: MAX_PARALLEL_RESENDS }, worker))
}
