import { exitsHashMistakes, type MistakenDigest } from '@agent-trading-service/protocol/exits-hash-mistakes'
import { publicChains } from '@agent-trading-service/protocol/public-chains'
import {
  type Domain,
  digestOf,
  type Message,
  type PrimaryType,
  type SignedMessage,
  signingTypes,
} from '@agent-trading-service/protocol/typed-data'
import { type Address, getAddress, type Hex, hashMessage, hashTypedData, zeroAddress } from 'viem'
import { recoverAddress } from '../crypto/secp256k1.ts'

type SignatureMistake = Omit<MistakenDigest, 'digest'>

/** Where a signer may have taken a wrong domain from: the other contracts of the deployment and their domains. */
export type DeploymentDomains = { contracts: readonly Address[]; domains: readonly Domain[] }

/** The limits of a mandate, in USDC. */
const LIMIT_FIELDS = ['maxTradeUsdc', 'maxDailyTurnoverUsdc', 'maxExposureUsdc'] as const
/** Primary types with the same fields. */
const TWINS: Partial<Record<PrimaryType, PrimaryType>> = {
  StopBuying: 'CloseAll',
  CloseAll: 'StopBuying',
  SetSigner: 'AcceptOwnership',
  AcceptOwnership: 'SetSigner',
}
const USDC_UNIT = 1_000_000n
const WEI_PER_USDC_UNIT = 1_000_000_000_000n
/** Chains that wallets and scripts are often set to. */
const COMMON_CHAIN_IDS = [1, 10, 137, 8453, 31337, 1337, ...publicChains.map(({ chain }) => chain.id)].map(BigInt)
const COMMON_WRONG_VERSIONS = ['2', '1.0', '1.0.0', '0.1.0', '']

/** A comparison takes about 0.2 ms of CPU, and a search has some sixty: other requests run in between. */
const COMPARED_AT_ONCE = 4

/**
 * Finds the common mistake behind a signature that does not recover to the signer: makes each mistake, and compares who
 * signed its digest. The signature is in its canonical form. Returns undefined if it is none of them.
 */
export async function findSignatureMistake(
  signer: Address,
  signature: Hex,
  signed: SignedMessage,
  deployment: DeploymentDomains,
): Promise<SignatureMistake | undefined> {
  const recover = (digest: Hex) => recoverAddress(digest, signature)
  let compared = 0
  for (const { digest, ...mistake } of mistakenDigests(signed, deployment)) {
    if (recover(digest) === signer) return mistake
    if (++compared % COMPARED_AT_ONCE === 0) await letOthersRun()
  }
  return undefined
}

const letOthersRun = () => new Promise<void>(resolve => setTimeout(resolve, 0))

/** Yields the digest of every common mistake once, the likeliest first. */
function* mistakenDigests(signed: SignedMessage, deployment: DeploymentDomains): Generator<MistakenDigest> {
  const seen = new Set<Hex>([digestOf(signed.domain, signed.primaryType, signed.message)])
  for (const mistakes of [
    messageMistakes,
    primaryTypeMistakes,
    exitsHashMistakes,
    personalSignMistakes,
    domainMistakes,
  ])
    for (const mistake of mistakes(signed, deployment)) {
      if (seen.has(mistake.digest)) continue
      seen.add(mistake.digest)
      yield mistake
    }
}

