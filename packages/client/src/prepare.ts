import { explainCheck } from '@agent-trading-service/protocol/check-figures'
import type { PrimaryType } from '@agent-trading-service/protocol/typed-data'
import type { Address, Hex } from 'viem'
import { type Account, canonicalForm, signWith } from './account.ts'
import type { NonceHolder } from './chain.ts'
import type { Deployment } from './deployment.ts'
import { RefusedError, type Submission, UntrustedQuoteError, ValidationError } from './errors.ts'
import type { components } from './generated/openapi.ts'
import { fillPath, type Http, type QueryValue } from './http.ts'
import type { Nonces } from './nonces.ts'
import { rebuildTypedData } from './rebuild-typed-data.ts'
import { isExecuted, isVoid, type Payer, submit } from './submit.ts'
import type { InTurn } from './turns.ts'
import { contractOf, type Domain, digestOf, type Message, nonceContractOf, type TypedData } from './typed-data.ts'
import { type GivenQuote, verifyQuote } from './verify-quote.ts'

export type Check = components['schemas']['Check']

/** Options of every message. */
export type MessageOptions = {
  /** Valid until, in Unix seconds. Without it the service suggests one, at most `maxDeadlineSeconds` ahead. */
  deadline?: string | bigint
}

/** A message that was compared with its request and waits for a signature. */
export type Prepared<Quote, Receipt> = {
  /** The service's quote. Use `typedData` of this object, not the quote's: the client has built it itself. */
  quote: Quote
  /** Who has to sign. */
  signer: Address
  typedData: TypedData
  digest: Hex
  /** Every rule that the router will apply; empty for messages of owners. */
  checks: readonly Check[]
  warnings: readonly string[]
  /** Signs with the account. Throws a `RefusedError` with the code CHECKS_FAILED if a check fails. */
  sign(account?: Account): Promise<Hex>
  /** Posts the signature and resolves once the transaction is mined. Safe to call again with the same signature. */
  submit(signature: Hex): Promise<Receipt>
}

/** What the services of one client share. */
export type ClientContext = {
  http: Http
  deployment: Deployment
  account: Account | undefined
  maxDeadlineSeconds: number
  onSubmission: ((submission: Submission) => void | Promise<void>) | undefined
  onWarning: (warning: string) => void
  nonces: Nonces
  /** Trades of one agent take consecutive nonces, so they are quoted, signed and posted one after another. */
  inTurn: InTurn
}

/** A message as it was asked for. */
export type MessageRequest = {
  kind: 'intent' | 'register' | 'link' | 'owner'
  primaryType: PrimaryType
  /** Every field but nonce and deadline. */
  message: Message
  /** Who has to sign, where the quote does not say it. */
  signer?: Address
  nonceHolder?: NonceHolder
  /** The body without nonce, deadline and signature. */
  body: Record<string, unknown>
  /** What the body carries that is not signed. */
  unsigned?: Record<string, unknown> | undefined
  /** Whether the body carries the nonce. */
  bodyHasNonce?: boolean
  quote: { path: string; query: Record<string, QueryValue> }
  submit: { method: 'POST' | 'PUT'; path: string }
  pathValues: Record<string, string>
  deadline: string | undefined
}

type AnyQuote = GivenQuote & { checks?: readonly Check[]; warnings?: readonly string[]; signer?: unknown }

/** Fetches the quote of a message and compares it with the request. Throws an `UntrustedQuoteError` if they differ. */
export async function prepare<Quote, Receipt>(
  context: ClientContext,
  request: MessageRequest,
): Promise<Prepared<Quote, Receipt>> {
  const { http, deployment } = context
  const { primaryType, pathValues, deadline } = request
  const contract = contractOf(primaryType)
  const domain = await deployment.domainOf(contract)
  const path = fillPath(request.quote.path, { ...pathValues, ...request.quote.query, deadline })
  const quote = await http.get<Quote & AnyQuote>(path)
  const signer = request.signer ?? (quote.signer as Address)
  const nonceHolder = request.nonceHolder ?? { account: signer }
  const counter = nonceContractOf(primaryType)
  const holder = holderOf(await deployment.domainOf(counter), nonceHolder)
  const now = await deployment.now()
  const nonceOnChain = await deployment.nonceOf(counter, nonceHolder)
  const verified = verifyQuote(quote, {
    domain,
    primaryType,
    message: request.message,
    signer,
    nonce: nonceOnChain,
    deadline,
    now,
    maxDeadlineSeconds: context.maxDeadlineSeconds,
    body: request.body,
  })
  const { typedData, nonce, deadline: validUntil, warning, secondsAhead } = verified
  if (warning !== undefined) context.onWarning(warning)
  // By a clock that is ahead, posted messages would expire too early.
  const present = async () => (await deployment.now()) - secondsAhead
  const digest = digestOf(typedData)
  await assertSafe(context, holder, { nonce, digest }, now - secondsAhead, nonceOnChain)
  const checks = quote.checks ?? []
  const executed = (posted: Hex) => isExecuted(http, posted)
  return {
    quote,
    signer,
    typedData,
    digest,
    checks,
    warnings: [...(quote.warnings ?? []), ...(warning === undefined ? [] : [warning])],
    async sign(account = context.account) {
      assertPasses(checks)
      await context.nonces.assertAlone(holder, { nonce, digest }, await present(), executed)
      return signWith(accountFor(account, signer), typedData)
    },
    async submit(given) {
      const signature = await canonicalForm(given, { digest, signer })
      const posted = submissionOf(request, { ...verified, digest, signature })
      const submission = { ...posted, nonce: { holder, value: nonce } }
      const now = await present()
      await context.nonces.assertAlone(holder, { nonce, digest }, now, executed)
      context.nonces.remember(holder, { nonce, digest, deadline: validUntil }, now)
      await context.onSubmission?.(submission)
      const receipt = await submitAndRemember<Receipt>(context, submission)
      if (primaryType === 'CancelIntents') await rememberCancelled(context, request.message)
      return receipt
    },
  }
}

