import type { Hex } from 'viem'
import { logUnexpected } from '../rpc/node-errors.ts'
import type { NodeLog, NodeReceipt } from '../rpc/requests.ts'
import type { IntentState } from './intent-table.ts'

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
 * Returns a function that is called with the digest of each intent whose state changed; it publishes the current
 * records in batches. Delivery is at-most-once: a batch that fails is lost.
 */
export function createStateNotifier<Record extends { digest: Hex; state: IntentState }>(
  findAll: (digests: readonly Hex[]) => Record[],
  notify: (records: Record[]) => Promise<void>,
): (digest: Hex) => void {
  const isOpen = ({ state }: Record) => OPEN_STATES.includes(state)
  function publish(records: Record[]) {
    if (records.length > 0) notify(records).catch(logUnexpected)
  }
  const publishIfOpen = collect<Hex>(MIN_OPEN_STATE_MS - NOTIFY_INTERVAL_MS, digests =>
    publish(findAll([...new Set(digests)]).filter(isOpen)),
  )
  return collect(NOTIFY_INTERVAL_MS, digests => {
    const records = findAll([...new Set(digests)])
    publish(records.filter(record => !isOpen(record)))
    for (const { digest } of records.filter(isOpen)) publishIfOpen(digest)
  })
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
