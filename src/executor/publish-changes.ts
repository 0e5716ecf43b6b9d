import type { Address, Hex } from 'viem'
import type { NodeLog } from '../rpc/requests.ts'
import { logUnexpected } from './background-errors.ts'

/** An intent passes through several states within a block. Its state is published at most once in this interval. */
const NOTIFY_INTERVAL_MS = 200
/** Logs are collected for this long and forwarded in one call. */
const FORWARD_INTERVAL_MS = 250

/**
 * Returns a function that is called with the digest of each intent whose state changed; it publishes the current records
 * in batches. Delivery is at-most-once: a batch that fails is lost.
 */
export const createStateNotifier = <Record>(
  findAll: (digests: readonly Hex[]) => Record[],
  notify: (records: Record[]) => Promise<void>,
): ((digest: Hex) => void) =>
  collect(NOTIFY_INTERVAL_MS, digests => {
    const records = findAll([...new Set(digests)])
    if (records.length > 0) notify(records).catch(logUnexpected)
  })

/**
 * Returns a function that forwards logs of receipts to the indexer, so that it reads the chain soon, and has relayed trades
 * while it does not keep up. Only logs of `addresses` are forwarded. Failures are ignored: the indexer reads the chain.
 */
export function createReceiptForwarder(
  namespace: Env['HISTORY_INDEXER'],
  chainId: number,
  addresses: readonly Address[],
): (logs: readonly NodeLog[]) => void {
  const indexed = new Set(addresses.map(address => address.toLowerCase()))
  const forward = collect<NodeLog>(FORWARD_INTERVAL_MS, logs => {
    namespace
      .getByName(`${chainId}`)
      .addRelayed(logs)
      .catch(() => {})
  })
  return logs => {
    for (const log of logs) if (indexed.has(log.address.toLowerCase())) forward(log)
  }
}

/** Returns a function that collects items and passes them on, at most once in an interval. */
function collect<Item>(intervalMs: number, flush: (items: Item[]) => void): (item: Item) => void {
  let items: Item[] = []
  return item => {
    items.push(item)
    if (items.length > 1) return
    setTimeout(() => {
      const collected = items
      items = []
      flush(collected)
    }, intervalMs)
  }
}
