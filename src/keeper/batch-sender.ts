import type { Hex } from 'viem'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/relay-types.ts'

/**
 * Sends batches and records their outcomes. A batch is stored before it is handed to the lane, so that an interrupted
 * cycle can be resumed: the lane is queried by digest, and nothing is lost or sent twice.
 */
export function createBatchSender<Batch extends { digest: Hex }>({
  executor,
  store,
  toRelayRequest,
  recordOutcome,
}: {
  executor: Executor
  store: { addBatch(batch: Batch): void; removeBatch(digest: Hex): void }
  toRelayRequest: (batch: Batch) => RelayRequest
  /** The batch is no longer stored. */
  recordOutcome: (batch: Batch, outcome: Exclude<RelayOutcome, { state: 'unknown' }>) => void
}) {
  /** Digests of the batches whose outcome this instance of the object awaits. */
  const awaited = new Set<Hex>()

  function record(batch: Batch, outcome: RelayOutcome) {
    if (outcome.state === 'unknown') return
    store.removeBatch(batch.digest)
    recordOutcome(batch, outcome)
  }

  /** Sends a batch. Resolves with its outcome recorded. */
  async function send(batch: Batch): Promise<void> {
    store.addBatch(batch)
    awaited.add(batch.digest)
    try {
      record(batch, await executor.relay(toRelayRequest(batch)))
    } finally {
      awaited.delete(batch.digest)
    }
  }

  /** Records the outcome of a batch that an earlier instance of the object, or an earlier cycle, did not wait for. */
  async function resume(batch: Batch): Promise<void> {
    const { digest } = batch
    if (awaited.has(digest)) return
    const request = toRelayRequest(batch)
    const found = await executor.find(request.by, digest)
    if (found === undefined) return store.removeBatch(digest) // it never reached the lane, so this cycle decides again
    if (found.state === 'rejected' || found.state === 'reverted') {
      const { revertData } = found
      return record(batch, { state: 'rejected', ...(revertData !== undefined && { data: revertData }) })
    }
    if (found.state === 'mined' || found.state === 'final') record(batch, await executor.relay(request))
  }

  return { send, resume }
}
