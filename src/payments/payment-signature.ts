import { publicChains } from '@agent-trading-service/protocol/public-chains'
import { formsOf } from '@agent-trading-service/protocol/signature-forms'
import { authorizationTypes } from '@x402/evm'
import { type Address, type Hex, hashMessage, hashTypedData } from 'viem'
import { recoverAddress } from '../crypto/secp256k1.ts'
import { eip712DomainFields } from '../resources/typed-data.ts'

/** What a payment is signed for: the asset, its network, and its signing domain in `extra`. */
export type SigningTerms = { network: string; asset: string; extra: { name: string; version: string } }

/** The message of an EIP-3009 transfer; integers are digit strings. */
export type Authorization = {
  from: Address
  to: Address
  value: string
  validAfter: string
  validBefore: string
  nonce: Hex
}

/** Returns the typed data of a payment for `eth_signTypedData_v4`, and its digest. */
export const presentPayment = (required: SigningTerms, message: Authorization) => ({
  typedData: {
    types: {
      EIP712Domain: eip712DomainFields,
      TransferWithAuthorization: [...authorizationTypes.TransferWithAuthorization],
    },
    domain: domainOf(required),
    primaryType: 'TransferWithAuthorization' as const,
    message,
  },
  digest: digestOf(domainOf(required), message),
})

/** What the `exact` scheme of x402 carries. */
export type SignedAuthorization = { signature: Hex; authorization: Authorization }

type PaymentMistake = { mistake: string; problem: string; remedy?: string }

type Domain = { name: string; version: string; chainId: number; verifyingContract: Address }

const domainOf = ({ extra: { name, version }, network, asset }: SigningTerms): Domain => ({
  name,
  version,
  chainId: Number(network.split(':')[1]),
  verifyingContract: asset as Address,
})

function digestOf(
  domain: Domain,
  authorization: Authorization,
  primaryType: 'TransferWithAuthorization' | 'ReceiveWithAuthorization' = 'TransferWithAuthorization',
): Hex {
  const { value, validAfter, validBefore, ...rest } = authorization
  return hashTypedData({
    domain,
    types: { [primaryType]: authorizationTypes.TransferWithAuthorization },
    primaryType,
    message: { ...rest, value: BigInt(value), validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) },
  })
}

/**
 * Returns a payment's signature as the asset accepts it from a key. A signature that no key of the payer made is
 * returned unchanged, with its ERC-6492 wrapper: a facilitator may deploy the payer's account.
 */
export function acceptedForm(signature: Hex, authorization: Authorization, required: SigningTerms): Hex {
  const [canonical] = formsOf(signature).forms
  const recovered = recoverAddress(digestOf(domainOf(required), authorization), canonical)
  return recovered === authorization.from ? canonical : signature
}

const DEPLOY_FIRST =
  'Nothing was charged. Deploy the account that pays, or pay from another one, and send the identical body again.'

/** Finds the common mistake behind a payment's signature that a facilitator refused for `reason`. */
export function findPaymentMistake(
  reason: string,
  { signature, authorization }: SignedAuthorization,
  required: SigningTerms,
): PaymentMistake | undefined {
  if (!/signature|6492|undeployed|counterfactual/i.test(reason)) return undefined
  const { forms, isWrapped } = formsOf(signature)
  if (isWrapped && !/invalid\w*signature/i.test(reason))
    return {
      mistake: 'accountNotDeployed',
      problem: `the payer ${authorization.from} is a smart account that is not deployed on ${required.network}`,
      remedy: DEPLOY_FIRST,
    }
  for (const { digest, ...mistake } of mistakenDigests(domainOf(required), authorization))
    if (recoverAddress(digest, forms[0]) === authorization.from) return mistake
  return undefined
}

const CHAIN_IDS = [1, 10, 137, 8453, 84532, 31337, ...publicChains.map(({ chain }) => chain.id)]
const NAMES = ['USD Coin', 'USDC', 'USD Coin (Arb1)', 'Bridged USDC', '']
const VERSIONS = ['1', '2', '']

/** Yields the digests of common mistakes. The authorization itself is known, so only its domain can differ. */
function* mistakenDigests(domain: Domain, authorization: Authorization): Generator<PaymentMistake & { digest: Hex }> {
  const digest = digestOf(domain, authorization)
  const inDomain = (fields: Partial<Domain>, mistake: string, problem: string) => ({
    mistake,
    problem,
    digest: digestOf({ ...domain, ...fields }, authorization),
  })
  for (const chainId of CHAIN_IDS)
    yield inDomain({ chainId }, 'otherChainId', `it was signed for the chain id ${chainId}; it is ${domain.chainId}`)
  for (const name of NAMES)
    for (const version of [domain.version, ...VERSIONS])
      yield inDomain(
        { name, version },
        name === domain.name ? 'otherDomainVersion' : 'otherDomainName',
        `it was signed in the domain "${name}", version "${version}"; extra says "${domain.name}", version "${domain.version}"`,
      )
  for (const version of VERSIONS)
    yield inDomain(
      { version },
      'otherDomainVersion',
      `it was signed with the domain version "${version}"; extra says "${domain.version}"`,
    )
  yield inDomain(
    { verifyingContract: authorization.to },
    'otherVerifyingContract',
    `it was signed for the contract ${authorization.to}; verifyingContract is the asset ${domain.verifyingContract}`,
  )
  yield {
    mistake: 'otherPrimaryType',
    problem: 'it was signed as ReceiveWithAuthorization; sign TransferWithAuthorization',
    digest: digestOf(domain, authorization, 'ReceiveWithAuthorization'),
  }
  yield {
    mistake: 'personalSign',
    problem: 'it was made with personal_sign; sign the typed data itself, with eth_signTypedData_v4',
    digest: hashMessage({ raw: digest }),
  }
}
