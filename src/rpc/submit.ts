import type { Hex } from 'viem'
import { isTimeout } from '../concurrency.ts'
import { type Endpoint, MIN_SEND_BATCH } from './endpoint-client.ts'
import { isLimit, isUnsupportedMethod, type RpcError, redact, UNFUNDED } from './node-errors.ts'
import { type NodeReceipt, type SignedBytes, sendRequest, sendSyncRequest } from './requests.ts'
import type { RpcTransport } from './transport.ts'

/**
 * What a node replied to signed bytes, by what has to be done. `unknown` means that nothing usable came back.
 * `malformed` bytes are given up; every other kind leaves open whether another node has them. Messages are redacted.
 */
export type Submission =
  | { kind: 'mined'; receipt: NodeReceipt }
  | { kind: 'accepted' | 'unknown' }
  | { kind: RefusalKind; message: string }

export type SubmitOptions = {
  /** Milliseconds to wait for the receipt, or for the acceptance where that is shorter. */
  waitMs: number
  /** Whether to wait for the receipt with eth_sendRawTransactionSync, where the node supports it. */
  sync: boolean
  /**
   * How often the bytes were sent before. Each resend goes to another node, because one may have accepted them without
   * propagating them.
   */
  turn?: number
}

const ACCEPTANCE_TIMEOUT_MS = 5_000
const MAX_SEND_BATCH = 64
/**
 * A node that needs longer per transaction of a batch holds each transaction until it is in a block, as some sequencers
 * do. It processes a batch one by one, so each transaction would wait for the blocks of all earlier ones.
 */
const MAX_ACCEPTANCE_MS = 150
/** After this many slow batches in a row, transactions are sent one by one for a while. */
const MAX_SLOW_BATCHES = 2
const PAUSE_MS = 60_000

/**
 * Sends signed bytes to one node: the preferred one, or for a resend the next one. A node that fails loses its
 * preference. Never throws.
 */
export async function submit(
  transport: RpcTransport,
  signed: SignedBytes,
  { waitMs, sync, turn = 0 }: SubmitOptions,
): Promise<Submission> {
  const endpoint = transport.preferred(turn)
  if (endpoint === undefined) return { kind: 'unknown' }
  const isSync = sync && endpoint.supportsSyncSend
  try {
    const { result, error } = isSync
      ? await transport.abortAfter(waitMs, ({ signal }) => endpoint.send(sendSyncRequest(signed), signal))
      : await transport.abortAfter(Math.min(waitMs, ACCEPTANCE_TIMEOUT_MS), ({ signal }) =>
          endpoint.send(sendRequest(signed), signal),
        )
    if (error === undefined) return isReceipt(result) ? { kind: 'mined', receipt: result } : { kind: 'accepted' }
    if (isSync && isUnsupportedMethod(error)) {
      endpoint.supportsSyncSend = false
      return submit(transport, signed, { waitMs, sync: false, turn })
    }
    const submission = classifySendError(error)
    if (isFaultOfNode(submission)) transport.rest(endpoint)
    return submission
  } catch (error) {
    // A node that is slow to include the transaction is not faulty: the deadline was ours.
    if (!(isSync && isTimeout(error))) transport.rest(endpoint)
    return { kind: 'unknown' }
  }
}

/** Returns how many transactions the preferred node takes at once; 1 if they are sent one by one. */
export function sendBatchSize(transport: RpcTransport): number {
  const endpoint = transport.preferred()
  if (!endpoint?.acceptsBatches || Date.now() < endpoint.sendBatches.pausedUntil) return 1
  return endpoint.sendBatches.size
}

/** Sends signed bytes to one node in one batch, without waiting for their inclusion; see `submit`. Never throws. */
export async function submitBatch(
  transport: RpcTransport,
  transactions: readonly SignedBytes[],
  turn = 0,
): Promise<Submission[]> {
  const endpoint = transport.preferred(turn)
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
    if (submissions.some(isFaultOfNode)) transport.rest(endpoint)
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

/** Whether another node may accept the bytes that this one did not. */
const isFaultOfNode = ({ kind }: Submission) => kind === 'unknown' || kind === 'unclassified' || kind === 'no-room'

const isReceipt = (result: NodeReceipt | Hex): result is NodeReceipt => typeof result === 'object'

// Messages of geth (read in the source of 1.17.10: core/txpool, core/error.go, internal/ethapi), Nitro, anvil, EDR,
// erigon, reth, Besu and Nethermind. The order matters: `replacement transaction underpriced` is not about the base
// fee, and `out of capacity` would be a limit.
const KNOWN_MESSAGES = [
  [
    /already ?known|already imported|already exists|already in (the )?(mem|tx)?pool|(?<!un)known transaction/i,
    'accepted',
  ],
  [/confirmation timeout|was added to the (mempool|txpool) but/i, 'accepted'],
  [/nonce (is )?too low|nonce has already been used|old nonce/i, 'nonce-too-low'],
  // The last two: an earlier nonce is missing, and the pool keeps no gap for it.
  [
    /nonce (is )?too high|nonce gap|nonce .*out of range|gapped-nonce|future transaction tries to replace pending/i,
    'nonce-too-high',
  ],
  [/replacement transaction underpriced|replacement fee too low/i, 'underpriced'],
  [
    /(less than|below) (the )?block base fee|fee cap .*base ?fee|transaction underpriced|^underpriced|fee ?too ?low|gas price below/i,
    'fee-too-low',
  ],
  [
    /pool is full|out of capacity|account limit exceeded|in-?flight transaction limit|address already reserved/i,
    'no-room',
  ],
  [UNFUNDED, 'unfunded'],
  // Nitro refuses with the first words also while the gas for L1 has grown since the estimate.
  [/intrinsic gas|floor data gas/i, 'gas-too-low'],
  // No later state of the pool makes such bytes valid. A wrong chain id is not listed: the fault is the node's, not
  // that of our bytes. A node's cap on fees (geth: 1 ether) ends the intent, because a lower fee would not be mined.
  [
    /exceeds block gas limit|gas limit (is )?too high|exceeds the configured cap|oversized|max initcode|rlp|type not supported/i,
    'malformed',
  ],
] as const

/** What has to be done about a refusal; `unclassified` if its words are not known. */
type RefusalKind = Exclude<(typeof KNOWN_MESSAGES)[number][1], 'accepted'> | 'unclassified'

const WRONG_CHAIN = /chain ?id/i
/** EIP-7966: the transaction was accepted, but not mined within the node's timeout. */
const SYNC_TIMEOUT_CODE = 4

/** Returns what a node's error about signed bytes means. An unknown message leaves the outcome open. */
function classifySendError(error: RpcError): Submission {
  const { code, message } = error
  const [, kind] = KNOWN_MESSAGES.find(([pattern]) => pattern.test(message)) ?? []
  if (kind === 'accepted' || (kind === undefined && code === SYNC_TIMEOUT_CODE)) return { kind: 'accepted' }
  if (kind === undefined && (isLimit(error) || WRONG_CHAIN.test(message))) return { kind: 'unknown' }
  return { kind: kind ?? 'unclassified', message: redact(message) }
}
