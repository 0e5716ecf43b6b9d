import { digestOf, type Message, type OwnerPrimaryType } from '@agent-trading-service/protocol/typed-data'
import { type Address, encodeFunctionData, type Hex } from 'viem'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import type { Call } from '../call.ts'
import type { Block } from '../chain/block-type.ts'
import { getOwnerTerms, type OwnerTerms } from '../chain/read-owner-terms.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { verifySignature } from '../chain/verify-signature.ts'
import type { Context } from '../context.ts'
import { recoverSigner } from '../crypto/recover-signer.ts'
import { refuse } from '../errors/refuse.ts'
import { refusalAtHead } from '../executor/failed-intent-refusals.ts'
import type { RelayRequest } from '../executor/relay-types.ts'
import { presentAgentControl } from '../resources/mandate.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { presentEip712, presentTypedData } from '../resources/typed-data.ts'
import { countSigner } from './count-signer.ts'
import { deadlineRefusal, deadlineWarnings, quoteDeadline } from './deadline.ts'
import { OperationReply } from './define-operation.ts'
import { gasSpendersOfOwner } from './gas-budget-check.ts'
import { intakeRefusal, intakeWarnings } from './intake-check.ts'
import { nothingToSign } from './quote-response.ts'
import { relayOrRefuse } from './relay-or-refuse.ts'

/** Who must sign a message, with its next nonce. */
type Party = { address: Address; nonce: bigint }

/** Returns the owner of an agent as the party that signs. */
export const ownerOf = ({ agent, ownerNonce }: OwnerTerms): Party => ({ address: agent.owner, nonce: ownerNonce })

/** Returns the intake of a message: stops have one of their own, because they let the owner's money out. */
const intakeOf = (primaryType: OwnerPrimaryType) =>
  primaryType === 'StopBuying' || primaryType === 'CloseAll' ? 'ownerStops' : 'ownerMessages'

type OwnerQuote<P extends OwnerPrimaryType, B> = {
  agentId: bigint
  primaryType: P
  deadline: bigint | undefined
  party?: (terms: OwnerTerms) => Party
  /** The message and the body without nonce and deadline; undefined unless the request names every value. */
  message?: (terms: OwnerTerms) => { message: Message; body: B } | undefined
  /** The field without which there is no message. */
  missing?: string
  warnings?: (terms: OwnerTerms, block: Block) => string[]
}

/** Returns the quote for a message of an owner. Throws AGENT_NOT_FOUND, OWNER_CONTROLS_NOT_SET. */
export async function quoteOwnerMessage<P extends OwnerPrimaryType, B extends object>(
  context: Context,
  quote: OwnerQuote<P, B>,
) {
  const { chain } = context
  const { agentId, primaryType, party = ownerOf } = quote
  const { block, terms } = await getOwnerTerms(chain, agentId)
  const { address: signer, nonce } = party(terms)
  const deadline = quoteDeadline(quote.deadline, block)
  const signable = quote.message?.(terms)
  const warnings = [
    ...(await intakeWarnings(context, intakeOf(primaryType))),
    ...(quote.warnings?.(terms, block) ?? []),
    ...(signable || quote.missing === undefined ? [] : [nothingToSign([quote.missing])]),
  ]
  return {
    agentId: `${agentId}`,
    signer,
    nonce: `${nonce}`,
    eip712: presentEip712(terms.domain, primaryType),
    ownerControls: terms.contract,
    ...(warnings.length > 0 && { warnings }),
    serverTime: `${block.timestamp}`,
    suggestedDeadline: `${deadline}`,
    ...(signable && {
      ...presentTypedData(terms.domain, primaryType, { ...signable.message, nonce, deadline }),
      body: { ...signable.body, nonce: `${nonce}`, deadline: `${deadline}` },
    }),
    asOf: presentAsOf(block),
  }
}

type OwnerFunction =
  | 'offerOwnership'
  | 'acceptOwnership'
  | 'setSigner'
  | 'setMandate'
  | 'stopBuying'
  | 'closeAll'
  | 'cancelIntents'

