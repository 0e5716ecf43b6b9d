import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { formsOf } from '@agent-trading-service/protocol/signature-forms'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { type Domain, digestOf, type Message } from '@agent-trading-service/protocol/typed-data'
import type { Address, Hex } from 'viem'
import { type Call, relayInTime } from '../call.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
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
import { type Revert, refusalAtHead, revertContext } from '../executor/present-intent.ts'
import {
  type GasSpender,
  principalOf,
  type ReceiptLog,
  type RelayOutcome,
  type RelayRequest,
} from '../executor/relay-types.ts'
import type { Payments } from '../payments/client.ts'
import type { PaymentReceipt } from '../payments/payment-claim.ts'
import { deadlineRefusal, deadlineWarnings } from './deadline.ts'
import { intakeRefusal } from './intake.ts'
import { type MessageKindName, messageKinds, type RelayedPrimaryType } from './message-kinds.ts'
import { minedOrRefusal } from './mined-or-refusal.ts'

/**
 * A signed body with what the chain says about it at `block`; `messageKinds` has what else its kind changes. Nothing that the
 * caller chooses selects a budget, a nonce, a counter or a limit: `signer`, `group`, `principal` and `spenders` come from the
 * chain, or are the address whose signature the contract verifies.
 */
export type SignedBody = {
  primaryType: RelayedPrimaryType
  /** What the message is, if its primary type does not tell. */
  messageKind?: MessageKindName | undefined
  domain: Domain
  /** Returns the message that was signed, given its nonce. */
  messageOf: (nonce: bigint) => Message
  /** The ladder behind the message's hash, to explain an invalid signature. */
  exits?: readonly ExitRule[] | undefined
  signature: Hex
  /** The digest of another message in the body, if the signer's alone does not identify the body. */
  digest?: Hex | undefined
  deadline: bigint
  /** The nonce in the body; undefined if the body has none. */
  nonce: bigint | undefined

  block: Block
  /** Who must have signed. */
  signer: Address
  nextNonce: bigint
  /** Why the contract would refuse every body of this kind now. */
  closed?: Refusal | undefined
  /** Returns why this body is not relayed; asked last, once its signature is valid. */
  refusalOfTerms?: (() => Promise<Refusal | undefined>) | undefined

  lane: Executor
  group: string
  principal: string
  role?: RelayRequest['role']
  spenders: readonly GasSpender[]
  /** Whether a contract has signed too. */
  hasContractOwner?: boolean | undefined
  closesPosition?: boolean | undefined
  /** What the signer says about a trade; not signed. */
  note?: string | undefined
  /** Returns the call that carries the message and its signature, in the form that the contract accepts. */
  callWith: (signature: Hex) => RelayRequest['call']
  /** Returns the refusal of a contract error, with more than the error says. */
  refusalOfRevert?: (revert: Revert) => Promise<Refusal>

  /** The agent that the body is about, whose later reads must show it. */
  agentId?: bigint
  /** Finds the body's execution on the chain, once no lane knows it any more. `nextNonce` is the newest if it is not given. */
  findExecuted?: ((request: RelayRequest, nextNonce?: bigint) => Promise<ExecutedBefore | undefined>) | undefined
  /** What must be paid over x402 before the relay. */
  fee?: { payments: Payments; amount: RegistrationTerms['fee'] } | undefined
}

/** Where the chain has a body that no lane knows. */
export type ExecutedBefore = { hash: Hex; blockNumber: bigint; trade?: Trade }

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
 * Takes a signed body from its signature to its execution, the same way for every kind. Its digest is its idempotency key: a
 * body that was accepted before is never executed or paid for twice and gets the same outcome, although by then its nonce is
 * used, its deadline has passed, another account signs, or no lane knows it any more. Throws the refusal of every other
 * outcome.
 */