/** Returns the name of a nonce: the same one wherever the same contract counts for the same agent or account. */
export const holderOf = ({ chainId, verifyingContract }: Domain, holder: NonceHolder): string =>
  `${chainId}-${verifyingContract}-${'agentId' in holder ? holder.agentId : holder.account}`.toLowerCase()

/** Throws if a message with another nonce may still be executed, or if the nonce was seen used. */
export async function assertSafe(
  { http, nonces }: ClientContext,
  holder: string,
  message: { nonce: string; digest: Hex },
  now: number,
  nonceOnChain: bigint | undefined,
): Promise<void> {
  await nonces.assertAlone(holder, message, now, posted => isExecuted(http, posted))
  await nonces.assertUnused(holder, message, async posted => (nonceOnChain === undefined ? isVoid(http, posted) : true))
}

/** The typed data of a trade that another program posts. */
export type SignedElsewhere = {
  domain: unknown
  primaryType: PrimaryType
  message: Record<string, unknown>
  /** By how much this machine's clock is ahead, as its deadline was judged. */
  secondsAhead?: number
}

/**
 * Takes the nonce of a trade that is signed here and posted by another program, as if it were posted here. Throws an
 * `UntrustedQuoteError` if another message may be executed as well, or if the typed data is not spelled as the service
 * does: another spelling would be another agent.
 */
export async function takeNonce(context: ClientContext, trade: SignedElsewhere): Promise<void> {
  const { deployment, nonces } = context
  const { primaryType } = trade
  const rebuilt = rebuildTypedData(trade, await deployment.domainOf(contractOf(primaryType)), primaryType)
  if ('mismatches' in rebuilt) throw new UntrustedQuoteError('QUOTE_MESSAGE_MISMATCH', rebuilt.mismatches)
  const { message } = rebuilt.typedData
  const agent = { agentId: `${message.agentId}` }
  const holder = holderOf(await deployment.domainOf('tradeRouter'), agent)
  const digest = digestOf(rebuilt.typedData)
  const taken = { nonce: `${message.nonce}`, digest, deadline: `${message.deadline}`, elsewhere: true }
  const now = (await deployment.now()) - (trade.secondsAhead ?? 0)
  await assertSafe(context, holder, taken, now, await deployment.nonceOf('tradeRouter', agent))
  nonces.remember(holder, taken, now)
}

/** Posts a signed message until its outcome is known, and remembers that its nonce is used. */
export async function submitAndRemember<Receipt>(
  { http, nonces }: Pick<ClientContext, 'http' | 'nonces'>,
  submission: Submission,
  payer?: Payer,
): Promise<Receipt> {
  return nonces.post(submission, () => submit<Receipt>(http, submission, payer))
}

/** Remembers that an owner has cancelled the intents of an agent below a nonce. */
async function rememberCancelled({ deployment, nonces }: ClientContext, message: Message): Promise<void> {
  const router = await deployment.domainOf('tradeRouter')
  nonces.usedBelow(holderOf(router, { agentId: `${message.agentId}` }), BigInt(`${message.untilNonce}`))
}

type Signed = { nonce: string; deadline: string; digest: Hex; signature: Hex }

/** Returns a signed message with its way to the service. */
export function submissionOf(request: MessageRequest, { nonce, deadline, digest, signature }: Signed): Submission {
  return {
    kind: request.kind,
    method: request.submit.method,
    path: fillPath(request.submit.path, request.pathValues),
    body: {
      ...request.body,
      ...request.unsigned,
      deadline,
      ...(request.bodyHasNonce !== false && { nonce }),
      signature,
    },
    digest,
  }
}

/** Throws CHECKS_FAILED unless every check passes. */
function assertPasses(checks: readonly Check[]): void {
  const failed = checks.filter(({ pass }) => !pass)
  const [first] = failed
  if (first === undefined) return
  const { code, rule } = first
  const sentence = `The check ${rule} fails${explainCheck(first)}.`
  const remedy = first.remedy ?? 'Change the request so that every check passes; the limits are in details.checks.'
  const others = failed.length > 1 ? ` ${failed.length - 1} more fail: ${namesOf(failed.slice(1))}.` : ''
  throw new RefusedError('CHECKS_FAILED', `${sentence}${others}`, {
    remedy,
    details: { code, rule, sentence, remedy, checks: failed },
  })
}

const namesOf = (checks: readonly Check[]) => checks.map(({ rule }) => rule).join(', ')

/**
 * Returns the account that is to sign. Throws a `ValidationError` if there is none, or if it is not the one asked for.
 */
export function accountFor(account: Account | undefined, signer: string): Account {
  if (account === undefined)
    throw new ValidationError('NO_ACCOUNT', `${signer} has to sign, and the client has no account.`, {
      remedy: 'Pass `account` to createClient, or sign `typedData` elsewhere and call submit(signature).',
    })
  if (account.address.toLowerCase() !== signer.toLowerCase())
    throw new ValidationError('WRONG_ACCOUNT', `${signer} has to sign, but the account is ${account.address}.`, {
      remedy: "Use the agent's signer for trades and its owner for messages of owners.",
    })
  return account
}
