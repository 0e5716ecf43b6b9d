import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { formsOf } from '@agent-trading-service/protocol/signature-forms'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { type Domain, digestOf, type Message, reducesRisk } from '@agent-trading-service/protocol/typed-data'
import type { Address, Hex } from 'viem'
import { type Call, relayInTime, waitOutOfTurn } from '../call.ts'
import type { PriceNeed } from '../chain/carried-prices.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { haltRefusal } from '../chain/halted-chain.ts'
import type { RegistrationTerms } from '../chain/read-registration-terms.ts'
import { simulate } from '../chain/simulate.ts'
import { acceptedByAccount, type Sending, verifySignature } from '../chain/verify-signature.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { recoverSigner } from '../crypto/secp256k1.ts'
import { type PaymentAnswer, Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { Executor } from '../executor/client.ts'
import type { IntentRecord } from '../executor/intent-record.ts'
import { outcomeOfGas, type Revert, refusalAtHead, refusalOfUnsent, revertContext } from '../executor/present-intent.ts'
import type { ReceiptLog, RelayOutcome, RelayRequest, Requester } from '../executor/relay-types.ts'
import type { Payments } from '../payments/client.ts'
import type { PaymentReceipt } from '../payments/payment-claim.ts'
import { deadlineRefusal, deadlineWarnings } from './deadline.ts'
import { asEstablished } from './established-owner.ts'
import { intakeRefusal } from './intake.ts'
import { type MessageKindName, messageKinds, primaryTypeOf } from './message-kinds.ts'
import { minedOrRefusal } from './mined-or-refusal.ts'

/** A signed body with what the chain says about it; `messageKinds` has what else its kind changes. */
export type SignedBody = {
  kind: MessageKindName
  /** The message that was signed, without its nonce. */
  message: Message & { deadline: bigint }
  /** The nonce in the body; undefined if the body has none. */
  nonce: bigint | undefined
  signature: Hex
  /** The ladder behind the message's hash, to explain an invalid signature. */
  exits?: readonly ExitRule[] | undefined
  /** What the signer says about a trade; not signed. */
  note?: string | undefined
  /**
   * The owner's consent in the same body; its digest is the body's, since the signer's message does not name the owner.
   */
  consent?: { digest: Hex; byContract: boolean } | undefined

  terms: SignedTerms
  /** Who must have signed. */
  by: Signatory
  /** Returns the call that carries the message and its signature, in the form that the contract accepts. */
  callWith: (signature: Hex) => RelayRequest['call']
  /** The prices that the call brings along. */
  prices?: PriceNeed | undefined
  /** Returns why this body is not relayed; called last, once its signature is valid. */
  refusalOfTerms?: (() => Promise<Refusal | undefined>) | undefined
  /** Returns the refusal of a contract error, with more than the error says. */
  refusalOfRevert?: (revert: Revert) => Promise<Refusal>
  /**
   * Finds the body's execution on the chain, once no lane knows it any more. `nextNonce` is the newest if it is not
   * given.
   */
  findExecuted?: ((request: RelayRequest, nextNonce?: bigint) => Promise<ExecutedBefore | undefined>) | undefined
  /** What must be paid over x402 before the relay. */
  fee?: { payments: Payments; amount: RegistrationTerms['fee'] } | undefined
}

/** What a body says by itself: enough to find the intent that a lane has accepted with it. */
type PostedBody = {
  kind: MessageKindName
  /** The nonce in the body; undefined if the body has none. */
  nonce: bigint | undefined
  /** The agent that it is about, or the account that registers. */
  by: Requester
  payments?: Payments | undefined
}

/** Returns an agent as what causes a body again that it has caused before, whoever signed it. */
export const repeatingAgent = (id: bigint) => ({ as: 'keeper', agent: { id } }) as const

/** The signing domain, the signer's next nonce and the block at which they were read. */
type SignedTerms = { domain: Domain; nonce: bigint; block: Block }

/** A requester with an account whose signature the contract verifies. */
type Signatory = Extract<Requester, { account: Address }>

/** Where the chain has a body that no lane knows. */
type ExecutedBefore = { hash: Hex; blockNumber: bigint; trade?: Trade }

/** What became of a body: its transaction, and the trade if it was found by that. */
export type Execution = {
  /** The body's idempotency key. */
  digest: Hex
  hash: Hex
  /** The call that the body stands for. */
  call: RelayRequest['call']
  blockNumber: bigint
  logs: readonly ReceiptLog[]
  trade?: Trade
  isReplay: boolean
  payment?: PaymentAnswer | undefined
  warnings?: string[]
}

/**
 * Takes a signed body from its signature to its execution, the same way for every kind. Its digest is its idempotency
 * key: a body that was accepted before is never executed or paid for twice and gets the same outcome, although by then
 * its nonce is used, its deadline has passed, another account signs, no lane knows it any more, or the chain lacks what
 * it is about, so that `read` throws. Throws the refusal of every other outcome.
 */
export async function relaySignedBody(
  context: Context,
  call: Call,
  posted: PostedBody,
  read: () => Promise<Omit<SignedBody, 'kind' | 'nonce'>>,
): Promise<Execution> {
  const body = await read().catch(finalRefusal)
  if (body instanceof Refusal) return repeatAccepted(context, call, posted, body)
  return relayKnownBody(context, call, { ...body, kind: posted.kind, nonce: posted.nonce })
}

/** Returns a thrown refusal that repeating the body does not change; throws every other error. */
function finalRefusal(error: unknown): Refusal {
  if (error instanceof Refusal && !error.body.retryable) return error
  throw error
}

/**
 * Returns the execution of a body that was accepted although the chain lacks what it is about: a reorg takes back a
 * registration together with what the agent did, and the lanes send both again. Throws the refusal if no lane has the
 * body in flight or executed.
 */
async function repeatAccepted(
  context: Context,
  call: Call,
  { kind: kindOfMessage, nonce, by, payments }: PostedBody,
  refusal: Refusal,
): Promise<Execution> {
  const { replayOnce, lane } = messageKinds[kindOfMessage]
  const accepted = call.submission && (await context[lane].findBody(by, call.submission.bodyHash, nonce))
  if (accepted?.call === undefined || accepted.signer === undefined) throw refusal
  const { digest, kind, groupNonce, deadline, signer } = accepted
  const request: RelayRequest = { digest, kind, by, groupNonce, deadline, call: accepted.call, prices: accepted.prices }
  const isExecuted = accepted.state === 'mined' || accepted.state === 'final'
  const receipt = await payments?.receiptOf(signer, digest)
  const relay = () => relayRequest(context, call, context[lane], { request, signer, receipt, payments })
  const outcome = isExecuted ? await relay() : await waitOutOfTurn(call, relay)
  const mined = await minedOrRefusal(request, outcome, revert => refusalAtHead(context.chain, revert))
  return { ...executionOf(request, mined, receipt), isReplay: replayOnce === 'accepted' || isExecuted }
}

/** Relays a request, and tells those who must know its outcome: later reads, and the ledger if it was paid for. */
async function relayRequest(
  context: Context,
  call: Call,
  lane: Executor,
  { request, signer, receipt, payments }: RelayFacts,
): Promise<RelayOutcome> {
  const { by, digest } = request
  const first = await relayInTime(call, lane, request)
  const established =
    first.state === 'exhausted'
      ? await asEstablished(context, request, first.shortage).catch(() => undefined)
      : undefined
  const outcome = established ? await relayInTime(call, lane, established) : first
  // From here on, this isolate must read its own writes.
  const { readCache, minBlocks } = context
  readCache.clear()
  if (outcome.state === 'mined')
    minBlocks.raise(
      outcome.blockNumber,
      `account:${signer}`,
      ...('agent' in by ? [`agent:${by.agent.id}` as const] : []),
    )
  if (receipt) await payments?.conclude(signer, digest, outcome)
  return outcome
}
type RelayFacts = {
  request: RelayRequest
  signer: Address
  receipt: PaymentReceipt | undefined
  payments: Payments | undefined
}

const executionOf = (
  { digest, call }: RelayRequest,
  { hash, blockNumber, logs }: Extract<RelayOutcome, { state: 'mined' }>,
  receipt: PaymentReceipt | undefined,
) => ({ digest, hash, call, blockNumber, logs, payment: receipt && { response: receipt } })

/** Takes a body whose terms are known from its signature to its execution. */
async function relayKnownBody(context: Context, call: Call, body: SignedBody): Promise<Execution> {
  const { chain } = context
  const { terms, by, fee } = body
  const { block } = terms
  const { deadline } = body.message
  const signer = by.account
  const messageKind = messageKinds[body.kind]
  const { kind, intake, replayOnce, worksAtAnyNonce, protects, raisesLimits } = messageKind
  // Never limited.
  const isReduction = reducesRisk(primaryTypeOf(body.kind))

  // What was signed, and by whom?
  const { nonce, digest, signature, byContract, invalid } = await checkSignature(context, call, body)
  const newRequest: RelayRequest = {
    digest: body.consent?.digest ?? digest,
    kind,
    // What a contract signs may revert although it passed every check.
    by: byContract || body.consent?.byContract ? { ...by, isContract: true } : by,
    // Two messages that work at any nonce may have the same one.
    groupNonce: worksAtAnyNonce ? `${nonce}.${digest}` : `${nonce}`,
    deadline,
    call: body.callWith(signature),
    checkedAt: block.number,
    protects,
    prices: body.prices,
    ...(messageKind.closesPosition?.(body.message) && { closesPosition: true }),
    ...(body.note !== undefined && { note: body.note }),
    ...(call.submission && { bodyHash: call.submission.bodyHash }),
  }

  // May it be executed now?
  const refusal =
    invalid ??
    haltRefusal(chain, block) ??
    deadlineRefusal(deadline, block) ??
    (worksAtAnyNonce || nonce === terms.nonce
      ? undefined
      : refuse('INVALID_NONCE', { given: nonce, expected: terms.nonce })) ??
    (await intakeRefusal(context, intake)) ??
    (await body.refusalOfTerms?.().catch(finalRefusal))

  // If not, was it accepted before? A new body need not be looked up: the nonce of an executed one is used.
  const mayBeRepeated = refusal !== undefined || replayOnce === 'accepted' || nonce !== terms.nonce
  const accepted = mayBeRepeated
    ? await findAccepted(context, body, newRequest.digest, { isSigned: !invalid })
    : undefined
  const isExecuted = accepted?.state === 'mined' || accepted?.state === 'final'
  if (refusal !== undefined && accepted === undefined) {
    const executed = invalid ? undefined : await findOnChain(body, newRequest, terms.nonce)
    if (executed) return executed
    throw refusal
  }
  // The nonce of a valid signature may be another one than the record's: the digest of an owner's consent does not
  // contain it.
  const request = accepted && invalid !== undefined ? { ...newRequest, groupNonce: accepted.groupNonce } : newRequest

  // Only new bodies count against limits, because anyone can send a repeated one.
  if (accepted === undefined) {
    if (!isReduction) await call.client?.countSigner(signer)
    if (raisesLimits) call.client?.raise(signer, request.digest)
  }
  const receipt = isExecuted
    ? await fee?.payments.receiptOf(signer, request.digest)
    : await collectFee(context, call, body, { request, isNew: accepted === undefined })
  const relay = () =>
    relayRequest(context, call, context[messageKind.lane], { request, signer, receipt, payments: fee?.payments })

  try {
    // Waiting for the chain must not block others. Anyone can send a body again, and pays for the time.
    if (accepted === undefined) call.client?.leave()
    const outcome = accepted === undefined || isExecuted ? await relay() : await waitOutOfTurn(call, relay)
    if (accepted === undefined && isReduction && isSent(outcome)) call.client?.takeBackReduction()
    const mined = await minedOrRefusal(
      request,
      outcome,
      body.refusalOfRevert ?? (revert => refusalAtHead(chain, revert)),
    )
    return {
      ...executionOf(request, mined, receipt),
      isReplay: replayOnce === 'accepted' ? accepted !== undefined : isExecuted,
      ...deadlineWarnings(deadline, block),
    }
  } catch (error) {
    // The nonce was used after it was read: by another body, or by this one, which a lost lane had sent.
    if (error instanceof Refusal && error.body.code === 'INVALID_NONCE') {
      const executed = await findOnChain(body, request)
      if (executed) return executed
    }
    if (receipt && error instanceof Refusal) error.payment = { response: receipt }
    throw error
  }
}

/**
 * Whether a request was sent, so that gas bounds how many more there are. Anyone can sign any number of those that are
 * not.
 */
const isSent = ({ state }: RelayOutcome): boolean => state === 'mined' || state === 'reverted' || state === 'unknown'

/** Returns how an account of the service sends a transaction, for the verification of contract signatures. */
export const sendingOf = ({ config }: Pick<Context, 'config'>, from: Address): Sending => ({
  from,
  priorityFeeWei: config.priorityFeeWei,
})

type Signed = { nonce: bigint; signature: Hex; byContract: boolean }

/**
 * Returns the nonce and the digest of what was signed, the form of the signature to relay, whether a contract accepted
 * it, and why it is invalid if it is.
 */
async function checkSignature(
  context: Context,
  { client }: Call,
  { kind, message, exits, signature, terms, by, ...body }: SignedBody,
): Promise<Signed & { digest: Hex; invalid?: unknown }> {
  const { chain } = context
  const { domain, nonce: nextNonce } = terms
  const signer = by.account
  const { lane } = messageKinds[kind]
  const primaryType = primaryTypeOf(kind)
  const sending = sendingOf(context, context[lane].addressOf(by))
  const messageAt = (nonce: bigint) => ({ ...message, nonce })
  const digestAt = (nonce: bigint) => digestOf(domain, primaryType, messageAt(nonce))
  const found =
    body.nonce === undefined
      ? await findSignedNonce({ chain, signer, sending }, nextNonce, signature, digestAt)
      : undefined
  const nonce = body.nonce ?? found?.nonce ?? nextNonce
  const digest = digestAt(nonce)
  if (found !== undefined) return { digest, ...found }
  const signed = { domain, primaryType, message: messageAt(nonce), digest, exits }
  return verifySignature(chain, signer, signed, signature, { maySearch: client?.maySearch, sending }).then(
    ({ accepted, byContract }) => ({ nonce, digest, signature: accepted, byContract }),
    invalid => ({ nonce, digest, signature: formsOf(signature).forms[0], byContract: false, invalid }),
  )
}

const MAX_NONCES = 8n

/**
 * Finds the nonce that a signature is over, and the form in which the signature is valid: the next nonce, or one of the
 * seven before it, of a repeated body. Checks a key's signature without a call, an ERC-1271 account's with one. Returns
 * undefined if the signature is over none of them.
 */
async function findSignedNonce(
  { chain, signer, sending }: { chain: Chain; signer: Address; sending: Sending },
  next: bigint,
  signature: Hex,
  digestAt: (nonce: bigint) => Hex,
): Promise<Signed | undefined> {
  const [canonical] = formsOf(signature).forms
  const count = Number(next < MAX_NONCES ? next + 1n : MAX_NONCES)
  const nonces = Array.from({ length: count }, (_, back) => next - BigInt(back))
  for (const nonce of nonces) {
    const { address } = recoverSigner(digestAt(nonce), canonical)
    if (address === signer) return { nonce, signature: canonical, byContract: false }
    if (address === null) break
  }
  const earlier = nonces.slice(1)
  if (earlier.length === 0) return undefined
  const accepted = await acceptedByAccount(chain, signer, earlier.map(digestAt), signature, sending)
  const index = accepted?.findIndex(form => form !== undefined) ?? -1
  const [nonce, form] = [earlier[index], accepted?.[index]]
  return nonce !== undefined && form !== undefined ? { nonce, signature: form, byContract: true } : undefined
}

/**
 * Returns what the lanes know about a body that one has accepted before. If its signature is not valid now, it must be
 * the very same call: then it was valid, even if the signer has changed.
 */
async function findAccepted(
  context: Context,
  { kind, signature, by, callWith }: SignedBody,
  digest: Hex,
  { isSigned }: { isSigned: boolean },
): Promise<IntentRecord | undefined> {
  const { acceptedIn, lane } = messageKinds[kind]
  const record = await (acceptedIn === 'lane' ? context[lane].find(by, digest) : findInAllLanes(context, digest))
  const isSame = isSigned || formsOf(signature).forms.some(form => callWith(form).data === record?.call?.data)
  return isSame && record?.state !== 'rejected' ? record : undefined
}

const findInAllLanes = ({ journals }: Pick<Context, 'journals'>, digest: Hex) =>
  journals.findIntent(digest).catch(error => {
    throw refuse('EXECUTOR_UNREACHABLE', { digest }, { cause: error })
  })

/**
 * Collects the fee of a body after simulating its call, and returns the x402 receipt; undefined if no fee is due.
 * Nothing is collected for a new body that the lane refuses for its gas. Throws that refusal, the contract error of the
 * simulation, or the refusal of the payment.
 */
async function collectFee(
  context: Context,
  { payment, submission, client }: Call,
  body: SignedBody,
  { request, isNew }: { request: RelayRequest; isNew: boolean },
): Promise<PaymentReceipt | undefined> {
  const { fee, terms, by } = body
  const due = fee?.payments.dueOf(fee.amount, nowAt(terms.block))
  if (fee === undefined || due === undefined) return undefined
  const lane = context[messageKinds[body.kind].lane]
  const unpaid = isNew ? outcomeOfGas(await lane.gasTerms(request)) : undefined
  if (unpaid) throw refusalOfUnsent(unpaid, request.digest)
  const revert = await simulate(context.chain, lane.address, request.call, terms.block)
  // A concurrent request with the identical body may have executed it, which makes the simulation fail.
  if (revert && !(await findAccepted(context, body, request.digest, { isSigned: true })))
    throw await refusalAtHead(context.chain, { data: revert.data, context: revertContext(request) })
  client?.leave() // the ledger and the facilitator work on it now
  const registration = { signer: by.account, digest: request.digest, nonce: BigInt(request.groupNonce) }
  return fee.payments.take(registration, due, { payment, respondBy: submission?.respondBy })
}

/** Returns the execution of a body that is on the chain although no lane knows it. */
async function findOnChain(
  { findExecuted }: SignedBody,
  request: RelayRequest,
  nextNonce?: bigint,
): Promise<Execution | undefined> {
  const executed = await findExecuted?.(request, nextNonce)
  return executed && { ...executed, digest: request.digest, call: request.call, logs: [], isReplay: true }
}
