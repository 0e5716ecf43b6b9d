import { formsOf } from '@agent-trading-service/protocol/signature-forms'
import { digestOf, type SignedMessage, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, numberToHex, parseAbi, size } from 'viem'
import { recoverSigner } from '../crypto/secp256k1.ts'
import { refuse } from '../errors/refuse.ts'
import { isCallFailure, isUnfunded, unreachable } from '../rpc/node-errors.ts'
import { aboutStrangers, blockRequest, callRequest, codeRequest } from '../rpc/requests.ts'
import type { Chain } from './configured-chain.ts'
import { eip712Contract } from './contracts.ts'
import { encodeCall } from './encode-and-decode-call.ts'
import { call, optional, readTree } from './read-tree.ts'
import { type DeploymentDomains, findSignatureMistake } from './signature-mistakes.ts'
import { feesOver } from './transaction-fees.ts'

/** What `isValidSignature` returns, as one word of return data. */
const ERC1271_MAGIC = '0x1626ba7e'.padEnd(66, '0')
/** The most gas of a verification. A passkey verified without a precompile needs a third of it. */
const VERIFICATION_GAS = 1_000_000
const erc1271Abi = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])

/** How the transaction is sent that will carry a message: a contract that signs sees the same account and gas price. */
export type Sending = { from: Address; priorityFeeWei: bigint }

/** What a verification may do: `maySearch` is called right before the search for a mistake. */
type Options = { maySearch?: (() => boolean) | undefined; sending?: Sending | undefined }

/**
 * Verifies a signature like the contracts: ECDSA first, without a call, then ERC-1271, with one. Returns the form of it
 * that they accept, which is the one to relay, and whether a contract accepted it. A caller that has the message's
 * digest passes it. Throws INVALID_SIGNATURE, with the signer's mistake if it is a common one and `maySearch` allows to
 * look.
 */
export async function verifySignature(
  chain: Chain,
  signer: Address,
  signed: SignedMessage & { digest?: Hex },
  signature: Hex,
  options?: Options,
): Promise<{ accepted: Hex; byContract: boolean }> {
  const check = await checkSignature(chain, signer, signed, signature, options)
  if (check.isValid) return { accepted: check.accepted, byContract: check.recovered !== signer }
  const { problem, mistake, remedy, recovered, digest } = check
  const refusal = refuse('INVALID_SIGNATURE', { problem, mistake, signer, recovered, digest })
  throw remedy === undefined ? refusal : refusal.withRemedy(remedy)
}

/**
 * Returns, for each digest, the form of a signature that a contract account accepts; undefined if it accepts none.
 * Returns undefined in place of the list if the signer has no code. Throws CHAIN_UNREACHABLE.
 */
export async function acceptedByAccount(
  { rpc }: Chain,
  signer: Address,
  digests: readonly Hex[],
  signature: Hex,
  sending?: Sending,
): Promise<(Hex | undefined)[] | undefined> {
  const [code, latest] = await rpc.batch([codeRequest(signer), blockRequest('latest')] as const)
  if (code.error || !latest.result) throw unreachable('the node did not return the code of the signer')
  if (code.result === '0x') return undefined
  const fees = sending && feesOver(BigInt(latest.result.baseFeePerGas ?? 0), sending.priorityFeeWei)
  const asSent = sending &&
    fees && {
      from: sending.from,
      maxFeePerGas: numberToHex(fees.maxFeePerGas),
      maxPriorityFeePerGas: numberToHex(fees.maxPriorityFeePerGas),
    }
  const { forms } = formsOf(signature)
  const pairs = digests.flatMap(digest => forms.map(form => ({ digest, form })))
  const verifications = pairs.map(({ digest, form }) => ({
    to: signer,
    data: encodeCall(erc1271Abi, 'isValidSignature', [digest, form]),
    gas: numberToHex(VERIFICATION_GAS),
  }))
  const responses = await rpc.batch(
    verifications.map(verification => aboutStrangers(callRequest({ ...verification, ...asSent }))),
  )
  const isAccepted = await Promise.all(
    responses.map(async (response, index) => {
      const verification = verifications[index]
      // An account without funds relays nothing: its lane says so.
      const isUnpaid = verification && response.error && isUnfunded(response.error)
      const { result, error } = isUnpaid ? await rpc.call(aboutStrangers(callRequest(verification))) : response
      if (error && !isCallFailure(error)) throw unreachable('the node did not execute the verification')
      return result?.slice(0, ERC1271_MAGIC.length) === ERC1271_MAGIC
    }),
  )
  return digests.map(digest => pairs.find((pair, index) => pair.digest === digest && isAccepted[index])?.form)
}

