import type { Address, Hex } from 'viem'
import type { Executor } from '../executor/client.ts'
import type { UnsentOutcome } from '../executor/relay-types.ts'
import { blockRequest } from '../rpc/requests.ts'
import { createTransport, type RpcTransport } from '../rpc/transport.ts'
import { type Facilitator, hostedFacilitator } from './facilitator.ts'
import type { FeeNetwork } from './payment-claim.ts'
import { selfHostedFacilitator } from './self-hosted-facilitator.ts'
import { findSettlement, findUse } from './settlement-lookup.ts'
import type { LedgerEntry, LedgerStore } from './store.ts'

export type Settlement = ReturnType<typeof createSettlement>

/** How long a refused payment is looked up on the chain before its signer is charged again. */
const REFUSED_LOOKUP_MS = 3_600_000
/** How many of a signer's refused payments are looked up, newest first. */
const MAX_REFUSED_LOOKUPS = 50
/** An authorization counts as expired only this long after its expiry, because a node may lag behind. */
const EXPIRY_MARGIN_SECONDS = 60n
/** How many payments whose signers do not come back are resolved with each new payment. One adds at most one. */
const MAX_RESOLVED = 2
/**
 * How long a refused payment is kept, after its refusal and after its expiry, in seconds: it may still be looked up.
 */
const RETENTION_SECONDS = Number(EXPIRY_MARGIN_SECONDS) + REFUSED_LOOKUP_MS / 1_000

/** Settles recorded payments and finds out from the chain what became of them. */
export function createSettlement({ store, relayer }: { store: LedgerStore; relayer: () => Executor }) {
  /** Settles a payment that was just recorded, and records the result. */
  async function settle(
    entry: LedgerEntry,
    network: FeeNetwork,
  ): Promise<
    | { kind: 'settled' }
    | { kind: 'refused'; reason: string }
    | { kind: 'pending' }
    | { kind: 'unavailable' }
    | { kind: 'notAccepted'; outcome: UnsentOutcome }
  > {
    const result = await settleOver(network, entry)
    if (result.kind === 'settled') return { kind: recordSettled(entry, result.transaction) }
    if (result.kind === 'unsent') {
      store.markRefused(entry)
      return result.outcome ? { kind: 'notAccepted', outcome: result.outcome } : { kind: 'unavailable' }
    }
    const transaction = await lookUpOne(entry, network)
    if (transaction !== undefined && transaction !== 'unknown') return { kind: recordSettled(entry, transaction) }
    if (result.kind === 'unknown' || transaction === 'unknown') return { kind: 'pending' }
    store.markRefused(entry)
    return result
  }

  function recordSettled(entry: LedgerEntry, transaction: Hex) {
    store.markSettled(entry, transaction)
    return 'settled' as const
  }

  /** Continues a settlement that was interrupted: by what the chain shows, or by settling the same payment again. */
  async function resume(entry: LedgerEntry, network: FeeNetwork): Promise<'settled' | 'refused' | 'pending'> {
    const found = await lookUpOne(entry, network)
    if (found === 'unknown') return 'pending'
    if (found !== undefined) return recordSettled(entry, found)
    const block = await readNewestBlock(network)
    if (block === undefined) return 'pending'
    if (block.timestamp >= entry.validBefore + EXPIRY_MARGIN_SECONDS) return expire(entry, network)
    if (block.timestamp >= entry.validBefore) return 'pending'
    const result = await settleOver(network, entry)
    const transaction = result.kind === 'settled' ? result.transaction : await lookUpOne(entry, network)
    if (transaction !== undefined && transaction !== 'unknown') return recordSettled(entry, transaction)
    // Our own lane knows what it sent. A hosted facilitator that refuses now may have sent the payment earlier.
    const isFinal = result.kind === 'refused' && network.facilitatorUrl === undefined && transaction === undefined
    if (isFinal) store.markRefused(entry)
    return isFinal ? 'refused' : 'pending'
  }

  /** Refuses an expired payment, after a last look for a settlement during the reads before. */
  async function expire(entry: LedgerEntry, network: FeeNetwork): Promise<'settled' | 'refused' | 'pending'> {
    const transaction = await lookUpOne(entry, network)
    if (transaction === 'unknown') return 'pending'
    if (transaction !== undefined) return recordSettled(entry, transaction)
    store.markRefused(entry)
    return 'refused'
  }

  /**
   * Returns whether a refused payment of a signer settled nevertheless: a facilitator may have been wrong. Looks up the
   * newest ones together, so that more refusals cost no more requests.
   */
  async function findLate(signer: Address, network: FeeNetwork): Promise<boolean | 'unknown'> {
    const refused = store.refusedSince(signer, Date.now() - REFUSED_LOOKUP_MS, MAX_REFUSED_LOOKUPS)
    for (const asset of new Set(refused.map(({ requirements }) => requirements.asset))) {
      const found = await lookUp(
        refused.filter(({ requirements }) => requirements.asset === asset),
        network,
      )
      if (found === 'unknown') return 'unknown'
      if (found === undefined) continue
      store.markSettled(found.entry, found.transaction)
      return true
    }
    return false
  }

  /** Returns the transaction that settled a payment; `unknown` if no node responds. */
  async function lookUpOne(entry: LedgerEntry, network: FeeNetwork): Promise<Hex | 'unknown' | undefined> {
    const found = await lookUp([entry], network)
    return found === undefined || found === 'unknown' ? found : found.transaction
  }

  async function lookUp(
    entries: readonly LedgerEntry[],
    network: FeeNetwork,
  ): Promise<{ entry: LedgerEntry; transaction: Hex } | 'unknown' | undefined> {
    try {
      const found = await findSettlement(transportOf(network), entries.map(toExpectedTransfer))
      return found && { entry: found.payment.entry, transaction: found.transaction }
    } catch {
      return 'unknown'
    }
  }

  /** Deletes refused payments that cannot settle any more and are not looked up again. */
  function deleteRefused(block: FeeBlock) {
    store.deleteRefused({ endedBefore: retentionEnd(block), refusedBefore: Date.now() - 1_000 * RETENTION_SECONDS })
  }

  /**
   * Resolves some payments without a request since their authorizations ended, by what the chain shows:
   * a settled one waits for its signer, any other one is refused. A payment that cannot be read is tried again after an
   * hour. `chain` is the CAIP-2 id of the network.
   */
  async function resolveAbandoned(network: FeeNetwork, chain: string, block: FeeBlock): Promise<void> {
    const abandoned = store.takeAbandoned({
      endedBefore: retentionEnd(block),
      unseenSince: Date.now() - 1_000 * RETENTION_SECONDS,
      max: MAX_RESOLVED,
    })
    for (const entry of abandoned) {
      if (entry.requirements.network !== chain) continue
      const use = await findUse(transportOf(network), toExpectedTransfer(entry), block.number).catch(() => undefined)
      const current = store.find(entry)
      // The signer may have come back during the read.
      if (use === undefined || current?.state !== 'settling' || current.validBefore !== entry.validBefore) continue
      if (use.kind === 'settled') store.markSettled(entry, use.transaction)
      else store.markRefused(entry)
    }
  }

  function settleOver(network: FeeNetwork, { payload, ...payment }: LedgerEntry) {
    if (payload === undefined) throw new Error('A payment that is not settling has no payload')
    return facilitatorOf(network).settle({ ...payment, payload }, payment.requirements)
  }

  const facilitatorOf = (network: FeeNetwork): Facilitator =>
    network.facilitatorUrl === undefined
      ? selfHostedFacilitator(transportOf(network), relayer(), store.hasPaid)
      : hostedFacilitator(network.facilitatorUrl, network.facilitatorTimeoutMs)

  return { settle, resume, findLate, deleteRefused, resolveAbandoned, facilitatorOf }
}

