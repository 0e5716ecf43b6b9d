import type { RpcTransport } from '../rpc/transport.ts'
import type { Attempt } from './attempt-table.ts'
import { type Head, readHead } from './chain-head.ts'
import type { Call, RelayRequest } from './intent.ts'
import type { Account, Fees } from './signing-account.ts'
import type { Journal } from './store.ts'

export type Sequencer = ReturnType<typeof createSequencer>

/** A transfer of nothing costs this much, plus what a rollup charges for its data. */
const NOOP_GAS = 100_000
/** Rows that one turn writes together. */
const BATCH = 32
/** A replacement must bid this much more for a pool to take it in. */
const REPLACEMENT_PERCENT = 125n

/**
 * The single writer of the account's nonce. A nonce is allocated, signed and journaled without anything else running in
 * between, so a nonce without a row cannot exist, and no bytes leave before their row is durable (output gates).
 */
export function createSequencer({
  account,
  chainId,
  rpc,
  journal,
  priorityFeeWei,
  sync,
  onNewChain,
}: {
  account: Account
  chainId: number
  rpc: RpcTransport
  journal: Journal
  priorityFeeWei: bigint
  /** Resolves when everything written so far is durable. */
  sync: () => Promise<void>
  /** The chain under this id is another one than before, as after a restart of a development node. */
  onNewChain: () => void
}) {
  const noop: Call = { to: account.address, data: '0x' }
  let next = journal.attempts.highestNonce() + 1
  let head: Head | undefined
  let reading: Promise<Head> | undefined
  let isDraining = false
  const queue: { relay: RelayRequest; gas: number; prepared: PromiseWithResolvers<Attempt> }[] = []

  /** Reads the head anew, one read at a time; throws CHAIN_UNREACHABLE. */
  function refresh(): Promise<Head> {
    reading ??= readHead(rpc, account.address, chainId)
      .then(fresh => {
        adopt(fresh)
        return fresh
      })
      .finally(() => {
        reading = undefined
      })
    return reading
  }

  function adopt(fresh: Head) {
    const genesis = journal.get('genesis')
    if (genesis !== fresh.genesis) {
      if (genesis !== undefined) {
        onNewChain()
        next = 0
      }
      journal.set('genesis', fresh.genesis)
    }
    head = fresh
    next = Math.max(next, fresh.nonce)
  }

  /** The head, at most this old. */
  const headWithin = async (milliseconds: number): Promise<Head> =>
    head !== undefined && Date.now() - head.readAt <= milliseconds ? head : refresh()

  /** Makes the next reading go to the chain. */
  const expire = () => {
    if (head) head = { ...head, readAt: 0 }
  }

  const feesAt = ({ baseFee }: Head): Fees => ({
    maxFeePerGas: (baseFee === 0n ? 1n : 2n * baseFee) + priorityFeeWei,
    maxPriorityFeePerGas: priorityFeeWei,
  })

  async function sign(
    { nonce, gas, call, fees }: { nonce: number; gas: number; call: Call; fees: Fees },
    { digest, purpose }: Pick<Attempt, 'digest' | 'purpose'>,
  ): Promise<Attempt> {
    const signed = await account.sign({ nonce, gas: BigInt(gas), fees, call })
    const facts = { nonce, gas, digest, purpose, maxFee: fees.maxFeePerGas, sentAt: Date.now() }
    return { ...signed, ...facts, state: 'pending', blockNumber: null, blockHash: null, final: false }
  }

  /** Gives an intent the next nonce; resolves once its signed bytes are in the journal. */
  function prepare(relay: RelayRequest, gas: number): Promise<Attempt> {
    const prepared = Promise.withResolvers<Attempt>()
    queue.push({ relay, gas, prepared })
    void drain()
    return prepared.promise
  }

  async function drain() {
    if (isDraining) return
    isDraining = true
    try {
      while (queue.length > 0) {
        const fees = feesAt(head ?? (await refresh()))
        const signed: { relay: RelayRequest; attempt: Attempt; prepared: PromiseWithResolvers<Attempt> }[] = []
        // Signing is synchronous work behind a promise: only microtasks run until the rows are written.
        for (const { relay, gas, prepared } of queue.splice(0, BATCH)) {
          try {
            const transaction = { nonce: next + signed.length, gas, call: relay.call, fees }
            const attempt = await sign(transaction, { digest: relay.digest, purpose: 'call' })
            signed.push({ relay, attempt, prepared })
          } catch (error) {
            prepared.reject(error)
          }
        }
        for (const { relay, attempt } of signed) journal.prepare(relay, attempt)
        for (const { attempt } of signed) next = Math.max(next, attempt.nonce + 1)
        for (const { attempt, prepared } of signed) prepared.resolve(attempt)
        // While these rows reach the disk, the next ones gather.
        await sync()
      }
    } finally {
      isDraining = false
    }
  }

  /**
   * Signs other bytes for an attempt's own nonce, with a higher bid: the call, or without one a transfer of nothing. At
   * most one of the two can ever be mined.
   */
  async function replace(attempt: Attempt, call?: Call): Promise<Attempt> {
    const fees = feesAt(await headWithin(1_000))
    const bid = (attempt.maxFee * REPLACEMENT_PERCENT) / 100n + 1n
    const raised = { ...fees, maxFeePerGas: bid > fees.maxFeePerGas ? bid : fees.maxFeePerGas }
    const content = call === undefined ? { gas: NOOP_GAS, call: noop } : { gas: attempt.gas, call }
    const purpose = call === undefined ? 'cancel' : 'call'
    const replacement = await sign(
      { nonce: attempt.nonce, fees: raised, ...content },
      { digest: attempt.digest, purpose },
    )
    journal.attempts.insert(replacement)
    return replacement
  }

  /** Signs a transfer of nothing for a nonce that no row covers, so that its successors can be mined. */
  async function fill(nonce: number): Promise<Attempt> {
    const fees = feesAt(await headWithin(1_000))
    const filler = await sign({ nonce, gas: NOOP_GAS, call: noop, fees }, { digest: null, purpose: 'cancel' })
    journal.attempts.insert(filler)
    return filler
  }

  return { prepare, replace, fill, refresh, headWithin, expire, feesAt, lastHead: () => head }
}
