import type { Hex } from 'viem'
import type { TransactionFees } from '../chain/transaction-fees.ts'
import type { Attempt, AttemptPurpose } from './attempt-table.ts'
import { replacementFees } from './chain-head.ts'
import type { AdmittedRequest } from './intent-table.ts'
import type { Lane, UnsignedRequest } from './lane.ts'
import type { Call } from './relay-types.ts'
import { feesOf } from './signing-account.ts'

// The only code that assigns the account's nonces. It assigns, signs and journals a nonce without interruption, so
// every nonce has a row, and output gates hold back all bytes until that row is durable.

/** The gas limit of a zero-value transfer, without the gas for L1. */
const CANCEL_GAS = 50_000
/** The part of its limit for L1, relative to the present: it must be mined even while the price of L1 rises. */
const L1_FACTOR = 2
const MAX_SIGNED_PER_TURN = 32
/** The maximum age of the head that prices a replacement. */
const MAX_HEAD_AGE_MS = 1_000

/**
 * Signs a request at the next nonce, with the call as it was simulated. Resolves once its bytes are in the journal.
 */
export function signAtNextNonce(
  lane: Lane,
  request: AdmittedRequest,
  { call, gas }: Pick<UnsignedRequest, 'call' | 'gas'>,
): Promise<Attempt> {
  const prepared = Promise.withResolvers<Attempt>()
  lane.unsigned.push({ request, call, gas, prepared })
  void signAll(lane)
  return prepared.promise
}

async function signAll(lane: Lane): Promise<void> {
  if (lane.isSigning) return
  lane.isSigning = true
  try {
    while (lane.unsigned.length > 0) {
      const fees = lane.feesAt(lane.head ?? (await lane.refreshHead()))
      await signTurn(lane, lane.unsigned.splice(0, MAX_SIGNED_PER_TURN), fees)
      // The next requests queue up while these rows are written to disk.
      await lane.sync()
    }
  } finally {
    lane.isSigning = false
  }
}

/**
 * Signs requests at successive nonces. Signing is synchronous behind its promise, so only microtasks run until the rows
 * are written.
 */
async function signTurn(lane: Lane, requests: readonly UnsignedRequest[], fees: TransactionFees): Promise<void> {
  const signed: (Pick<UnsignedRequest, 'request' | 'prepared'> & { attempt: Attempt })[] = []
  for (const { request, call, gas, prepared } of requests) {
    try {
      const transaction = { nonce: lane.nextNonce + signed.length, gas, call, fees }
      signed.push({ request, attempt: await sign(lane, transaction, request.digest, 'call'), prepared })
    } catch (error) {
      prepared.reject(error)
    }
  }
  if (signed.length > 0) lane.journal.prepare(signed)
  const noted = lane.storeNotes(signed.map(({ request: { note }, attempt: { hash } }) => ({ hash, note })))
  for (const { attempt } of signed) lane.nextNonce = Math.max(lane.nextNonce, attempt.nonce + 1)
  for (const { attempt, prepared } of signed) prepared.resolve(noted.then(() => attempt))
}

/**
 * Signs a replacement at an attempt's nonce with the fees of the present, which are higher: the given call, or without
 * a call a zero-value transfer that cancels the intent. At most one of the attempts at a nonce is mined.
 */
export async function signReplacement(
  lane: Lane,
  attempt: Attempt,
  next?: { call: Call; gas: number },
): Promise<Attempt> {
  const fees = lane.feesAt(await lane.headWithin(MAX_HEAD_AGE_MS))
  const transaction = {
    nonce: attempt.nonce,
    gas: next?.gas ?? (await cancelGas(lane)),
    call: next?.call ?? cancelCall(lane),
    fees: replacementFees(fees, feesOf(attempt.raw)),
  }
  const replacement = await sign(lane, transaction, attempt.digest, next === undefined ? 'cancel' : 'call')
  lane.journal.attempts.insert([replacement])
  const intent = attempt.digest === null || next === undefined ? undefined : lane.journal.intents.find(attempt.digest)
  await lane.storeNotes([{ hash: replacement.hash, note: intent?.note }])
  return replacement
}

/** Signs a zero-value transfer for a nonce without an attempt, so that later nonces can be mined. */
export async function signFiller(lane: Lane, nonce: number): Promise<Attempt> {
  const fees = lane.feesAt(await lane.headWithin(MAX_HEAD_AGE_MS))
  const filler = await sign(lane, { nonce, gas: await cancelGas(lane), call: cancelCall(lane), fees }, null, 'cancel')
  lane.journal.attempts.insert([filler])
  return filler
}

/** Returns the gas limit of a zero-value transfer at the moment. */
export const cancelGas = async (lane: Lane): Promise<number> =>
  CANCEL_GAS + L1_FACTOR * (await lane.l1Gas.of(cancelCall(lane), { isFresh: true }))

const cancelCall = ({ address }: Lane): Call => ({ to: address, data: '0x' })

async function sign(
  { account }: Lane,
  transaction: { nonce: number; gas: number; call: Call; fees: TransactionFees },
  digest: Hex | null,
  purpose: AttemptPurpose,
): Promise<Attempt> {
  const { raw, hash } = await account.sign(transaction)
  return {
    hash,
    nonce: transaction.nonce,
    digest,
    purpose,
    raw,
    gas: transaction.gas,
    maxFee: transaction.fees.maxFeePerGas,
    sentAt: Date.now(),
    state: 'pending',
    blockNumber: null,
    blockHash: null,
    final: false,
    gasUsed: 0,
  }
}
