import type { Hex } from 'viem'
import { addressOfKey } from './client.ts'
import type { IntentRecord, SentTransaction } from './intent.ts'
import type { ExecutorLane } from './object.ts'

/** What all lanes of a deployment remember together, for who knows neither group nor account. */
export type Journals = {
  /** The life of a signed intent, or undefined when no lane has it (any more). Throws what the unreachable lane threw. */
  findIntent(digest: Hex): Promise<IntentRecord | undefined>
  /** A transaction that some lane has signed, or undefined. Throws what the unreachable lane threw. */
  findTransaction(hash: Hex): Promise<SentTransaction | undefined>
}

/** The journals of the accounts of these keys: those that relay what agents sign, and those that send for the service. */
export function createJournals(
  namespace: DurableObjectNamespace<ExecutorLane>,
  { relaying, own }: { relaying: readonly Hex[]; own: readonly Hex[] },
): Journals {
  const lanesOf = (keys: readonly Hex[]) =>
    [...new Set(keys.map(addressOfKey))].map(address => namespace.get(namespace.idFromName(address)))
  return {
    async findIntent(digest) {
      const records = await askAll(lanesOf(relaying).map(lane => lane.find(digest)))
      // A lane that a change of keys has taken the agent from may remember an earlier refusal.
      return records.sort((a, b) => weightOf(b) - weightOf(a) || b.updatedAt - a.updatedAt)[0]
    },
    findTransaction: async hash =>
      (await askAll(lanesOf([...relaying, ...own]).map(lane => lane.findTransaction(hash))))[0],
  }
}

const weightOf = ({ state }: IntentRecord) => (state === 'rejected' || state === 'reverted' ? 0 : 1)

/** What the lanes that know something answer; throws when nobody does and one of them cannot be asked. */
async function askAll<T extends object>(asked: Promise<T | undefined>[]): Promise<T[]> {
  const answers = await Promise.allSettled(asked)
  const found = answers.flatMap(answer => (answer.status === 'fulfilled' && answer.value ? [answer.value] : []))
  const silent = answers.find(({ status }) => status === 'rejected')
  if (found.length === 0 && silent) throw (silent as PromiseRejectedResult).reason
  return found
}
