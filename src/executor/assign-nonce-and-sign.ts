import type { Hex } from 'viem'
import type { Attempt } from './attempt-table.ts'
import type { ChainHead, HeadCache } from './chain-head.ts'
import type { AttemptPurpose } from './intent-record.ts'
import type { AdmittedRequest } from './intent-table.ts'
import type { Call } from './relay-types.ts'
import type { SigningAccount } from './signing-account.ts'
import type { Journal } from './store.ts'
import { feesAt, replacementFees, type TransactionFees } from './transaction-fees.ts'

export type AttemptSigner = ReturnType<typeof createAttemptSigner>

/** The gas limit of a zero-value transfer, with room for a rollup's data fee. */
const CANCEL_GAS = 100_000
const MAX_SIGNED_PER_TURN = 32
/** The maximum age of the head that prices a replacement. */
const MAX_HEAD_AGE_MS = 1_000

type QueuedRequest = { request: AdmittedRequest; gas: number; prepared: PromiseWithResolvers<Attempt> }

/**
 * The only code that assigns the account's nonces. It assigns, signs and journals a nonce without interruption, so
 * every nonce has a row, and output gates hold back all bytes until that row is durable.
 */
export function createAttemptSigner({
  account,
  heads,
  journal,
  priorityFeeWei,
  sync,
  onNewChain,
}: {
  account: SigningAccount
  heads: HeadCache
  journal: Journal
  priorityFeeWei: bigint
  /** Resolves when all writes so far are durable. */
  sync: () => Promise<void>
  /** Called when another chain has the same id, for example after a restart of a development node. */
  onNewChain: () => void
}) {
  const cancelCall: Call = { to: account.address, data: '0x' }
  const queue: QueuedRequest[] = []
  let nextNonce = Math.max(journal.attempts.highestNonce() + 1, Number(journal.get('nonce') ?? 0))
  let isDraining = false

  /** Adopts the chain and the nonce of a head. */
  function observe({ genesis, nonce }: ChainHead) {
    const known = journal.get('genesis')
    if (known !== genesis) {
      if (known !== undefined) {
        onNewChain()
        nextNonce = 0
      }
      journal.set('genesis', genesis)
    }
    nextNonce = Math.max(nextNonce, nonce)
  }

  async function sign(
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

  /** Signs a request at the next nonce. Resolves once its bytes are in the journal. */
  function prepare(request: AdmittedRequest, gas: number): Promise<Attempt> {
    const prepared = Promise.withResolvers<Attempt>()
    queue.push({ request, gas, prepared })
    void drain()
    return prepared.promise
  }

  async function drain() {
    if (isDraining) return
    isDraining = true
    try {
      while (queue.length > 0) {
        const fees = feesAt(heads.last() ?? (await heads.refresh()), priorityFeeWei)
        const signed: { request: AdmittedRequest; attempt: Attempt; prepared: PromiseWithResolvers<Attempt> }[] = []
        // Signing is synchronous behind its promise, so only microtasks run until the rows are written.
        for (const { request, gas, prepared } of queue.splice(0, MAX_SIGNED_PER_TURN)) {
          try {
            const transaction = { nonce: nextNonce + signed.length, gas, call: request.call, fees }
            signed.push({ request, attempt: await sign(transaction, request.digest, 'call'), prepared })
          } catch (error) {
            prepared.reject(error)
          }
        }
        if (signed.length > 0) journal.prepare(signed)
        for (const { attempt } of signed) nextNonce = Math.max(nextNonce, attempt.nonce + 1)
        for (const { attempt, prepared } of signed) prepared.resolve(attempt)
        // The next requests queue up while these rows are written to disk.
        await sync()
      }
    } finally {
      isDraining = false
    }
  }

  /**
   * Signs a replacement at an attempt's nonce with a higher fee: the given call, or without a call a zero-value
   * transfer that cancels the intent. At most one of the attempts at a nonce is mined.
   */
  async function replace(attempt: Attempt, call?: Call): Promise<Attempt> {
    const fees = feesAt(await heads.within(MAX_HEAD_AGE_MS), priorityFeeWei)
    const transaction = {
      nonce: attempt.nonce,
      gas: call === undefined ? CANCEL_GAS : attempt.gas,
      call: call ?? cancelCall,
      fees: replacementFees(fees, attempt.maxFee),
    }
    const replacement = await sign(transaction, attempt.digest, call === undefined ? 'cancel' : 'call')
    journal.attempts.insert([replacement])
    return replacement
  }

  /** Signs a zero-value transfer for a nonce without an attempt, so that later nonces can be mined. */
  async function fill(nonce: number): Promise<Attempt> {
    const fees = feesAt(await heads.within(MAX_HEAD_AGE_MS), priorityFeeWei)
    const filler = await sign({ nonce, gas: CANCEL_GAS, call: cancelCall, fees }, null, 'cancel')
    journal.attempts.insert([filler])
    return filler
  }

  return { observe, prepare, replace, fill, nextNonce: () => nextNonce }
}
