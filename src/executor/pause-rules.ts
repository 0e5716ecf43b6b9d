import { type Address, getAddress, type Hex } from 'viem'
import { blockTransactionsRequest, transactionCountRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { EXIT_KINDS, type IntentKind, type RelayRequest } from './relay-types.ts'
import { partyOf } from './requester.ts'
import type { RevertCounter } from './revert-counter.ts'
import type { Journal } from './store.ts'

/** The lane accepts no intents while its oldest transaction has been pending for longer than this. */
const MAX_PENDING_AGE_MS = 5_000
/** A party with this many reverts within the window must wait, because the executor pays for every revert. */
const MAX_REVERTS = 3
const REVERT_WINDOW_MS = 600_000
/** The lane pauses after this many foreign transactions in the window: someone else has its key. */
const MAX_FOREIGN_TRANSACTIONS = 2
const FOREIGN_WINDOW_MS = 600_000
/** Kinds that only the service itself relays. */
const SERVICE_KINDS: readonly IntentKind[] = ['prices', 'exit', 'feedback', 'checkpoint', 'vaultRequests']
/**
 * After a reverted settlement, its payer waits this long; each further revert within a day makes the wait four times as
 * long.
 */
const SETTLEMENT_WAIT_MS = 60_000
const SETTLEMENT_WAIT_FACTOR = 4
const DAY_MS = 86_400_000

/** Whether the lane waits for a transaction that has been pending for too long. */
export function isBlocked(journal: Journal): boolean {
  const since = journal.attempts.lowestPendingSince()
  return since !== undefined && Date.now() - since > MAX_PENDING_AGE_MS
}

/**
 * Records that others used nonces of the account, from `nonce` on. Those beyond the number that pauses the lane are
 * ignored.
 */
export function recordForeignTransactions(journal: Journal, nonce: number, count = 1) {
  const uses = Array.from({ length: Math.min(count, MAX_FOREIGN_TRANSACTIONS) }, (_, index) => ({
    at: Date.now(),
    nonce: nonce + index,
  }))
  journal.set('foreign', JSON.stringify([...recentForeignUses(journal), ...uses]))
}

/**
 * Whether the journal was restored from a backup lately: whatever used the account since the backup was the lane
 * itself, also what is mined only now.
 */
export const isRestored = (journal: Journal): boolean =>
  Date.now() - Number(journal.get('restored') ?? 0) < FOREIGN_WINDOW_MS

/** Resumes a lane that foreign use has paused. Returns whether it was paused. */
export function forgetForeignUse(journal: Journal): boolean {
  const wasPaused = secondsOfForeignUse(journal) > 0
  journal.set('foreign', '[]')
  return wasPaused
}

/** Returns the seconds until the lane resumes after foreign use of its key; 0 if it is not paused. */
export function secondsOfForeignUse(journal: Journal): number {
  const use = recentForeignUses(journal).at(-MAX_FOREIGN_TRANSACTIONS)
  return use === undefined ? 0 : secondsUntil(use.at + FOREIGN_WINDOW_MS)
}

/** A foreign transaction, if a node still shows it. */
export type ForeignTransaction = { hash: Hex; to: Address | undefined }

/** Records what a foreign transaction was. */
export function describeForeignTransaction(journal: Journal, nonce: number, transaction: ForeignTransaction) {
  const uses = recentForeignUses(journal).map(use => (use.nonce === nonce ? { ...use, ...transaction } : use))
  journal.set('foreign', JSON.stringify(uses))
}

/** The last nonce that others used in the window, and since when they do (milliseconds). */
export type ForeignUse = { nonce: number; since: number } & Partial<ForeignTransaction>

export function foreignUseOf(journal: Journal): ForeignUse | undefined {
  const uses = recentForeignUses(journal)
  const [first, last] = [uses[0], uses.at(-1)]
  return first && last && { nonce: last.nonce, since: first.at, ...(last.hash && { hash: last.hash, to: last.to }) }
}

type RecentUse = { at: number; nonce: number } & Partial<ForeignTransaction>

function recentForeignUses(journal: Journal): RecentUse[] {
  const uses: RecentUse[] = JSON.parse(journal.get('foreign') ?? '[]')
  return uses.filter(({ at }) => at > Date.now() - FOREIGN_WINDOW_MS)
}

/**
 * Returns the seconds until a party may relay again after too many reverts; 0 if it may. Reductions wait only for
 * reverts of their own: the exit reserve bounds their gas.
 */
export function secondsOfRevertWait(counter: RevertCounter, request: RelayRequest): number {
  const { kind, by } = request
  const party = partyOf(by)
  if (SERVICE_KINDS.includes(kind)) return 0
  if (kind === 'settle') {
    const reverts = counter.timesSince(party, Date.now() - DAY_MS)
    const [newest] = reverts
    const waitMs = SETTLEMENT_WAIT_MS * SETTLEMENT_WAIT_FACTOR ** (reverts.length - 1)
    return newest === undefined ? 0 : Math.max(0, secondsUntil(newest + Math.min(waitMs, DAY_MS)))
  }
  const kinds = EXIT_KINDS.includes(kind) ? EXIT_KINDS : undefined
  const reverts = counter.timesSince(party, Date.now() - REVERT_WINDOW_MS, kinds)
  const oldest = reverts[MAX_REVERTS - 1]
  return oldest === undefined ? 0 : secondsUntil(oldest + REVERT_WINDOW_MS)
}

/** Whether a party had a revert recently. */
export const hasReverted = (counter: RevertCounter, party: string): boolean =>
  counter.timesSince(party, Date.now() - REVERT_WINDOW_MS).length > 0

const secondsUntil = (time: number): number => Math.ceil((time - Date.now()) / 1000)

/** How many blocks back a transaction is searched: nodes keep the state of some hundred to thousand blocks. */
const MAX_BLOCKS = 4_096

/**
 * Finds the transaction with which an account used a nonce: bisects the account's transaction counts. Returns undefined
 * if the nodes no longer have the state. Throws CHAIN_UNREACHABLE.
 */
export async function findNonceUse(
  rpc: RpcTransport,
  { address, nonce, head }: { address: Address; nonce: number; head: number },
): Promise<ForeignTransaction | undefined> {
  let [low, high] = [Math.max(0, head - MAX_BLOCKS), head]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const { result } = await rpc.call(transactionCountRequest(address, middle)).catch(() => ({ result: undefined }))
    // A node without the state of a block has that of newer ones.
    if (result !== undefined && Number(result) > nonce) high = middle
    else low = middle + 1
  }
  const { result: block } = await rpc.call(blockTransactionsRequest(low))
  const transaction = block?.transactions.find(
    each => getAddress(each.from) === address && Number(each.nonce) === nonce,
  )
  return transaction && { hash: transaction.hash, to: transaction.to ? getAddress(transaction.to) : undefined }
}
