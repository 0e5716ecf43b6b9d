import type { Hex } from 'viem'
import { logUnexpected } from './background-errors.ts'
import type { IntentRecord } from './intent-record.ts'

/** An intent passes through several states within a block. Its state is published at most once in this interval. */
const NOTIFY_INTERVAL_MS = 200

/**
 * Returns a function that is called with the digest of each intent whose state changed; it publishes the current records
 * in batches. Delivery is at-most-once: a batch that fails is lost.
 */
export function createStateNotifier(
  findAll: (digests: readonly Hex[]) => IntentRecord[],
  notify: (records: IntentRecord[]) => Promise<void>,
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