type SignedOwnerMessage = {
  agentId: bigint
  nonce: bigint
  deadline: bigint
  signature: Hex
  primaryType: OwnerPrimaryType
  /** The message without nonce and deadline. */
  message: Message
  functionName: OwnerFunction
  /** The arguments before nonce, deadline and signature. */
  args: readonly unknown[]
  party?: (terms: OwnerTerms) => Party
}

/**
 * Verifies a message of an owner, relays it, and returns who controls the agent then. Posting the identical body again
 * returns the same transaction and never executes it twice, also when the agent has another owner by then. Throws
 * AGENT_NOT_FOUND, OWNER_CONTROLS_NOT_SET, INVALID_SIGNATURE, INVALID_NONCE and the refusals of a relay.
 */
export async function relayOwnerMessage(context: Context, call: Call, signed: SignedOwnerMessage) {
  const { chain, executor } = context
  const { agentId, nonce, deadline, signature, primaryType, party = ownerOf } = signed
  const { block, terms } = await getOwnerTerms(chain, agentId)
  const { address: signer, nonce: expected } = party(terms)
  const message = { ...signed.message, nonce, deadline }
  const digest = digestOf(terms.domain, primaryType, message)
  const { address: recovered } = recoverSigner(digest, signature)
  const request: RelayRequest = {
    digest,
    kind: 'owner',
    group: `owner:${signer}`,
    groupNonce: `${nonce}`,
    deadline,
    spenders: gasSpendersOfOwner(signer, { agent: terms.agent, block }),
    call: {
      to: terms.contract,
      data: encodeFunctionData({
        abi: ownerControlsAbi,
        functionName: signed.functionName,
        args: [...signed.args, nonce, deadline, signature],
      } as Parameters<typeof encodeFunctionData>[0]),
    },
  }
  const isNext = nonce === expected && recovered === signer
  const repeated = isNext ? undefined : await findRepeatedMessage(context, request)
  // Whoever signed a repeated body may not be the owner any more; its lane still has the outcome.
  const relay = { ...request, group: repeated?.group ?? request.group }
  if (!repeated) {
    if (recovered !== signer)
      await verifySignature(chain, signer, { domain: terms.domain, primaryType, message, digest }, signature)
    const invalid =
      deadlineRefusal(deadline, block) ??
      (nonce === expected ? undefined : refuse('INVALID_NONCE', { given: nonce, expected })) ??
      (await intakeRefusal(context, intakeOf(primaryType)))
    if (invalid) throw invalid
    await countSigner(call, signer, { getsOut: intakeOf(primaryType) === 'ownerStops' })
  }

  const mined = await relayOrRefuse(context, call, executor, relay, revert => refusalAtHead(chain, revert))
  const response = {
    ...(await readAgentControl(context, agentId)),
    transactionHash: mined.hash,
    blockNumber: `${mined.blockNumber}`,
    ...deadlineWarnings(deadline, block),
  }
  return new OperationReply(response, { isReplay: repeated?.state === 'mined' || repeated?.state === 'final' })
}

/** Returns what any lane knows about this very call: a former owner's messages are in another group. */
async function findRepeatedMessage({ journals }: Context, { digest, call }: RelayRequest) {
  const record = await journals.findIntent(digest).catch(error => {
    throw refuse('EXECUTOR_UNREACHABLE', { digest }, { cause: error })
  })
  return record?.state !== 'rejected' && record?.call?.data === call.data ? record : undefined
}

/** Reads who controls an agent. Throws AGENT_NOT_FOUND, OWNER_CONTROLS_NOT_SET. */
export async function readAgentControl({ chain }: Pick<Context, 'chain'>, agentId: bigint) {
  const { block, terms } = await getOwnerTerms(chain, agentId)
  const symbolOf = await symbolsOf(chain, terms.mandate.allowedTokens ?? [])
  return presentAgentControl(block, agentId, terms, symbolOf)
}
