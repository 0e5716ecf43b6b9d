import { type Endpoint, MIN_SEND_BATCH } from './endpoint-client.ts'
import { type SignedBytes, sendRequest } from './requests.ts'
import { ACCEPTANCE_TIMEOUT_MS, classifySendError, type Submission } from './submit.ts'
import type { RpcTransport } from './transport.ts'

const MAX_SEND_BATCH = 64
/**
 * A node that needs longer per transaction of a batch holds each transaction until it is in a block, as some sequencers
 * do. It processes a batch one by one, so each transaction would wait for the blocks of all earlier ones.
 */
const MAX_ACCEPTANCE_MS = 150
/** After this many slow batches in a row, transactions are sent one by one for a while. */
const MAX_SLOW_BATCHES = 2
const PAUSE_MS = 60_000

/** Returns how many transactions the preferred node takes at once; 1 if they are sent one by one. */
export function sendBatchSize(transport: RpcTransport): number {
  const endpoint = transport.preferred()
  if (!endpoint?.acceptsBatches || Date.now() < endpoint.sendBatches.pausedUntil) return 1
  return endpoint.sendBatches.size
}

/** Sends signed bytes to the preferred node in one batch, without waiting for their inclusion. Never throws. */
export async function submitBatch(
  transport: RpcTransport,
  transactions: readonly SignedBytes[],
): Promise<Submission[]> {
  const endpoint = transport.preferred()
  if (endpoint === undefined) return transactions.map(() => ({ kind: 'unknown' }))
  const startedAt = Date.now()
  try {
    const responses = await transport.abortAfter(ACCEPTANCE_TIMEOUT_MS, ({ signal }) =>
      endpoint.sendBatch(transactions.map(sendRequest), signal),
    )
    adaptBatchSize(endpoint, (Date.now() - startedAt) / transactions.length)
    const submissions = responses.map(
      ({ error }): Submission => (error ? classifySendError(error) : { kind: 'accepted' }),
    )
    if (submissions.some(({ kind }) => kind === 'unknown' || kind === 'unclassified')) transport.rest(endpoint)
    return submissions
  } catch {
    adaptBatchSize(endpoint, ACCEPTANCE_TIMEOUT_MS)
    transport.rest(endpoint)
    return transactions.map(() => ({ kind: 'unknown' }))
  }
}

/** Doubles the size of batches while they are quick. A slow one makes them small again, several in a row pause them. */
function adaptBatchSize({ sendBatches }: Endpoint, msPerTransaction: number): void {
  if (msPerTransaction <= MAX_ACCEPTANCE_MS) {
    sendBatches.size = Math.min(sendBatches.size * 2, MAX_SEND_BATCH)
    sendBatches.slow = 0
    return
  }
  sendBatches.size = MIN_SEND_BATCH
  sendBatches.slow++
  if (sendBatches.slow >= MAX_SLOW_BATCHES) sendBatches.pausedUntil = Date.now() + PAUSE_MS
}
