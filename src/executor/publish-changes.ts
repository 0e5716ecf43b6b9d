import type { Address, Hex } from 'viem'
import type { HistoryIndexerObject } from '../history/object.ts'
import type { NodeLog } from '../rpc/requests.ts'
import { logUnexpected } from './background-errors.ts'

/** An intent passes through several states within a block. Its state is published at most once in this interval. */
const NOTIFY_INTERVAL_MS = 200

/**
 * Returns a function that is called with the digest of each intent whose state changed; it publishes the current records
 * in batches. Delivery is at-most-once: a batch that fails is lost.
 */
export function createStateNotifier<Record>(
  findAll: (digests: readonly Hex[]) => Record[],
  notify: (records: Record[]) => Promise<void>,
): (digest: Hex) => void {
  const changed = new Set<Hex>()
  function flush() {
    const records = findAll([...changed])
    changed.clear()
    if (records.length > 0) notify(records).catch(logUnexpected)
  }
  return digest => {
    if (changed.size === 0) setTimeout(flush, NOTIFY_INTERVAL_MS)
    changed.add(digest)
  }
}

/** Logs are collected for this long and forwarded in one call. */
const FORWARD_INTERVAL_MS = 250

/**
 * Returns a function that forwards logs of receipts to the indexer, so that it reads the chain soon, and has relayed trades
 * while it does not keep up. Only logs of `addresses` are forwarded. Failures are ignored: the indexer reads the chain.
 */
export function createReceiptForwarder(
  namespace: DurableObjectNamespace<HistoryIndexerObject>,
  chainId: number,
  addresses: readonly Address[],
): (logs: readonly NodeLog[]) => void {
  const indexed = new Set(addresses.map(address => address.toLowerCase()))
  let collected: NodeLog[] = []

  function forward() {
    const logs = collected
    collected = []
    namespace
      .getByName(`${chainId}`)
      .addRelayed(logs)
      .catch(() => {})
  }

  return logs => {
    const relevant = logs.filter(({ address }) => indexed.has(address.toLowerCase()))
    if (relevant.length === 0) return
    if (collected.length === 0) setTimeout(forward, FORWARD_INTERVAL_MS)
    collected.push(...relevant)
  }
}
