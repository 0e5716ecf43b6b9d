import { decodeEvent } from '@agent-trading-service/protocol/decode-event'
import type { OwnerPrimaryType as AnyOwnerPrimaryType, Message } from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, isAddressEqual } from 'viem'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { type Call, OperationReply } from '../call.ts'
import { priceNeedOf } from '../chain/carried-prices.ts'
import type { Block } from '../chain/configured-chain.ts'
import { encodeCall } from '../chain/encode-and-decode-call.ts'
import { newest } from '../chain/min-blocks.ts'
import { provenTokensOf } from '../chain/newest-prices.ts'
import { getOwnerTerms, type OwnerTerms } from '../chain/read-owner-terms.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import type { ReceiptLog } from '../executor/relay-types.ts'
import { requestingAgent } from '../executor/requester.ts'
import { presentAgentControl } from '../resources/mandate.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { presentEip712, presentTypedData } from '../resources/typed-data.ts'
import { codeRequest } from '../rpc/requests.ts'
import { quoteDeadline } from './deadline.ts'
import { submissionWarnings } from './intake.ts'
import { relaySignedBody, repeatingAgent } from './relay-signed-body.ts'
import { nothingToSign } from './trade-quote.ts'

type OwnerPrimaryType = Exclude<AnyOwnerPrimaryType, 'OwnAgent'>

/** Who must sign a message, with its next nonce. */
type Party = { address: Address; nonce: bigint }

/** Returns the owner of an agent as the party that signs. */
export const ownerOf = ({ agent, ownerNonce }: OwnerTerms): Party => ({ address: agent.owner, nonce: ownerNonce })

type OwnerQuote<P extends OwnerPrimaryType, B> = {
  agentId: bigint
  primaryType: P
  deadline: bigint | undefined
  party?: (terms: OwnerTerms) => Party
  /** The message and the body without nonce and deadline; undefined unless the request names every value. */
  message?: (terms: OwnerTerms) => { message: Message; body: B } | undefined
  /** The field without which there is no message. */
  missing?: string
  warnings?: (terms: OwnerTerms, block: Block) => string[] | Promise<string[]>
}

/** Returns the quote for a message of an owner. Throws AGENT_NOT_FOUND, OWNER_CONTROLS_NOT_SET. */
export async function quoteOwnerMessage<P extends OwnerPrimaryType, B extends object>(
  context: Context,
  quote: OwnerQuote<P, B>,
) {
  const { agentId, primaryType, party = ownerOf } = quote
  const { block, terms } = await readTerms(context, agentId, party)
  const { address: signer, nonce } = party(terms)
  const deadline = quoteDeadline(quote.deadline, block)
  const signable = quote.message?.(terms)
  const warnings = [
    ...(await submissionWarnings(context, primaryType, requesterOf(agentId, primaryType, { terms, block, signer }))),
    ...((await quote.warnings?.(terms, block)) ?? []),
    ...(signable || quote.missing === undefined ? [] : [nothingToSign([quote.missing])]),
  ]
  return {
    agentId: `${agentId}`,
    signer,
    nonce: `${nonce}`,
    eip712: presentEip712(terms.domain, primaryType),
    ownerControls: terms.contract,
    ...(warnings.length > 0 && { warnings }),
    serverTime: `${nowAt(block)}`,
    suggestedDeadline: `${deadline}`,
    ...(signable && {
      ...presentTypedData(terms.domain, primaryType, { ...signable.message, nonce, deadline }),
      body: { ...signable.body, nonce: `${nonce}`, deadline: `${deadline}` },
    }),
    asOf: presentAsOf(block),
  }
}

/** Code of a key that has delegated to a contract (EIP-7702), and still signs as a key. */
const DELEGATION = '0xef0100'

/** Warns of a key that is to trade if it is the owner's, or a contract. Throws CHAIN_UNREACHABLE. */
export async function newSignerWarnings(
  { chain }: Context,
  newSigner: Address | undefined,
  owner: Address | undefined,
): Promise<string[]> {
  if (newSigner === undefined) return []
  const code = await chain.rpc.read(codeRequest(newSigner))
  return [
    ...(newSigner === owner ? ['The signer would be the owner: whoever steals that key owns the agent.'] : []),
    ...(code === '0x' || code.startsWith(DELEGATION)
      ? []
      : [`${newSigner} is a contract, which has to accept every trade by ERC-1271: name a key if that is not meant.`]),
  ]
}

