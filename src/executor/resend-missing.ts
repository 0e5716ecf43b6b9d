import type { Hex } from 'viem'
import type { Attempt } from './attempt-table.ts'
import { logUnexpected } from './background-errors.ts'
import type { ChainHead } from './chain-head.ts'
import type { Lane } from './lane.ts'
import { cancel, expectsResponse, raiseFee, resend } from './send-attempt.ts'
import { signFiller } from './sign-attempt.ts'

export const DEADLINE_PASSED = 'the deadline passed before the call was included'

const MIN_RESEND_DELAY_MS = 1_000
const MAX_RESEND_DELAY_MS = 15_000
/** How many transactions one pass resends, lowest nonces first. */
const MAX_RESENDS_PER_ROUND = 32
/** How many are sent in parallel. A node may hold each response until the transaction is mined. */
const MAX_PARALLEL_RESENDS = 6
/** How many missing nonces one pass fills. */
const MAX_REPAIRS_PER_ROUND = 64

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
  await inNonceOrder(missing, attempt => resend(lane, attempt))
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
  await inNonceOrder(due.slice(0, MAX_RESENDS_PER_ROUND), async attempt => {
    const { hash } = attempt
    const turn = (resends.get(hash)?.times ?? 0) + 1
    if (!journal.attempts.isPending(hash)) return true
    // Replacements are sent in the background; the pass does not wait for their inclusion.
    if (isExpired(lane, attempt, head)) cancel(lane, attempt, DEADLINE_PASSED).catch(logUnexpected)
    else if (attempt.maxFee < head.baseFee) raiseFee(lane, attempt).catch(logUnexpected)
    else if (!(await resend(lane, attempt, turn))) return false
    resends.set(hash, { at: Date.now(), times: turn })
    return true
  })
  for (const hash of resends.keys()) if (!journal.attempts.isPending(hash)) resends.delete(hash)
}

function isDue({ resends }: Lane, { hash, sentAt }: Attempt): boolean {
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
export function expedite({ resends }: Lane, hash: Hex) {
  resends.set(hash, { at: 0, times: 0 })
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