export async function relaySignedBody(context: Context, call: Call, body: SignedBody): Promise<Execution> {
  const { chain, readCache, minBlocks } = context
  const { lane, signer, block, deadline, fee } = body
  const { kind, intake, replayOnce, worksAtAnyNonce, reducesRisk, protects, raisesLimits } =
    messageKinds[body.messageKind ?? body.primaryType]

  // What was signed, and by whom?
  const { nonce, digest, signature, byContract, invalid } = await checkSignature(context, call, body)
  const newRequest: RelayRequest = {
    digest: body.digest ?? digest,
    kind,
    group: body.group,
    // Two messages that work at any nonce may have the same one.
    groupNonce: worksAtAnyNonce ? `${nonce}.${digest}` : `${nonce}`,
    deadline,
    call: body.callWith(signature),
    checkedAt: block.number,
    principal: body.principal,
    ...(body.role !== undefined && { role: body.role }),
    signer,
    // What a contract signs may revert although it passed every check.
    spenders: [...body.spenders, ...(byContract || body.hasContractOwner ? (['contractReverts'] as const) : [])],
    protects,
    ...(body.closesPosition !== undefined && { closesPosition: body.closesPosition }),
    ...(body.note !== undefined && { note: body.note }),
  }

  // May it be executed now?
  const refusal =
    invalid ??
    deadlineRefusal(deadline, block) ??
    body.closed ??
    (worksAtAnyNonce || nonce === body.nextNonce
      ? undefined
      : refuse('INVALID_NONCE', { given: nonce, expected: body.nextNonce })) ??
    (await intakeRefusal(context, intake)) ??
    (await body.refusalOfTerms?.())

  // If not, was it accepted before? A new body need not be looked up: the nonce of an executed one is used.
  const mayBeRepeated = refusal !== undefined || replayOnce === 'accepted' || nonce !== body.nextNonce
  const accepted = mayBeRepeated ? await findAccepted(context, body, newRequest, { isSigned: !invalid }) : undefined
  const isExecuted = accepted?.state === 'mined' || accepted?.state === 'final'
  if (refusal !== undefined && accepted === undefined) {
    const executed = invalid ? undefined : await findOnChain(body, newRequest, body.nextNonce)
    if (executed) return executed
    throw refusal
  }
  // Its signer may be another one by now, and its group with it. The nonce of a valid signature may be another one than the
  // record's: the digest of an owner's consent does not contain it.
  const request = accepted
    ? { ...newRequest, group: accepted.group, ...(invalid !== undefined && { groupNonce: accepted.groupNonce }) }
    : newRequest

  // Only new bodies count against limits, because anyone can send a repeated one.
  if (accepted === undefined) {
    if (!reducesRisk) await call.client?.countSigner(signer)
    if (raisesLimits) call.client?.raise(signer, request.digest)
  }
  const receipt = isExecuted
    ? await fee?.payments.receiptOf(signer, request.digest)
    : await collectFee(context, call, body, request)
  // Waiting for the chain must not block others.
  if (accepted === undefined) call.client?.leave()

  try {
    const outcome = await relayInTime(call, lane, request)
    // From here on, this isolate must read its own writes.
    readCache.clear()
    if (accepted === undefined && reducesRisk && isSent(outcome)) call.client?.takeBackReduction()
    if (outcome.state === 'mined')
      minBlocks.raise(
        outcome.blockNumber,
        `account:${signer}`,
        ...(body.agentId === undefined ? [] : [`agent:${body.agentId}` as const]),
      )
    if (receipt) await fee?.payments.conclude(signer, request.digest, outcome)
    const mined = await minedOrRefusal(
      request,
      outcome,
      body.refusalOfRevert ?? (revert => refusalAtHead(chain, revert)),
    )
    return {
      digest: request.digest,
      hash: mined.hash,
      call: request.call,
      blockNumber: mined.blockNumber,
      logs: mined.logs,
      isReplay: replayOnce === 'accepted' ? accepted !== undefined : isExecuted,
      payment: receipt && { response: receipt },
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

/** Whether a request was sent, so that gas bounds how many more there are. Anyone can sign any number of those that are not. */
const isSent = ({ state }: RelayOutcome): boolean => state === 'mined' || state === 'reverted' || state === 'unknown'

/** Returns how an account of the service sends a transaction, for the verification of contract signatures. */
export const sendingOf = ({ config }: Pick<Context, 'config'>, from: Address): Sending => ({
  from,
  priorityFeeWei: config.priorityFeeWei,
})

type Signed = { nonce: bigint; signature: Hex; byContract: boolean }

/**
 * Returns the nonce and the digest of what was signed, the form of the signature to relay, whether a contract accepted it, and
 * why it is invalid if it is.
 */
async function checkSignature(
  context: Context,
  { client }: Call,
  { domain, primaryType, messageOf, exits, signature, signer, lane, principal, ...body }: SignedBody,
): Promise<Signed & { digest: Hex; invalid?: unknown }> {
  const { chain } = context
  const sending = sendingOf(context, lane.addressOf(principal))
  const digestAt = (nonce: bigint) => digestOf(domain, primaryType, messageOf(nonce))
  const found =
    body.nonce === undefined
      ? await findSignedNonce({ chain, signer, sending }, body.nextNonce, signature, digestAt)
      : undefined
  const nonce = body.nonce ?? found?.nonce ?? body.nextNonce
  const digest = digestAt(nonce)
  if (found !== undefined) return { digest, ...found }
  const signed = { domain, primaryType, message: messageOf(nonce), digest, exits }
  return verifySignature(chain, signer, signed, signature, { maySearch: client?.maySearch, sending }).then(
    ({ accepted, byContract }) => ({ nonce, digest, signature: accepted, byContract }),
    invalid => ({ nonce, digest, signature: formsOf(signature).forms[0], byContract: false, invalid }),
  )
}

const MAX_NONCES = 8n

/**
 * Finds the nonce that a signature is over, and the form in which the signature is valid: the next nonce, or one of the seven
 * before it, of a repeated body. Checks a key's signature without a call, an ERC-1271 account's with one. Returns undefined if
 * the signature is over none of them.
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
  const index = accepted.findIndex(form => form !== undefined)
  const [nonce, form] = [earlier[index], accepted[index]]
  return nonce !== undefined && form !== undefined ? { nonce, signature: form, byContract: true } : undefined
}

/**
 * Returns what the lanes know about a body that one has accepted before. If its signature is not valid now, it must be the
 * very same call: then it was valid, even if the signer has changed.
 */
async function findAccepted(
  context: Context,
  { primaryType, lane, signature, callWith }: SignedBody,
  { digest, ...request }: RelayRequest,
  { isSigned }: { isSigned: boolean },
): Promise<IntentRecord | undefined> {
  const record = await (messageKinds[primaryType].acceptedIn === 'lane'
    ? lane.find(principalOf(request), digest)
    : findInAllLanes(context, digest))
  const isSame = isSigned || formsOf(signature).forms.some(form => callWith(form).data === record?.call?.data)
  return isSame && record?.state !== 'rejected' ? record : undefined
}

const findInAllLanes = ({ journals }: Context, digest: Hex) =>
  journals.findIntent(digest).catch(error => {
    throw refuse('EXECUTOR_UNREACHABLE', { digest }, { cause: error })
  })

/**
 * Collects the fee of a body after simulating its call, and returns the x402 receipt; undefined if no fee is due. Throws the
 * contract error of the simulation, or the refusal of the payment.
 */
async function collectFee(
  context: Context,
  { payment, submission }: Call,
  body: SignedBody,
  request: RelayRequest,
): Promise<PaymentReceipt | undefined> {
  const { fee, block, lane, signer } = body
  const due = fee?.payments.dueOf(fee.amount, nowAt(block))
  if (fee === undefined || due === undefined) return undefined
  const revert = await simulate(context.chain, lane.address, request.call, block)
  // A concurrent request with the identical body may have executed it, which makes the simulation fail.
  if (revert && !(await findAccepted(context, body, request, { isSigned: true })))
    throw await refusalAtHead(context.chain, { data: revert.data, context: revertContext(request) })
  const registration = { signer, digest: request.digest, nonce: BigInt(request.groupNonce) }
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
