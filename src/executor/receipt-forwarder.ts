import type { Address } from 'viem'
import type { HistoryIndexerObject } from '../history/object.ts'
import type { NodeLog } from '../rpc/requests.ts'

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
