import { type Address, type Hex, hexToBytes, parseAbi, recoverAddress } from 'viem'
import { refuse } from '../errors/catalogue.ts'
import { type DeploymentDomains, findSignatureMistake } from '../protocol/signature-mistakes.ts'
import { digestOf, domainAbi, type SignedMessage, toDomain } from '../protocol/typed-data.ts'
import { type Chain, maybe, read } from './chain.ts'

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const ERC1271_MAGIC = '0x1626ba7e'
const erc1271Abi = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])

/**
 * Holds a signature against its signer, as the contracts do: ECDSA first, without a call, then ERC-1271, with one.
 * A malleable form (high s, v other than 27 or 28) is refused, since the contracts refuse it.
 * Throws INVALID_SIGNATURE with the problem in words: the mistake that was made, where it is a common one.
 */
export async function verifySignature(chain: Chain, signer: Address, signed: SignedMessage, signature: Hex) {
  const judgement = await judgeSignature(chain, signer, signed, signature)
  if (judgement.isValid) return
  const { problem, mistake, recovered, digest } = judgement
  throw refuse('INVALID_SIGNATURE', { problem, mistake, signer, recovered, digest })
}

/** Which of several digests a contract signer accepts a signature of, in one read; none where it has no code. */
export async function acceptedByAccount(chain: Chain, signer: Address, digests: readonly Hex[], signature: Hex) {
  const calls = digests.map(
    digest =>
      ({ address: signer, abi: erc1271Abi, functionName: 'isValidSignature', args: [digest, signature] }) as const,
  )
  const { more } = await read(chain, [], undefined, calls)
  return more.map(outcome => maybe(outcome) === ERC1271_MAGIC)
}

/** What there is to say of a signature: whether it is the signer's, and if not, what is wrong with it. */
export type Judgement = {
  digest: Hex
  /** The address of the key that made it, if it is a key's at all. */
  recovered: Address | null
} & ({ isValid: true } | { isValid: false; problem: string; mistake?: string })

/** Judges a signature of a message. Throws CHAIN_UNREACHABLE where a contract signer has to be asked. */
export async function judgeSignature(
  chain: Chain,
  signer: Address,
  signed: SignedMessage,
  signature: Hex,
): Promise<Judgement> {
  const digest = digestOf(signed.domain, signed.primaryType, signed.message)
  const verdict = await recover(digest, signature)
  if (verdict.address === signer) return { isValid: true, digest, recovered: signer }
  const { surroundings, isAccepted } = await surroundingsOf(chain, signer, digest, signature)
  if (isAccepted) return { isValid: true, digest, recovered: verdict.address }
  const mistake = findSignatureMistake(signer, signature, signed, surroundings)
  return { isValid: false, digest, recovered: verdict.address, problem: verdict.problem, ...mistake }
}

/** Asks a contract signer, and in the same round trip for the domains that a message may have been signed on. */
async function surroundingsOf(chain: Chain, signer: Address, digest: Hex, signature: Hex) {
  const { contracts, trading, vaults } = chain
  const domainOf = (address: Address) => ({ address, abi: domainAbi, functionName: 'eip712Domain' }) as const
  const { results } = await read(chain, [
    { address: signer, abi: erc1271Abi, functionName: 'isValidSignature', args: [digest, signature] },
    domainOf(contracts.AgentRegistry),
    domainOf(trading?.TradeRouter ?? contracts.AgentRegistry),
  ] as const)
  const known = Object.values({ ...contracts, ...trading, ...vaults }) as (Address | undefined)[]
  const surroundings: DeploymentDomains = {
    contracts: known.filter(address => address !== undefined),
    domains: [results[1], results[2]].flatMap(domain => (domain.status === 'success' ? [toDomain(domain.result)] : [])),
  }
  return { surroundings, isAccepted: maybe(results[0]) === ERC1271_MAGIC }
}

type Verdict = { address: Address | null; problem: string }

/** Recovers the address of a canonical 65-byte signature, or says why there is none. */
export async function recover(digest: Hex, signature: Hex): Promise<Verdict> {
  const bytes = hexToBytes(signature)
  if (bytes.length !== 65) return { address: null, problem: `it has ${bytes.length} bytes; a key signs 65 (r, s, v)` }
  const v = bytes[64] ?? 0
  if (v === 0 || v === 1) return { address: null, problem: `its v is ${v}; add 27` }
  if (v !== 27 && v !== 28) return { address: null, problem: `its v is ${v}, not 27 or 28` }
  if (BigInt(`0x${signature.slice(66, 130)}`) > HALF_ORDER)
    return { address: null, problem: 'its s is in the upper half of the curve order' }
  try {
    const address = await recoverAddress({ hash: digest, signature })
    return { address, problem: `it was made by ${address} for other values, or by another key` }
  } catch {
    return { address: null, problem: 'it is not a point of the curve' }
  }
}
