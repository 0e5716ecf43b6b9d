import type { Hex } from 'viem'
import type { IntentRecord } from './intent.ts'
import { logUnexpected } from './log-failure.ts'

/** An intent goes through several states in one block: it is told of at most once in this time, as it then is. */
const FLUSH_MS = 200

/** Tells of the intents that have changed, many at once and beside the work; what cannot be told is not told again. */
export function createTelling(
  find: (digest: Hex) => IntentRecord | undefined,
  tell: (records: IntentRecord[]) => Promise<void>,
): (digest: Hex) => void {
  const changed = new Set<Hex>()
  const flush = () => {
    const records = [...changed].flatMap(digest => find(digest) ?? [])
    changed.clear()
    if (records.length > 0) tell(records).catch(logUnexpected)
  }
  return digest => {
    if (changed.size === 0) setTimeout(flush, FLUSH_MS)
    changed.add(digest)
  }
}
