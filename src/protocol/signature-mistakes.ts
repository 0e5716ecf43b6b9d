import {
  type Address,
  concat,
  encodeAbiParameters,
  encodePacked,
  getAddress,
  type Hex,
  hashMessage,
  hashTypedData,
  keccak256,
  zeroAddress,
  zeroHash,
} from 'viem'
import { recoverer } from './recover-signer.ts'
import {
  type Domain,
  digestOf,
  type ExitRule,
  hashExits,
  type Message,
  type PrimaryType,
  signingTypes,
} from './typed-data.ts'

/** A message as it should have been signed; `exits` are the rules behind its exitsHash. */
export type SignedMessage = {
  domain: Domain
  primaryType: PrimaryType
  message: Message
  exits?: readonly ExitRule[] | undefined
}

/** A mistake that was found by making it again: its name, and what is to be done, in words. */
export type Mistake = { mistake: string; problem: string }

/** Where a signer may have taken a wrong domain from: the other contracts of the deployment and their domains. */
export type Surroundings = { contracts: readonly Address[]; domains: readonly Domain[] }

type Candidate = Mistake & { digest: Hex }

const USDC_UNIT = 1_000_000n
const WEI_UNIT = 1_000_000_000_000n
/** Chains that a wallet or a script is often left on. */
const OFTEN_CHAINS = [1n, 10n, 137n, 8453n, 42161n, 421614n, 46630n, 31337n, 1337n]

/**
 * Says which common mistake turned the signer's signature into one that does not recover to the signer: each is made
 * again, its digest computed and held against the signature. Undefined when it is none of them.
 */
export function explainSignature(
  signer: Address,
  signature: Hex,
  signed: SignedMessage,
  surroundings: Surroundings,
): Mistake | undefined {
  const form = canonicalForm(signature)
  const recover = form && recoverer(form.signature)
  if (form === undefined || recover === undefined) return undefined
  const right = digestOf(signed.domain, signed.primaryType, signed.message)
  if (form.changed && recover(right) === signer) return form.changed
  for (const { digest, ...mistake } of candidates(signed, surroundings)) if (recover(digest) === signer) return mistake
  return undefined
}

type Form = { signature: Hex; changed?: Mistake }

/** A signature in the one form that the contracts take, and what had to be changed for that. */
function canonicalForm(signature: Hex): Form | undefined {
  if (signature.length === 130) return compactForm(signature)
  if (signature.length !== 132) return undefined
  const v = Number.parseInt(signature.slice(130), 16)
  if (v === 27 || v === 28) return { signature }
  if (v !== 0 && v !== 1) return undefined
  return {
    signature: `${signature.slice(0, 130)}${(v + 27).toString(16)}` as Hex,
    changed: { mistake: 'recoveryIdNotShifted', problem: `its v is ${v}: add 27 to the last byte` },
  }
}

/** The 64 bytes of EIP-2098, which carry v in the top bit of s. */
function compactForm(signature: Hex): Form {
  const s = BigInt(`0x${signature.slice(66)}`)
  const v = s >> 255n
  const low = (s & ((1n << 255n) - 1n)).toString(16).padStart(64, '0')
  return {
    signature: `${signature.slice(0, 66)}${low}${v === 0n ? '1b' : '1c'}` as Hex,
    changed: {
      mistake: 'compactSignature',
      problem: 'it has the 64 bytes of EIP-2098: send the 65 bytes r, s, v',
    },
  }
}

/** Every mistake that is worth making again, the likeliest first. */
function* candidates(signed: SignedMessage, surroundings: Surroundings): Generator<Candidate> {
  const { domain, primaryType, message } = signed
  const right = digestOf(domain, primaryType, message)
  const seen = new Set<Hex>([right])
  const all = [messageMistakes, exitsMistakes, wrapMistakes, domainMistakes]
  for (const make of all)
    for (const candidate of make(signed, surroundings)) {
      if (seen.has(candidate.digest)) continue
      seen.add(candidate.digest)
      yield candidate
    }
}

