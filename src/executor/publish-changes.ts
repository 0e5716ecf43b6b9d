import type { Hex } from 'viem'
import { logUnexpected } from '../rpc/node-errors.ts'
import type { NodeLog, NodeReceipt } from '../rpc/requests.ts'
import type { IntentState, OnChange } from './intent-table.ts'

/** The state of an intent is published at most once in this interval. */
const NOTIFY_INTERVAL_MS = 200
/**
 * A state on the way to inclusion is published once it has lasted about this long: most end within a block, and each
 * event is stored.
 */
const MIN_OPEN_STATE_MS = 1_000
const OPEN_STATES: readonly IntentState[] = ['received', 'prepared', 'sent']
/** Logs are collected for this long and forwarded in one call. */
const FORWARD_INTERVAL_MS = 250

/**
 * Returns a function that publishes the current records of changed intents in batches. An intent is read from the
 * journal once it ends, or has been open for long. Delivery is at-most-once: a batch that fails is lost.
 */
export function createStateNotifier<Record extends { digest: Hex; state: IntentState }>(
  findAll: (digests: readonly Hex[]) => Record[],
  notify: (records: Record[]) => Promise<void>,
): OnChange {
  const isOpen = (state: IntentState) => OPEN_STATES.includes(state)
  const open = new Set<Hex>()
  function publish(records: Record[]) {
    if (records.length > 0) notify(records).catch(logUnexpected)
  }
  const publishOpen = collect<Hex>(MIN_OPEN_STATE_MS, digests => {
    const stillOpen = digests.filter(digest => open.delete(digest))
    if (stillOpen.length > 0) publish(findAll(stillOpen).filter(({ state }) => isOpen(state)))
  })
  const publishEnded = collect<Hex>(NOTIFY_INTERVAL_MS, digests => {
    const records = findAll([...new Set(digests)])
    publish(records.filter(({ state }) => !isOpen(state)))
    for (const { digest, state } of records) if (isOpen(state)) add(digest)
  })
  function add(digest: Hex) {
    if (open.has(digest)) return
    open.add(digest)
    publishOpen(digest)
  }
  return (digest, state) => {
    if (isOpen(state)) return add(digest)
    open.delete(digest)
    publishEnded(digest)
  }
}

/**
 * Returns a function that forwards to the indexer what the contract that a transaction calls has logged, so that the
 * keeper learns of it at once. Failures are ignored: the indexer reads the chain.
 */
export function createReceiptForwarder(
  namespace: Env['HISTORY_INDEXER'],
  chainId: number,
): (receipt: Pick<NodeReceipt, 'to' | 'logs'>) => void {
  const forward = collect<NodeLog>(FORWARD_INTERVAL_MS, logs => {
    namespace
      .getByName(`${chainId}`)
      .relayed(logs)
      .catch(() => {})
  })
  return ({ to, logs }) => {
    for (const log of logs) if (log.address.toLowerCase() === to?.toLowerCase()) forward(log)
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
