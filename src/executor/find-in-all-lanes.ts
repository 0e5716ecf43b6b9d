import type { Hex } from 'viem'
import { addressOfKey } from './address-of-key.ts'
import type { SentTransaction } from './find-in-lane.ts'
import type { IntentRecord } from './intent-record.ts'
import type { ExecutorLaneObject } from './object.ts'

/** The journals of all lanes of a deployment, for callers who know neither group nor account. */
export type Journals = {
  /** Returns what the lanes know about a signed intent. Throws the error of a lane that is unreachable. */
  findIntent(digest: Hex): Promise<IntentRecord | undefined>
  /** Returns a transaction that a lane signed. Throws the error of a lane that is unreachable. */
  findTransaction(hash: Hex): Promise<SentTransaction | undefined>
}

/** Returns the journals of these keys: `relaying` for intents that agents sign, `own` for the service's transactions. */
export function createJournals(
  namespace: DurableObjectNamespace<ExecutorLaneObject>,
  { relaying, own }: { relaying: readonly Hex[]; own: readonly Hex[] },
): Journals {
  const lanesOf = (keys: readonly Hex[]) =>
    [...new Set(keys.map(addressOfKey))].map(address => namespace.get(namespace.idFromName(address)))
  return {
    async findIntent(digest) {
      const records = await collect(lanesOf(relaying).map(lane => lane.find(digest)))
      // If an added key moved the agent to another lane, its former lane may still have a rejected record of the
      // intent.
      return records.sort((a, b) => rankOf(b) - rankOf(a) || b.updatedAt - a.updatedAt)[0]
    },
    async findTransaction(hash) {
      const lanes = lanesOf([...relaying, ...own])
      const [transaction] = await collect(lanes.map(lane => lane.findTransaction(hash)))
      return transaction
    },
  }
}

const rankOf = ({ state }: IntentRecord) => (state === 'rejected' || state === 'reverted' ? 0 : 1)

/** Returns all results that are defined. Throws if there is none and a promise was rejected. */
async function collect<Result extends object>(promises: Promise<Result | undefined>[]): Promise<Result[]> {
  const settled = await Promise.allSettled(promises)
  const found = settled.flatMap(result => (result.status === 'fulfilled' && result.value ? [result.value] : []))
  const failed = settled.find(result => result.status === 'rejected')
  if (found.length === 0 && failed) throw failed.reason
  return found
}