function* messageMistakes({ domain, primaryType, message }: SignedMessage): Generator<Candidate> {
  const changed = (changes: Message, mistake: string, problem: string): Candidate => ({
    mistake,
    problem,
    digest: digestOf(domain, primaryType, { ...message, ...changes }),
  })
  const { usdcAmount, nonce, deadline, maxSlippageBps, minTokenOut } = message
  if (typeof usdcAmount === 'bigint') {
    const whole = usdcAmount / USDC_UNIT
    yield changed(
      { usdcAmount: whole },
      'amountNotScaled',
      `usdcAmount was signed as ${whole}: sign base units, ${usdcAmount} (6 decimals)`,
    )
    yield changed(
      { usdcAmount: usdcAmount * WEI_UNIT },
      'amountScaledTo18',
      `usdcAmount was signed with 18 decimals: USDC has 6, sign ${usdcAmount}`,
    )
    yield changed(
      { usdcAmount: usdcAmount * USDC_UNIT },
      'amountScaledTwice',
      `usdcAmount was scaled twice: sign ${usdcAmount} and send usdcAmount as decimal USDC`,
    )
  }
  if (typeof nonce === 'bigint')
    for (const other of [nonce - 1n, nonce + 1n, 0n])
      if (other >= 0n)
        yield changed({ nonce: other }, 'otherNonce', `the nonce was signed as ${other}, and ${nonce} was expected`)
  if (typeof deadline === 'bigint') {
    yield changed(
      { deadline: deadline * 1000n },
      'deadlineInMilliseconds',
      `the deadline was signed in milliseconds: sign the ${deadline} that is sent, in seconds`,
    )
    yield changed(
      { deadline: deadline / 1000n },
      'deadlineInSeconds',
      'the deadline was signed in seconds and sent in milliseconds: send what was signed',
    )
  }
  for (const [a, b] of [
    ['agentId', 'positionId'],
    ['agentId', 'erc8004AgentId'],
    ['vault', 'token'],
    ['vault', 'signer'],
  ] as const)
    if (message[a] !== undefined && message[b] !== undefined)
      yield changed({ [a]: message[b], [b]: message[a] }, 'swapped', `${a} and ${b} were swapped in what was signed`)
  if (maxSlippageBps !== undefined)
    for (const other of [0, 50, 100])
      yield changed(
        { maxSlippageBps: other },
        'otherSlippage',
        `maxSlippageBps was signed as ${other} and sent as ${maxSlippageBps}; left out of a body it is 100`,
      )
  if (typeof minTokenOut === 'bigint')
    yield changed({ minTokenOut: 0n }, 'otherFloor', `minTokenOut was signed as 0 and sent as ${minTokenOut}`)
}

const ruleType = [{ type: 'uint8' }, { type: 'int256' }, { type: 'uint16' }] as const
const fields = ({ triggerType, triggerBps, exitBps }: ExitRule) => [triggerType, triggerBps, exitBps] as const
const ruleHash = (rule: ExitRule) => keccak256(encodeAbiParameters(ruleType, fields(rule)))
const ruleStruct = [
  { name: 'triggerType', type: 'uint8' },
  { name: 'triggerBps', type: 'int256' },
  { name: 'exitBps', type: 'uint16' },
] as const
const magnitude = (value: bigint) => (value < 0n ? -value : value)