type SignedOwnerMessage = {
  agentId: bigint
  nonce: bigint
  deadline: bigint
  signature: Hex
  primaryType: OwnerPrimaryType
  /** Returns the message without nonce and deadline, and the arguments before nonce, deadline and signature. */
  content: () => Promise<OwnerContent> | OwnerContent
  party?: (terms: OwnerTerms) => Party
}
type OwnerContent = { message: Message; args: readonly unknown[] }

/**
 * Relays a message that an agent's owner has signed, and returns who controls the agent then. Throws AGENT_NOT_FOUND,
 * OWNER_CONTROLS_NOT_SET and the refusals of `relaySignedBody`.
 */
export async function relayOwnerMessage(context: Context, call: Call, signed: SignedOwnerMessage) {
  const { agentId, primaryType, nonce, deadline, signature, content, party = ownerOf } = signed
  const posted = { kind: primaryType, nonce, by: repeatingAgent(agentId) }
  const {
    call: { to: contract },
    hash,
    blockNumber,
    logs,
    warnings = [],
    isReplay,
  } = await relaySignedBody(context, call, posted, async () => {
    const { message, args } = await content()
    const { block, terms } = await readTerms(context, agentId, party)
    const { address: signer, nonce: nextNonce } = party(terms)
    return {
      message: { ...message, deadline },
      signature,
      terms: { domain: terms.domain, nonce: nextNonce, block },
      by: requesterOf(agentId, primaryType, { terms, block, signer }),
      ...(primaryType === 'LockFirstLoss' && {
        prices: priceNeedOf(context.chain, await provenTokensOf(context.chain, terms.agent.vault)),
      }),
      callWith: accepted => ({
        to: terms.contract,
        data: encodeCall(ownerControlsAbi, functionOf(primaryType), [...args, nonce, deadline, accepted] as never),
      }),
    }
  })
  const skipped = skippedAgents(contract, logs)
  const response = {
    ...(await readAgentControl(context.notBefore(newest(blockNumber, context.chain.minBlock)), agentId)),
    transactionHash: hash,
    blockNumber: `${blockNumber}`,
    ...(skipped.length + warnings.length > 0 && { warnings: [...warnings, ...skipped] }),
  }
  return new OperationReply(response, { isReplay })
}

/**
 * Returns who sends a message. An owner offers the agent to any address, so the budgets are those of the present owner.
 */
const requesterOf = (
  agentId: bigint,
  primaryType: OwnerPrimaryType,
  { terms, block, signer }: { terms: OwnerTerms; block: Block; signer: Address },
) => ({
  as: primaryType === 'AcceptOwnership' ? ('newOwner' as const) : ('owner' as const),
  agent: requestingAgent(agentId, terms.agent, block),
  account: signer,
})

/** Returns the function of OwnerControls that takes a message: each is named after it. */
const functionOf = <P extends OwnerPrimaryType>(primaryType: P) =>
  `${primaryType[0]?.toLowerCase()}${primaryType.slice(1)}` as Uncapitalize<P>

/** Returns a warning for each agent that a stop left out. */
const skippedAgents = (contract: Address, logs: readonly ReceiptLog[]): string[] =>
  logs.flatMap(log => {
    const event = isAddressEqual(log.address, contract) ? decodeEvent(ownerControlsAbi, log) : undefined
    return event?.eventName === 'AgentSkipped'
      ? [`Agent ${event.args.agentId} belongs to ${event.args.owner}, so this message does not stop it.`]
      : []
  })

/**
 * Reads the terms of a message. The signer's nonce counts for all of its agents, so it is no older than one of another
 * agent.
 */
async function readTerms(
  { chain, minBlocks }: Pick<Context, 'chain' | 'minBlocks'>,
  agentId: bigint,
  party: (terms: OwnerTerms) => Party,
) {
  const read = await getOwnerTerms(chain, agentId)
  const minBlock = minBlocks.of(`account:${party(read.terms).address}`)
  return minBlock !== undefined && minBlock > read.block.number ? getOwnerTerms({ ...chain, minBlock }, agentId) : read
}

/** Reads who controls an agent. Throws AGENT_NOT_FOUND, OWNER_CONTROLS_NOT_SET. */
export async function readAgentControl({ chain }: Pick<Context, 'chain'>, agentId: bigint) {
  const { block, terms } = await getOwnerTerms(chain, agentId)
  const symbolOf = await symbolsOf(chain, terms.mandate.allowedTokens ?? [])
  return presentAgentControl(block, agentId, terms, symbolOf)
}
