import type { Address } from 'viem'
import type { HistoryIndexerObject } from '../history/object.ts'
import type { NodeLog } from '../rpc/requests.ts'

/** Receipts are handed on this long after the first of them: one call for many. */
const GATHER_MS = 100

/**
 * Tells the indexer of logs in receipts, so that a trade of the service's own is in the index before the chain has been
 * asked for it. Nobody waits for that: what is lost on the way, the indexer finds on the chain.
 */
export function createHerald(
  namespace: DurableObjectNamespace<HistoryIndexerObject>,
  chainId: number,
  addresses: readonly Address[],
): (logs: readonly unknown[]) => void {
  const followed = new Set(addresses.map(address => address.toLowerCase()))
  let gathered: NodeLog[] = []

  function hand() {
    const logs = gathered
    gathered = []
    namespace
      .getByName(`${chainId}`)
      .relayed(logs)
      .catch(() => {})
  }

  return logs => {
    const own = (logs as readonly NodeLog[]).filter(({ address }) => followed.has(address.toLowerCase()))
    if (own.length === 0) return
    if (gathered.length === 0) setTimeout(hand, GATHER_MS)
    gathered.push(...own)
  }
}
