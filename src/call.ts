import { timingSafeEqual } from 'node:crypto'
import { type Hex, sha256, stringToBytes } from 'viem'
import { newest, type Subject } from './chain/min-blocks.ts'
import { withDeadline } from './concurrency.ts'
import type { Config } from './config/config.ts'
import type { PaymentAnswer } from './errors/refusal.ts'
import { refuse } from './errors/refuse.ts'
import type { IntentKind, RelayOutcome, RelayRequest } from './executor/relay-types.ts'
import { ROWS_PER_UNIT, UNITS_PER_SECOND } from './limits/prices.ts'
import { type ClientLimits, rateLimited } from './limits/rate-limits.ts'
import type { Networks } from './requests/client-address.ts'

/** What belongs to one call of an operation. Everything else is the context, which all calls share. */
export type Call = {
  /** What the client may spend; undefined if nothing limits it. */
  readonly client?: ClientLimits | undefined
  /** The client's networks, against which a stream counts that a tool opens. */
  readonly networks?: Networks | undefined
  /** The bearer token. */
  readonly bearer?: string | undefined
  /** The x402 payment, as decoded JSON. */
  readonly payment?: unknown
  /** The newest block that the client has seen: no read for it may come from an older one. */
  readonly minBlock?: bigint | undefined
  /** How long an operation that waits for an event may take, if that is less than its input says. */
  readonly maxWaitMs?: number | undefined
  /** Reports the progress of a relay to the client, if it asked for it. */
  readonly progress?: RelayProgress | undefined
  /** The time that a submission has left; undefined for reads. */
  readonly submission?: Submission | undefined
}

export type RelayProgress = {
  start(kind: IntentKind): Promise<void>
  end(outcome: RelayOutcome): Promise<void>
}

type Submission = {
  /** When a relay or a payment must have ended, in epoch milliseconds. */
  readonly respondBy: number
  /** The hash of the operation and all of its parsed input but the note: the same signed body has the same one. */
  readonly bodyHash: Hex
  /** The digest that was given to a lane. Its outcome may be unknown when the time is over. */
  relayed?: Hex
}

type ReplyFacts = { isReplay: boolean; payment?: PaymentAnswer | undefined; blockNumber?: bigint | undefined }

/**
 * A response with more to it than its body: whether the request was executed before, in which block, and what was paid
 * for it.
 */
export class OperationReply<T> {
  readonly body: T
  readonly isReplay: boolean
  readonly payment: PaymentAnswer | undefined
  readonly blockNumber: bigint | undefined
  constructor(body: T, { isReplay, payment, blockNumber }: ReplyFacts) {
    this.body = body
    this.isReplay = isReplay
    this.payment = payment
    this.blockNumber = blockNumber
  }
}

/** Returns the newest block that a response shows: the one it describes, or the one that executed the request. */
export function blockShownIn(output: unknown): bigint | undefined {
  const { body, blockNumber } = output instanceof OperationReply ? output : { body: output, blockNumber: undefined }
  const shown = (body ?? {}) as { asOf?: { blockNumber?: unknown }; blockNumber?: unknown }
  return newest(blockNumber, toBlock(shown.asOf?.blockNumber), toBlock(shown.blockNumber))
}

const toBlock = (digits: unknown) => (typeof digits === 'string' ? BigInt(digits) : undefined)

/** Returns whose state an input or a response is about. */
export function subjectsOf(fields: object): Subject[] {
  const { agentId, signer, owner } = fields as Record<string, unknown>
  return [
    ...(agentId === undefined ? [] : [`agent:${agentId}` as const]),
    ...[signer, owner].flatMap(account => (typeof account === 'string' ? [`account:${account}` as const] : [])),
  ]
}

/**
 * How long a read may take altogether, however long it waits for its turn and however many requests to nodes it needs.
 */
const MAX_READ_MS = 4_500
/** What of a submission's time is left for what follows the relay. */
const AFTER_RELAY_MS = 300

/** Charges a call for what it will read, now that its size is known. Throws RATE_LIMITED. */
export async function chargeBeforeReading({ client }: Call, units: number): Promise<void> {
  const count = await client?.count('reads', { units, inIsolate: true })
  if (count?.exceeded) throw rateLimited(count)
}

/** Charges a call for what it has cost, however little its client had left: refusing it now would save nothing. */
export async function chargeSpent({ client }: Call, units: number): Promise<void> {
  await client?.count('reads', { units, inIsolate: true, isSpent: true })
}

export const chargeRowsRead = (call: Call, rows: number): Promise<void> =>
  chargeSpent(call, Math.floor(rows / ROWS_PER_UNIT))

