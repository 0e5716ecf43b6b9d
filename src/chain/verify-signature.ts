import { digestOf, type SignedMessage, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, parseAbi } from 'viem'
import { recoverSigner } from '../crypto/secp256k1.ts'
import { refuse } from '../errors/refuse.ts'
import type { Chain } from './configured-chain.ts'
import { eip712Contract } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'
import { type DeploymentDomains, findSignatureMistake } from './signature-mistakes.ts'

const ERC1271_MAGIC = '0x1626ba7e'
const erc1271Abi = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])

/**
 * Verifies a signature like the contracts: ECDSA first, without a call, then ERC-1271, with one. Malleable signatures
 * (high s, v other than 27 or 28) are rejected, because the contracts reject them. A caller that has computed the message's
 * digest passes it. Throws INVALID_SIGNATURE, with the signer's mistake if it is a common one and `maySearch` allows to look.
 */
export async function verifySignature(
  chain: Chain,
  signer: Address,
  signed: SignedMessage & { digest?: Hex },
  signature: Hex,
  maySearch?: () => boolean,
): Promise<void> {
  const check = await checkSignature(chain, signer, signed, signature, maySearch)
  if (check.isValid) return
  const { problem, mistake, recovered, digest } = check
  throw refuse('INVALID_SIGNATURE', { problem, mistake, signer, recovered, digest })
}

/** Returns, for each digest, whether a contract account accepts the signature; false if the signer has no code. */
export async function acceptedByAccount(
  chain: Chain,
  signer: Address,
  digests: readonly Hex[],
  signature: Hex,
): Promise<boolean[]> {
  const { values } = await readTree(
    chain,
    digests.map(digest => isValidSignatureCall(signer, digest, signature)),
  )
  return values.map(value => value === ERC1271_MAGIC)
}

const isValidSignatureCall = (signer: Address, digest: Hex, signature: Hex) =>
  optional(call({ address: signer, abi: erc1271Abi }, 'isValidSignature', [digest, signature]))

/** Whether a signature is valid, and what is wrong with it otherwise. */
export type SignatureCheck = {
  digest: Hex
  /** The address of the key that signed; null if the signature recovers to none. */
  recovered: Address | null
} & ({ isValid: true } | { isValid: false; problem: string; mistake?: string })

/**
 * Checks the signature of a message. Throws CHAIN_UNREACHABLE if the signer may be a contract and no node responds. Searching
 * for a mistake takes more CPU than any other request, so `maySearch` is called right before.
 */
export async function checkSignature(
  chain: Chain,
  signer: Address,
  signed: SignedMessage & { digest?: Hex },
  signature: Hex,
  maySearch: () => boolean = () => true,
): Promise<SignatureCheck> {
  const digest = signed.digest ?? digestOf(signed.domain, signed.primaryType, signed.message)
  const { address: recovered, problem } = recoverSigner(digest, signature)
  if (recovered === signer) return { isValid: true, digest, recovered }
  const { isAccepted, deployment } = await readAccountCheck(chain, signer, digest, signature)
  if (isAccepted) return { isValid: true, digest, recovered }
  const mistake = maySearch() ? await findSignatureMistake(signer, signature, signed, deployment) : undefined
  return { isValid: false, digest, recovered, problem, ...mistake }
}

/** Queries a contract account, and in the same round trip the domains on which a message may be signed by mistake. */
async function readAccountCheck(chain: Chain, signer: Address, digest: Hex, signature: Hex) {
  const { contracts, trading, vaults } = chain
  const { values } = await readTree(chain, {
    accepted: isValidSignatureCall(signer, digest, signature),
    domains: [
      optional(call(eip712Contract(contracts.AgentRegistry), 'eip712Domain', [])),
      optional(call(eip712Contract(trading?.TradeRouter ?? contracts.AgentRegistry), 'eip712Domain', [])),
    ],
  })
  const addresses: (Address | undefined)[] = Object.values({ ...contracts, ...trading, ...vaults })
  const deployment: DeploymentDomains = {
    contracts: addresses.filter(address => address !== undefined),
    domains: values.domains.flatMap(domain => (domain ? [toDomain(domain)] : [])),
  }
  return { isAccepted: values.accepted === ERC1271_MAGIC, deployment }
}
