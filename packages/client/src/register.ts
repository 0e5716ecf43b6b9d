import type { PrimaryType } from '@agent-trading-service/protocol/typed-data'
import type { Address, Hex } from 'viem'
import { type Account, canonicalForm, signWith } from './account.ts'
import { deadlineOf } from './agent.ts'
import { type Integer, toDigits } from './amounts.ts'
import { PaymentError, ValidationError } from './errors.ts'
import type { components } from './generated/openapi.ts'
import { fillPath } from './http.ts'
import {
  accountFor,
  assertSafe,
  type ClientContext,
  holderOf,
  type MessageOptions,
  submissionOf,
  submitAndRemember,
} from './prepare.ts'
import type { ReadOutput } from './reads.ts'
import { isExecuted, type Payer } from './submit.ts'
import { digestOf, type Message, type TypedData } from './typed-data.ts'
import { verifyQuote } from './verify-quote.ts'

export type RegistrationQuote = ReadOutput<'getRegistrationQuote'>
/** `transaction` and `message` are missing where the outcome was found by its digest only. */
export type RegistrationReceipt = Pick<components['schemas']['Registration'], 'agentId' | 'transactionHash'> &
  Partial<components['schemas']['Registration']>

export type RegisterRequest = MessageOptions & {
  /** Slug or address of the vault in which the agent will trade. */
  vault: string
  name: string
  /** URI of the agent's own description; none by default, which the registry keeps as the empty document `data:,`. */
  metadataURI?: string
  /** The key that trades; the client's account by default. */
  signer?: Address
  /**
   * Who owns the agent, if not the signer: an account that signs its consent, or an address whose owner signs
   * elsewhere.
   */
  owner?: Account | Address
  /** Token id of an ERC-8004 identity to link. */
  erc8004AgentId?: Integer
}
export type PayingRegisterRequest = RegisterRequest & {
  /** Pays the fee where the deployment takes one; see the entry `/pay`. */
  payer?: Payer
}

/** A registration that was compared with its request and waits for signatures. */
export type PreparedRegistration = {
  quote: RegistrationQuote
  signer: Address
  /** What the signer signs. */
  typedData: TypedData
  digest: Hex
  /** What the owner signs, if it is not the signer. */
  consent: { owner: Address; typedData: TypedData; digest: Hex } | undefined
  submit(signature: Hex, options?: { ownerSignature?: Hex; payer?: Payer | undefined }): Promise<RegistrationReceipt>
}

/** The registry requires a URI. */
const NO_METADATA = 'data:,'

