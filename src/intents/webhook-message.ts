import { formsOf } from '@agent-trading-service/protocol/signature-forms'
import {
  digestOf,
  type Message,
  type SignedMessage,
  type WebhookPrimaryType,
} from '@agent-trading-service/protocol/typed-data'
import { type Address, bytesToHex, type Hex } from 'viem'
import type { Call } from '../call.ts'
import { getAgent } from '../chain/agents.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { serviceDomain } from '../chain/signing-domains.ts'
import { checkSignature, verifySignature } from '../chain/verify-signature.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { recoverSigner } from '../crypto/secp256k1.ts'
import { refuse } from '../errors/refuse.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { presentEip712, presentTypedData } from '../resources/typed-data.ts'
import type { WebhookParty } from '../webhooks/store.ts'
import { deadlineRefusal, quoteDeadline } from './deadline.ts'

/** The service remembers executed messages until their deadline, so that must not be far. */
const MAX_LIFETIME_SECONDS = 3_600n

type WebhookMessageQuote<P extends WebhookPrimaryType, B> = {
  agentId: bigint
  primaryType: P
  deadline: bigint | undefined
  /** The message and the body without deadline. */
  message: Message
  body: B
}

/** Returns the quote for a message about webhooks. Throws AGENT_NOT_FOUND, WEBHOOK_DEADLINE_TOO_FAR. */
export async function quoteWebhookMessage<P extends WebhookPrimaryType, B extends object>(
  { chain, config }: Pick<Context, 'chain' | 'config'>,
  { agentId, primaryType, deadline: requested, message, body }: WebhookMessageQuote<P, B>,
) {
  const { block, agent } = await getAgent(chain, agentId)
  const deadline = quoteDeadline(requested, block)
  assertNear(deadline, block)
  const domain = serviceDomain(chain, config.serviceHosts[0])
  return {
    agentId: `${agentId}`,
    signers: [...new Set([agent.owner, agent.signer])],
    eip712: presentEip712(domain, primaryType),
    serverTime: `${nowAt(block)}`,
    suggestedDeadline: `${deadline}`,
    ...presentTypedData(domain, primaryType, { ...message, deadline }),
    body: { ...body, deadline: `${deadline}` },
    asOf: presentAsOf(block),
  }
}

/** A random salt. */
export const newSalt = (): Hex => bytesToHex(crypto.getRandomValues(new Uint8Array(32)))

/** A verified message: who signed it, and what identifies it. Times are Unix seconds; the chain's is the block's. */
type VerifiedWebhookMessage = {
  party: WebhookParty
  account: Address
  digest: Hex
  deadline: number
  chainTime: number
}

/**
 * Verifies a message about webhooks, signed by the agent's owner or signer. Throws AGENT_NOT_FOUND, INVALID_SIGNATURE,
 * EXPIRED_DEADLINE, WEBHOOK_DEADLINE_TOO_FAR, RATE_LIMITED.
 */
export async function verifyWebhookMessage(
  { chain, config }: Pick<Context, 'chain' | 'config'>,
  call: Call,
  primaryType: WebhookPrimaryType,
  { agentId, deadline, signature, ...rest }: Message & { agentId: bigint; deadline: bigint; signature: Hex },
): Promise<VerifiedWebhookMessage> {
  const { block, agent } = await getAgent(chain, agentId)
  const message = { agentId, ...rest, deadline }
  const signedFor = (host: string) => ({ domain: serviceDomain(chain, host), primaryType, message })
  const [ownHost, ...otherHosts] = config.serviceHosts
  const byKey = otherHosts.flatMap(host => partyOfKey(agent, signedFor(host), signature) ?? [])
  const { party, signed } = byKey[0] ?? (await findParty(chain, call, agent, signedFor(ownHost), signature))
  const expired = deadlineRefusal(deadline, block)
  if (expired) throw expired
  assertNear(deadline, block)
  const digest = digestOf(signed.domain, primaryType, signed.message)
  call.client?.leave()
  const account = agent[party]
  // Anyone can send a repeated one, so it counts for the address alone.
  if (!call.client?.isRepeated(digest)) await call.client?.countSigner(account)
  call.client?.raise(account, digest)
  return { party, account, digest, deadline: Number(deadline), chainTime: Number(block.timestamp) }
}

/** A message and who signed it. */
type SignedByParty = { party: WebhookParty; signed: SignedMessage }
type Parties = { owner: Address; signer: Address }

/** Returns whose key signed, without a call; undefined if it was neither of the two. */
function partyOfKey({ owner, signer }: Parties, signed: SignedMessage, signature: Hex): SignedByParty | undefined {
  const digest = digestOf(signed.domain, signed.primaryType, signed.message)
  const { address } = recoverSigner(digest, formsOf(signature).forms[0])
  if (address === owner) return { party: 'owner', signed }
  return address === signer ? { party: 'signer', signed } : undefined
}

/** Returns who signed. Keys are checked without a call, contracts with one each. Throws INVALID_SIGNATURE. */
async function findParty(
  chain: Chain,
  { client }: Call,
  { owner, signer }: Parties,
  signed: SignedMessage,
  signature: Hex,
): Promise<SignedByParty> {
  const ofKey = partyOfKey({ owner, signer }, signed, signature)
  if (ofKey) return ofKey
  if ((await checkSignature(chain, owner, signed, signature, { maySearch: () => false })).isValid)
    return { party: 'owner', signed }
  await verifySignature(chain, signer, signed, signature, { maySearch: client?.maySearch })
  return { party: 'signer', signed }
}

function assertNear(deadline: bigint, block: Block) {
  const latestDeadline = nowAt(block) + MAX_LIFETIME_SECONDS
  if (deadline > latestDeadline) throw refuse('WEBHOOK_DEADLINE_TOO_FAR', { deadline, latestDeadline })
}
