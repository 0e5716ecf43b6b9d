import { type Domain, digestOf, type Message } from '@agent-trading-service/protocol/typed-data'
import type { Address, Hex } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { acceptedByAccount, verifySignature } from '../chain/verify-signature.ts'
import { recoverSigner } from '../crypto/recover-signer.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { GasSpender, RelayRequest } from '../executor/relay-types.ts'

const MAX_NONCES = 8n

/** A signed message for the agent registry. Its body carries no nonce. */
type RegistryMessage = {
  primaryType: 'SelfRegister' | 'LinkERC8004'
  domain: Domain
  signer: Address
  /** The signer's next nonce in the registry. */
  currentNonce: bigint
  messageOf: (nonce: bigint) => Message
  signature: Hex
  relay: Pick<RelayRequest, 'kind' | 'deadline' | 'call'>
}

/**
 * Verifies a message for the registry and returns its relay, its nonce, and the refusal if that nonce has been used:
 * whether that matters is for the caller to decide, because a repeated body was signed with an earlier nonce. Throws
 * INVALID_SIGNATURE.
 */
export async function verifyRegistryMessage(
  chain: Chain,
  { primaryType, domain, signer, currentNonce, messageOf, signature, relay }: RegistryMessage,
): Promise<{ relay: RelayRequest; nonce: bigint; nonceRefusal: Refusal | undefined }> {
  const digestAt = (nonce: bigint) => digestOf(domain, primaryType, messageOf(nonce))
  const spenders: GasSpender[] = [`owner:${signer}`, ...(relay.kind === 'register' ? (['newAgents'] as const) : [])]
  const signedNonce = await findSignedNonce(chain, currentNonce, signer, signature, digestAt)
  const nonce = signedNonce ?? currentNonce
  if (signedNonce === undefined)
    await verifySignature(chain, signer, { domain, primaryType, message: messageOf(nonce) }, signature)
  return {
    relay: { ...relay, digest: digestAt(nonce), group: `signer:${signer}`, groupNonce: `${nonce}`, spenders },
    nonce,
    nonceRefusal:
      nonce === currentNonce ? undefined : refuse('INVALID_NONCE', { given: nonce, expected: currentNonce }),
  }
}

/**
 * Finds the nonce that a signature is over: the current one or one of the seven before it. Checks a key's signature
 * without a call, an ERC-1271 account's with one. Returns undefined if the signature is over none of them.
 */
async function findSignedNonce(
  chain: Chain,
  current: bigint,
  signer: Address,
  signature: Hex,
  digestAt: (nonce: bigint) => Hex,
): Promise<bigint | undefined> {
  const count = Number(current < MAX_NONCES ? current + 1n : MAX_NONCES)
  const nonces = Array.from({ length: count }, (_, back) => current - BigInt(back))
  for (const nonce of nonces) {
    const { address } = recoverSigner(digestAt(nonce), signature)
    if (address === signer) return nonce
    if (address === null) break
  }
  const earlier = nonces.slice(1)
  if (earlier.length === 0) return undefined
  const accepted = await acceptedByAccount(chain, signer, earlier.map(digestAt), signature)
  return earlier[accepted.indexOf(true)]
}