/** Fetches the quote of a registration and compares it with the request. Throws an `UntrustedQuoteError`. */
export async function prepareRegister(context: ClientContext, request: RegisterRequest): Promise<PreparedRegistration> {
  const { http, deployment } = context
  const { name, metadataURI = NO_METADATA, erc8004AgentId } = request
  const signer = request.signer ?? context.account?.address
  if (!signer)
    throw new ValidationError('NO_ACCOUNT', 'There is no signer: pass `signer`, or `account` to createClient.')
  const owner = typeof request.owner === 'string' ? request.owner : request.owner?.address
  const vault = await deployment.vaultBy(request.vault)
  const terms = {
    vault,
    name,
    metadataURI,
    signer,
    linkERC8004: erc8004AgentId !== undefined,
    erc8004AgentId: toDigits(erc8004AgentId ?? 0n, 'erc8004AgentId'),
  }
  const deadline = deadlineOf(request)
  const body = { ...terms, ...(owner && { owner }) }
  const quote = await http.get<RegistrationQuote>(fillPath('/agents/register/quote', { ...body, deadline }))
  const now = await deployment.now()

  async function verify(
    primaryType: PrimaryType,
    by: Address,
    message: Message,
    given: { typedData?: unknown; digest?: unknown; nonce: unknown; signer?: unknown },
  ) {
    const contract = primaryType === 'OwnAgent' ? 'ownerControls' : 'agentRegistry'
    const verified = verifyQuote(
      { ...given, body: quote.body, serverTime: quote.serverTime },
      {
        domain: await deployment.domainOf(contract),
        primaryType,
        message,
        signer: by,
        nonce: await deployment.nonceOf(contract, { account: by }),
        deadline,
        now,
        maxDeadlineSeconds: context.maxDeadlineSeconds,
        body,
      },
    )
    return { ...verified, digest: digestOf(verified.typedData) }
  }

  const { typedData, digest, signerNonce, ownerConsent } = quote
  const nonceOnChain = await deployment.nonceOf('agentRegistry', { account: signer })
  const own = await verify('SelfRegister', signer, terms, { typedData, digest, nonce: signerNonce })
  const consent =
    owner &&
    (await verify('OwnAgent', owner, terms, {
      typedData: ownerConsent?.typedData,
      digest: ownerConsent?.digest,
      nonce: ownerConsent?.nonce,
      signer: ownerConsent?.owner,
    }))
  const holder = holderOf(own.typedData.domain, { account: signer })
  // The owner's consent is part of what is executed, so its digest identifies the registration.
  const posting = { nonce: own.nonce, digest: consent ? consent.digest : own.digest }
  await assertSafe(context, holder, posting, now, nonceOnChain)
  return {
    quote,
    signer,
    typedData: own.typedData,
    digest: own.digest,
    consent: owner && consent ? { owner, typedData: consent.typedData, digest: consent.digest } : undefined,
    async submit(given, { ownerSignature: givenByOwner, payer } = {}) {
      if (consent && givenByOwner === undefined)
        throw new ValidationError('NO_OWNER_SIGNATURE', `${owner} has to sign its consent: pass ownerSignature.`)
      const signature = await canonicalForm(given, { digest: own.digest, signer })
      const ownerSignature =
        owner &&
        consent &&
        givenByOwner &&
        (await canonicalForm(givenByOwner, { digest: consent.digest, signer: owner }))
      const posted = submissionOf(
        {
          kind: 'register',
          primaryType: 'SelfRegister',
          message: terms,
          body: { ...body, ...(consent && { ownerNonce: consent.nonce, ownerSignature }) },
          bodyHasNonce: false,
          quote: { path: '', query: {} },
          submit: { method: 'POST', path: '/agents/register' },
          pathValues: {},
          deadline,
        },
        { ...own, digest: posting.digest, signature },
      )
      const submission = { ...posted, nonce: { holder, value: own.nonce } }
      const present = await deployment.now()
      await context.nonces.assertAlone(holder, posting, present, other => isExecuted(http, other))
      context.nonces.remember(holder, { ...posting, deadline: own.deadline }, present)
      await context.onSubmission?.(submission)
      return submitAndRemember<RegistrationReceipt>(context, submission, payer)
    },
  }
}

/** Registers an agent: compares, signs, pays the fee if there is one, and returns the agent's id. */
export async function register(
  context: ClientContext,
  { payer, ...request }: PayingRegisterRequest,
): Promise<RegistrationReceipt> {
  const prepared = await prepareRegister(context, request)
  const { quote, signer, typedData, consent } = prepared
  const account = accountFor(context.account, signer)
  if (quote.x402.enabled) assertPays(quote, payer)
  const ownerSignature = consent && (await signWith(ownerOf(request, consent.owner), consent.typedData))
  const signature = await signWith(account, typedData)
  return prepared.submit(signature, { ...(ownerSignature && { ownerSignature }), payer })
}

function assertPays({ x402, registrationFee }: RegistrationQuote, payer: Payer | undefined): void {
  const { displayUsd, assetSymbol } = registrationFee
  if (payer === undefined)
    throw new PaymentError(
      'PAYER_REQUIRED',
      `The registration costs ${displayUsd} ${assetSymbol}; there is no payer.`,
      {
        remedy: "Pass `payer`, made with createPayer of '@agent-trading-service/client/pay'.",
      },
    )
  if (x402.requirements) payer.assertAccepts(x402.requirements)
}

function ownerOf({ owner }: RegisterRequest, address: Address): Account {
  if (typeof owner === 'object') return owner
  throw new ValidationError('NO_ACCOUNT', `The owner ${address} has to sign, and only its address is known.`, {
    remedy: 'Pass the account as `owner`, or use prepareRegister and submit with ownerSignature.',
  })
}