function* exitsMistakes({ domain, primaryType, message, exits }: SignedMessage): Generator<Candidate> {
  if (exits === undefined || message.exitsHash === undefined) return
  const hashed = (exitsHash: Hex, mistake: string, problem: string): Candidate => ({
    mistake,
    problem,
    digest: digestOf(domain, primaryType, { ...message, exitsHash }),
  })
  const byTrigger = exits.toSorted((a, b) => (a.triggerBps < b.triggerBps ? -1 : 1))
  const takesFirst = exits.toSorted((a, b) => b.triggerType - a.triggerType)
  for (const order of [exits.toReversed(), byTrigger, byTrigger.toReversed(), takesFirst, takesFirst.toReversed()])
    yield hashed(hashExits(order), 'exitsOrder', 'the exits were signed in another order than they are sent')
  for (const [change, what] of [
    [
      (rule: ExitRule) => ({ ...rule, triggerType: 1 - rule.triggerType }),
      'with triggerType 0 and 1 exchanged: 0 is StopLoss',
    ],
    [
      (rule: ExitRule) => ({ ...rule, triggerType: 0 }),
      'all as StopLoss: a positive triggerBps is a TakeProfit, type 1',
    ],
    [
      (rule: ExitRule) => ({ ...rule, triggerType: 1 }),
      'all as TakeProfit: a negative triggerBps is a StopLoss, type 0',
    ],
    [
      (rule: ExitRule) => ({ ...rule, triggerBps: magnitude(rule.triggerBps) }),
      'without their sign: the triggerBps of a StopLoss is negative',
    ],
    [
      (rule: ExitRule) => ({ ...rule, triggerBps: magnitude(rule.triggerBps), triggerType: 1 }),
      'as TakeProfits without their sign: a StopLoss has type 0 and a negative triggerBps',
    ],
  ] as const)
    yield hashed(hashExits(exits.map(change)), 'exitsKind', `the exits were signed ${what}`)

  const hashes = exits.map(ruleHash)
  const rule =
    'keccak256(abi.encode(bytes32[] ruleHashes)), each keccak256(abi.encode(triggerType, triggerBps, exitBps))'
  const packedRules = exits.map(exit => keccak256(encodePacked(['uint8', 'int256', 'uint16'], [...fields(exit)])))
  const asTuples = encodeAbiParameters([{ type: 'tuple[]', components: ruleStruct }], [exits])
  const structHashes = exits.map(exit =>
    keccak256(
      encodeAbiParameters(
        [{ type: 'bytes32' }, ...ruleType],
        [keccak256(textBytes('ExitRule(uint8 triggerType,int256 triggerBps,uint16 exitBps)')), ...fields(exit)],
      ),
    ),
  )
  for (const exitsHash of [
    keccak256(concat(hashes)),
    keccak256(asTuples),
    keccak256(encodeAbiParameters([{ type: 'bytes32[]' }], [packedRules])),
    keccak256(concat(packedRules)),
    keccak256(encodeAbiParameters([{ type: 'bytes32[]' }], [structHashes])),
    keccak256(concat(structHashes)),
    ...(hashes.length === 1 && hashes[0] ? [hashes[0]] : []),
  ])
    yield hashed(exitsHash, 'exitsHashedOtherwise', `exitsHash was computed in another way: it is ${rule}`)
  yield hashed(zeroHash, 'exitsNotHashed', `exitsHash was signed as zero: it is ${rule}`)
  yield {
    mistake: 'exitsNotHashed',
    problem: `the exits themselves were signed: the message carries their hash, ${rule}`,
    digest: hashTypedData({
      domain,
      types: {
        [primaryType]: signingTypes[primaryType].map(field =>
          field.name === 'exitsHash' ? { name: 'exits', type: 'ExitRule[]' } : field,
        ),
        ExitRule: ruleStruct,
      },
      primaryType,
      message: { ...message, exits },
    } as never),
  }
}

const textBytes = (text: string) => new TextEncoder().encode(text)

function* wrapMistakes({ domain, primaryType, message }: SignedMessage): Generator<Candidate> {
  const digest = digestOf(domain, primaryType, message)
  const problem = 'it was made by personal_sign: sign the typed data itself, with eth_signTypedData_v4'
  yield { mistake: 'personalSign', problem, digest: hashMessage({ raw: digest }) }
  yield { mistake: 'personalSign', problem, digest: hashMessage(digest) }
}

function* domainMistakes(
  { domain, primaryType, message }: SignedMessage,
  { contracts, domains }: Surroundings,
): Generator<Candidate> {
  const inDomain = (other: Partial<Domain>, mistake: string, problem: string): Candidate => ({
    mistake,
    problem,
    digest: digestOf({ ...domain, ...other }, primaryType, message),
  })
  for (const chainId of OFTEN_CHAINS)
    yield inDomain(
      { chainId },
      'otherChainId',
      `it was signed for the chain id ${chainId}: the domain's chainId is ${domain.chainId}`,
    )
  const names = new Set(domains.map(({ name }) => name))
  for (const other of domains)
    yield inDomain(other, 'otherDomain', `it was signed on the domain ${other.name}: this message is on ${domain.name}`)
  for (const verifyingContract of [...contracts, zeroAddress])
    yield inDomain(
      { verifyingContract },
      'otherVerifyingContract',
      `it was signed for the contract ${getAddress(verifyingContract)}: verifyingContract is ${domain.verifyingContract}`,
    )
  for (const name of [...names, ...shortNames(domain.name)])
    yield inDomain({ name }, 'otherDomainName', `it was signed with the domain name ${name}: it is ${domain.name}`)
  for (const version of ['2', '1.0', '1.0.0', '0.1.0', ''])
    yield inDomain({ version }, 'otherDomainVersion', `it was signed with the domain version "${version}": it is "1"`)
  const { verifyingContract, chainId, ...named } = domain
  for (const partial of [
    { ...named, chainId },
    { ...named, verifyingContract },
    { name: domain.name, chainId, verifyingContract },
  ])
    yield {
      mistake: 'incompleteDomain',
      problem: 'its domain lacks a field: it has name, version, chainId and verifyingContract',
      digest: hashTypedData({ domain: partial, types: signingTypes, primaryType, message } as never),
    }
}

/** A name without its first word, or without its spaces. */
const shortNames = (name: string) => [name.replace(/^\S+\s+/, ''), name.replaceAll(' ', ''), name.toLowerCase()]