const toExpectedTransfer = (entry: LedgerEntry) => ({
  entry,
  asset: entry.requirements.asset as Address,
  payer: entry.payer,
  nonce: entry.nonce,
  payTo: entry.requirements.payTo as Address,
  amount: BigInt(entry.requirements.amount),
  fromBlock: entry.fromBlock,
  validSeconds: entry.validBefore > entry.fromTime ? entry.validBefore - entry.fromTime : 0n,
})

/** The newest block of a fee network. The time is in Unix seconds. */
type FeeBlock = { number: bigint; timestamp: bigint }

/**
 * Returns the time (Unix seconds) before which an authorization ended long enough ago. The time of a block counts only
 * up to our own clock, because a node may be wrong about it.
 */
const retentionEnd = ({ timestamp }: FeeBlock): number =>
  Math.min(Number(timestamp), Math.floor(Date.now() / 1_000)) - RETENTION_SECONDS

/** Returns the newest block; undefined if no node responds. */
export async function readNewestBlock(network: FeeNetwork): Promise<FeeBlock | undefined> {
  const block = await transportOf(network)
    .read(blockRequest('latest'))
    .catch(() => undefined)
  return block ? { number: BigInt(block.number), timestamp: BigInt(block.timestamp) } : undefined
}

const transports = new Map<string, RpcTransport>()

/** Returns the transport to the nodes of a network, which remembers failed ones. */
function transportOf({ rpcUrls }: FeeNetwork): RpcTransport {
  const key = rpcUrls.join(' ')
  const transport = transports.get(key) ?? createTransport(rpcUrls)
  transports.set(key, transport)
  return transport
}