/**
 * Waits for what keeps nobody busy here: in the meantime others have the turn of the call's request, which pays for the
 * time. The first second is paid beforehand, so that no client waits with more requests than it can pay; what reduces
 * risk is charged afterwards. Throws RATE_LIMITED.
 */
export async function waitOutOfTurn<Result>(call: Call, wait: () => Promise<Result>): Promise<Result> {
  const paidBefore = call.client?.isReduction() ? 0 : UNITS_PER_SECOND
  if (paidBefore > 0) await chargeBeforeReading(call, paidBefore)
  const startedAt = Date.now()
  const rejoin = call.client?.pause()
  const result = await wait().finally(() => {
    const units = Math.ceil(((Date.now() - startedAt) / 1_000) * UNITS_PER_SECOND) - paidBefore
    return units > 0 ? chargeSpent(call, units) : undefined
  })
  await rejoin?.()
  return result
}

/** When the request of a call arrived, in epoch milliseconds: before it waited for its turn. */
const arrivalOf = ({ client }: Call) => client?.arrivedAt ?? Date.now()

/** Resolves with the response of a read. Throws CHAIN_UNREACHABLE if it takes longer: only its nodes can be slow. */
export async function respondInTime<Response extends object>(call: Call, read: Promise<Response>): Promise<Response> {
  const response = await withDeadline(read, arrivalOf(call) + MAX_READ_MS, () => undefined)
  if (response === undefined) throw tooSlow()
  return response
}

/**
 * Resolves with the response of a submission. If it takes longer than `submissionTimeoutMs`, throws SUBMISSION_UNKNOWN
 * with the digest once something was relayed, and CHAIN_UNREACHABLE before; then nothing is relayed later.
 */
export async function submitInTime<Response extends object>(
  call: Call,
  { submissionTimeoutMs, bodyHash }: Pick<Config, 'submissionTimeoutMs'> & Pick<Submission, 'bodyHash'>,
  submit: (call: Call) => Promise<Response>,
): Promise<Response> {
  const deadline = arrivalOf(call) + submissionTimeoutMs
  const submission: Submission = { respondBy: deadline - AFTER_RELAY_MS, bodyHash }
  const response = await withDeadline(submit({ ...call, submission }), deadline, () => undefined)
  if (response !== undefined) return response
  const { relayed } = submission
  throw relayed === undefined
    ? tooSlow()
    : refuse('SUBMISSION_UNKNOWN', { digest: relayed, transactionHash: undefined })
}

/**
 * Relays a request in the time that the call has left for it, and reports its progress. Throws CHAIN_UNREACHABLE if the
 * call has no time left.
 */
export async function relayInTime(
  { submission, progress }: Call,
  lane: { relay(request: RelayRequest, respondBy?: number): Promise<RelayOutcome> },
  request: RelayRequest,
): Promise<RelayOutcome> {
  if (submission) {
    if (Date.now() >= submission.respondBy) throw tooSlow()
    submission.relayed = request.digest
  }
  await progress?.start(request.kind)
  const outcome = await lane.relay(request, submission?.respondBy)
  await progress?.end(outcome)
  return outcome
}

const tooSlow = () => refuse('CHAIN_UNREACHABLE', {}, { cause: new Error('the nodes took too long for a request') })

const BEARER = /^Bearer +([^\s]+) *$/i

/** Returns the bearer token of an Authorization header, if it has one. */
export const bearerOf = (header: string | null | undefined): string | undefined => BEARER.exec(header ?? '')?.[1]

/** Returns whether a call carries a secret as its bearer token. Compares in constant time; false without a secret. */
export function hasBearer({ bearer = '' }: Call, secret: string | undefined): boolean {
  if (secret === undefined) return false
  const [expected, given] = [secret, bearer].map(text => sha256(stringToBytes(text), 'bytes'))
  return expected !== undefined && given !== undefined && timingSafeEqual(expected, given)
}

/** Throws OPERATOR_NOT_CONFIGURED or OPERATOR_ONLY unless the call carries the operator's secret. */
export function assertOperator({ operatorSecret }: Pick<Config, 'operatorSecret'>, call: Call): void {
  if (operatorSecret === undefined) throw refuse('OPERATOR_NOT_CONFIGURED')
  if (!hasBearer(call, operatorSecret)) throw refuse('OPERATOR_ONLY')
}

const REQUEST_ID = /^[\w\-=]{1,255}$/

/** Returns the id that a client gave its request, or a new one. Responses and log lines have it. */
export function requestIdOf(headers: Headers | undefined): string {
  const id = headers?.get('X-Request-Id') ?? ''
  return REQUEST_ID.test(id) ? id : crypto.randomUUID()
}