/** Whether a signature is valid, in which form the contracts accept it, and what is wrong with it otherwise. */
type SignatureCheck = {
  digest: Hex
  /** The address of the key that signed; null if the signature recovers to none. */
  recovered: Address | null
} & ({ isValid: true; accepted: Hex } | ({ isValid: false } & SignatureProblem))

type SignatureProblem = { problem: string; mistake?: string; remedy?: string }

/**
 * Checks the signature of a message. Throws CHAIN_UNREACHABLE if the signer may be a contract and no node responds.
 * Searching for a mistake takes more CPU than any other request, so `maySearch` is called right before.
 */
export async function checkSignature(
  chain: Chain,
  signer: Address,
  signed: SignedMessage & { digest?: Hex },
  signature: Hex,
  { maySearch = () => true, sending }: Options = {},
): Promise<SignatureCheck> {
  const digest = signed.digest ?? digestOf(signed.domain, signed.primaryType, signed.message)
  const [canonical] = formsOf(signature).forms
  const { address: recovered, problem } = recoverSigner(digest, canonical)
  if (recovered === signer) return { isValid: true, accepted: canonical, digest, recovered }
  const [ofAccount, deployment] = await Promise.all([
    acceptedByAccount(chain, signer, [digest], signature, sending),
    readDeploymentDomains(chain),
  ])
  const accepted = ofAccount?.[0]
  if (accepted !== undefined) return { isValid: true, accepted, digest, recovered }
  const mistake =
    (maySearch() ? await findSignatureMistake(signer, canonical, signed, deployment) : undefined) ??
    (ofAccount ? refusedBy(signer) : findMissingAccount(chain, signer, signature))
  return { isValid: false, digest, recovered, problem, ...mistake }
}

const refusedBy = (account: Address): SignatureProblem => ({
  mistake: 'accountRefused',
  problem: `the account ${account} has code, and its isValidSignature (ERC-1271) refused the signature for these values`,
  remedy:
    'Sign as that account requires, with its own wallet (the owners of a Safe sign its SafeMessage of the digest), and send the same values.',
})

const DEPLOY_FIRST =
  'Deploy the account, for example by sending any transaction from it, and send the identical body again; its signature stays valid.'

/** Explains a signature that only an account with code can have, from a signer without code. */
function findMissingAccount({ id }: Chain, signer: Address, signature: Hex): SignatureProblem | undefined {
  const { forms, isWrapped } = formsOf(signature)
  const bytes = size(forms[0])
  if (!isWrapped && (bytes === 64 || bytes === 65)) return undefined
  if (isWrapped || bytes > 65)
    return {
      mistake: 'accountNotDeployed',
      problem: `it is the signature of a smart account, and ${signer} is not deployed on chain ${id}`,
      remedy: DEPLOY_FIRST,
    }
  if (bytes > 0) return undefined
  return { mistake: 'emptySignature', problem: `it is empty, and ${signer} has no code that could accept that` }
}

/** Reads the domains on which a message may be signed by mistake. */
async function readDeploymentDomains(chain: Chain): Promise<DeploymentDomains> {
  const { contracts, trading, vaults } = chain
  const { values } = await readTree(chain, {
    domains: [
      optional(call(eip712Contract(contracts.AgentRegistry), 'eip712Domain', [])),
      optional(call(eip712Contract(trading?.TradeRouter ?? contracts.AgentRegistry), 'eip712Domain', [])),
    ],
  })
  const addresses: (Address | undefined)[] = Object.values({ ...contracts, ...trading, ...vaults })
  return {
    contracts: addresses.filter(address => address !== undefined),
    domains: values.domains.flatMap(domain => (domain ? [toDomain(domain)] : [])),
  }
}