function* messageMistakes({ domain, primaryType, message }: SignedMessage): Generator<MistakenDigest> {
  const withFields = (fields: Message, mistake: string, problem: string): MistakenDigest => ({
    mistake,
    problem,
    digest: digestOf(domain, primaryType, { ...message, ...fields }),
  })
  const { usdcAmount, nonce, deadline, maxSlippageBps, minTokenOut } = message
  if (typeof usdcAmount === 'bigint') {
    const whole = usdcAmount / USDC_UNIT
    yield withFields(
      { usdcAmount: whole },
      'amountNotScaled',
      `usdcAmount was signed as ${whole}; sign base units, ${usdcAmount} (6 decimals)`,
    )
    yield withFields(
      { usdcAmount: usdcAmount * WEI_PER_USDC_UNIT },
      'amountScaledTo18',
      `usdcAmount was signed with 18 decimals; USDC has 6, sign ${usdcAmount}`,
    )
    yield withFields(
      { usdcAmount: usdcAmount * USDC_UNIT },
      'amountScaledTwice',
      `usdcAmount was scaled twice; sign ${usdcAmount} and send usdcAmount as decimal USDC`,
    )
  }
  const limits = LIMIT_FIELDS.filter(field => typeof message[field] === 'bigint' && message[field] !== 0n)
  if (limits.length > 0)
    yield withFields(
      Object.fromEntries(limits.map(field => [field, (message[field] as bigint) / USDC_UNIT])),
      'amountNotScaled',
      'the limits were signed in whole USDC; sign base units (6 decimals)',
    )
  if (typeof nonce === 'bigint')
    for (const signedNonce of [nonce - 1n, nonce + 1n, 0n].filter(value => value >= 0n))
      yield withFields(
        { nonce: signedNonce },
        'otherNonce',
        `the nonce was signed as ${signedNonce}; the expected nonce is ${nonce}`,
      )
  if (typeof deadline === 'bigint') {
    yield withFields(
      { deadline: deadline * 1000n },
      'deadlineInMilliseconds',
      `the deadline was signed in milliseconds; sign the ${deadline} seconds that you send`,
    )
    yield withFields(
      { deadline: deadline / 1000n },
      'deadlineInSeconds',
      'the deadline was signed in seconds and sent in milliseconds; send the signed one',
    )
  }
  for (const [a, b] of [
    ['agentId', 'positionId'],
    ['agentId', 'erc8004AgentId'],
    ['vault', 'token'],
    ['vault', 'signer'],
    ['agentId', 'untilNonce'],
  ] as const)
    if (message[a] !== undefined && message[b] !== undefined)
      yield withFields({ [a]: message[b], [b]: message[a] }, 'swapped', `${a} and ${b} were swapped when signing`)
  if (maxSlippageBps !== undefined)
    for (const signedBps of [0, 50, 100])
      yield withFields(
        { maxSlippageBps: signedBps },
        'otherSlippage',
        `maxSlippageBps was signed as ${signedBps} and sent as ${maxSlippageBps}; the default of the body is 100`,
      )
  if (typeof minTokenOut === 'bigint')
    yield withFields({ minTokenOut: 0n }, 'otherFloor', `minTokenOut was signed as 0 and sent as ${minTokenOut}`)
}

function* primaryTypeMistakes({ domain, primaryType, message }: SignedMessage): Generator<MistakenDigest> {
  const twin = TWINS[primaryType]
  if (twin !== undefined)
    yield {
      mistake: 'otherPrimaryType',
      problem: `it was signed as ${twin}; this message is a ${primaryType}`,
      digest: digestOf(domain, twin, message),
    }
}

function* personalSignMistakes({ domain, primaryType, message }: SignedMessage): Generator<MistakenDigest> {
  const digest = digestOf(domain, primaryType, message)
  const problem = 'it was made with personal_sign; sign the typed data itself, with eth_signTypedData_v4'
  yield { mistake: 'personalSign', problem, digest: hashMessage({ raw: digest }) }
  yield { mistake: 'personalSign', problem, digest: hashMessage(digest) }
}

function* domainMistakes(
  { domain, primaryType, message }: SignedMessage,
  { contracts, domains }: DeploymentDomains,
): Generator<MistakenDigest> {
  const inDomain = (fields: Partial<Domain>, mistake: string, problem: string): MistakenDigest => ({
    mistake,
    problem,
    digest: digestOf({ ...domain, ...fields }, primaryType, message),
  })
  for (const chainId of COMMON_CHAIN_IDS)
    yield inDomain(
      { chainId },
      'otherChainId',
      `it was signed for the chain id ${chainId}; the domain's chainId is ${domain.chainId}`,
    )
  for (const other of domains)
    yield inDomain(
      other,
      'otherDomain',
      `it was signed in the domain ${other.name}; this message belongs to ${domain.name}`,
    )
  for (const verifyingContract of [...contracts, zeroAddress])
    yield inDomain(
      { verifyingContract },
      'otherVerifyingContract',
      `it was signed for the contract ${getAddress(verifyingContract)}; verifyingContract is ${domain.verifyingContract}`,
    )
  const names = new Set(domains.map(({ name }) => name))
  for (const name of [...names, ...similarNames(domain.name)])
    yield inDomain({ name }, 'otherDomainName', `it was signed with the domain name ${name}; it is ${domain.name}`)
  for (const version of COMMON_WRONG_VERSIONS)
    yield inDomain({ version }, 'otherDomainVersion', `it was signed with the domain version "${version}"; it is "1"`)
  const { name, version, chainId, verifyingContract } = domain
  for (const incomplete of [
    { name, version, chainId },
    { name, version, verifyingContract },
    { name, chainId, verifyingContract },
  ])
    yield {
      mistake: 'incompleteDomain',
      problem: 'its domain lacks a field; the domain has name, version, chainId and verifyingContract',
      digest: hashTypedData({
        domain: incomplete,
        types: { [primaryType]: signingTypes[primaryType] },
        primaryType,
        message,
      }),
    }
}

/** A name without its first word, without spaces, in lower case. */
const similarNames = (name: string) => [name.replace(/^\S+\s+/, ''), name.replaceAll(' ', ''), name.toLowerCase()]
