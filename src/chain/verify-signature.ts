import { formsOf } from '@agent-trading-service/protocol/signature-forms'
import { digestOf, type SignedMessage, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, parseAbi, size } from 'viem'
import { recoverSigner } from '../crypto/secp256k1.ts'
import { refuse } from '../errors/refuse.ts'
import { codeRequest } from '../rpc/requests.ts'
import type { Chain } from './configured-chain.ts'
import { eip712Contract } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'
import { type DeploymentDomains, findSignatureMistake } from './signature-mistakes.ts'

const ERC1271_MAGIC = '0x1626ba7e'
const erc1271Abi = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])

/**
 * Verifies a signature like the contracts: ECDSA first, without a call, then ERC-1271, with one. Returns the form of it that
 * they accept, which is what must be relayed. A caller that has computed the message's digest passes it. Throws
 * INVALID_SIGNATURE, with the signer's mistake if it is a common one and `maySearch` allows to look.
 */
export async function verifySignature(
  chain: Chain,
  signer: Address,
  signed: SignedMessage & { digest?: Hex },
  signature: Hex,
  maySearch?: () => boolean,
): Promise<Hex> {
  const check = await checkSignature(chain, signer, signed, signature, maySearch)
  if (check.isValid) return check.accepted
  const { problem, mistake, remedy, recovered, digest } = check
  const refusal = refuse('INVALID_SIGNATURE', { problem, mistake, signer, recovered, digest })
  throw remedy === undefined ? refusal : refusal.withRemedy(remedy)
}

/**
 * Returns, for each digest, the form of a signature that a contract account accepts; undefined if it accepts none or the
 * signer has no code.
 */
export async function acceptedByAccount(
  chain: Chain,
  signer: Address,
  digests: readonly Hex[],
  signature: Hex,
): Promise<(Hex | undefined)[]> {
  const { forms } = formsOf(signature)
  const { values } = await readTree(
    chain,
    digests.map(digest => forms.map(form => isValidSignatureCall(signer, digest, form))),
  )
  return values.map(magics => forms[magics.indexOf(ERC1271_MAGIC)])
}

const isValidSignatureCall = (signer: Address, digest: Hex, signature: Hex) =>
  optional(call({ address: signer, abi: erc1271Abi }, 'isValidSignature', [digest, signature]))

/** Whether a signature is valid, in which form the contracts accept it, and what is wrong with it otherwise. */
export type SignatureCheck = {
  digest: Hex
  /** The address of the key that signed; null if the signature recovers to none. */
  recovered: Address | null
} & ({ isValid: true; accepted: Hex } | ({ isValid: false } & SignatureProblem))

type SignatureProblem = { problem: string; mistake?: string; remedy?: string }

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
  const [canonical] = formsOf(signature).forms
  const { address: recovered, problem } = recoverSigner(digest, canonical)
  if (recovered === signer) return { isValid: true, accepted: canonical, digest, recovered }
  const { accepted, deployment } = await readAccountCheck(chain, signer, digest, signature)
  if (accepted !== undefined) return { isValid: true, accepted, digest, recovered }
  const mistake =
    (maySearch() ? await findSignatureMistake(signer, canonical, signed, deployment) : undefined) ??
    (await findAccountMistake(chain, signer, signature))
  return { isValid: false, digest, recovered, problem, ...mistake }
}

const DEPLOY_FIRST =
  'Deploy the account, for example by sending any transaction from it, and send the identical body again; its signature stays valid.'

/** Explains a signature that only an account with code can have. Throws CHAIN_UNREACHABLE. */
async function findAccountMistake(
  { rpc, id }: Chain,
  signer: Address,
  signature: Hex,
): Promise<SignatureProblem | undefined> {
  const { forms, isWrapped } = formsOf(signature)
  const bytes = size(forms[0])
  if (!isWrapped && (bytes === 64 || bytes === 65)) return undefined
  const code = await rpc.read(codeRequest(signer))
  if (code !== '0x') return { problem: `the code of ${signer} does not accept it for these values` }
  if (isWrapped || bytes > 65)
    return {
      mistake: 'accountNotDeployed',
      problem: `it is the signature of a smart account, and ${signer} is not deployed on chain ${id}`,
      remedy: DEPLOY_FIRST,
    }
  if (bytes > 0) return undefined
  return { mistake: 'emptySignature', problem: `it is empty, and ${signer} has no code that could accept that` }
}

/** Queries a contract account, and in the same round trip the domains on which a message may be signed by mistake. */
async function readAccountCheck(chain: Chain, signer: Address, digest: Hex, signature: Hex) {
  const { forms } = formsOf(signature)
  const { contracts, trading, vaults } = chain
  const { values } = await readTree(chain, {
    magics: forms.map(form => isValidSignatureCall(signer, digest, form)),
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
  return { accepted: forms[values.magics.indexOf(ERC1271_MAGIC)], deployment }
}
