import { type Address, domainSeparator, type Hex, keccak256, stringToBytes, stringToHex } from 'viem'
import type { ExitRule } from './exit-rule.ts'

const ownerFields = [
  { name: 'nonce', type: 'uint256' },
  { name: 'deadline', type: 'uint256' },
] as const

const webhookFields = [
  { name: 'salt', type: 'bytes32' },
  { name: 'deadline', type: 'uint256' },
] as const

/**
 * The EIP-712 primary types, fields in signing order: those of the protocol (protocol.md, "Typed data"), and the messages
 * of owners (contracts/src/interfaces/IOwnerControls.sol), and those about webhooks, which the service itself verifies.
 */
export const signingTypes = {
  SelfRegister: [
    { name: 'vault', type: 'address' },
    { name: 'name', type: 'string' },
    { name: 'metadataURI', type: 'string' },
    { name: 'signer', type: 'address' },
    { name: 'linkERC8004', type: 'bool' },
    { name: 'erc8004AgentId', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
  LinkERC8004: [
    { name: 'agentId', type: 'uint256' },
    { name: 'erc8004AgentId', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
  OpenPosition: [
    { name: 'agentId', type: 'uint256' },
    { name: 'vault', type: 'address' },
    { name: 'token', type: 'address' },
    { name: 'usdcAmount', type: 'uint256' },
    { name: 'minTokenOut', type: 'uint256' },
    { name: 'maxSlippageBps', type: 'uint16' },
    { name: 'exitsHash', type: 'bytes32' },
    { name: 'deadline', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
  ],
  AddToPosition: [
    { name: 'agentId', type: 'uint256' },
    { name: 'positionId', type: 'uint256' },
    { name: 'usdcAmount', type: 'uint256' },
    { name: 'minTokenOut', type: 'uint256' },
    { name: 'maxSlippageBps', type: 'uint16' },
    { name: 'deadline', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
  ],
  ReducePosition: [
    { name: 'agentId', type: 'uint256' },
    { name: 'positionId', type: 'uint256' },
    { name: 'exitBps', type: 'uint16' },
    { name: 'deadline', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
  ],
  UpdateExitLadder: [
    { name: 'agentId', type: 'uint256' },
    { name: 'positionId', type: 'uint256' },
    { name: 'exitsHash', type: 'bytes32' },
    { name: 'deadline', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
  ],
  OwnAgent: [
    { name: 'signer', type: 'address' },
    { name: 'vault', type: 'address' },
    { name: 'name', type: 'string' },
    { name: 'metadataURI', type: 'string' },
    { name: 'linkERC8004', type: 'bool' },
    { name: 'erc8004AgentId', type: 'uint256' },
    ...ownerFields,
  ],
  OfferOwnership: [{ name: 'agentId', type: 'uint256' }, { name: 'newOwner', type: 'address' }, ...ownerFields],
  AcceptOwnership: [{ name: 'agentId', type: 'uint256' }, { name: 'signer', type: 'address' }, ...ownerFields],
  SetSigner: [{ name: 'agentId', type: 'uint256' }, { name: 'signer', type: 'address' }, ...ownerFields],
  SetMandate: [
    { name: 'agentId', type: 'uint256' },
    { name: 'mode', type: 'uint8' },
    { name: 'maxTradeUsdc', type: 'uint256' },
    { name: 'maxDailyTurnoverUsdc', type: 'uint256' },
    { name: 'maxExposureUsdc', type: 'uint256' },
    { name: 'allowedTokens', type: 'address[]' },
    { name: 'validUntil', type: 'uint256' },
    ...ownerFields,
  ],
  StopBuying: [{ name: 'agentIds', type: 'uint256[]' }, ...ownerFields],
  CloseAll: [{ name: 'agentIds', type: 'uint256[]' }, ...ownerFields],
  CancelIntents: [{ name: 'agentId', type: 'uint256' }, { name: 'untilNonce', type: 'uint256' }, ...ownerFields],
  CreateWebhook: [
    { name: 'agentId', type: 'uint256' },
    { name: 'url', type: 'string' },
    { name: 'eventTypes', type: 'string[]' },
    ...webhookFields,
  ],
  ListWebhooks: [
    { name: 'agentId', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
  ManageWebhook: [
    { name: 'agentId', type: 'uint256' },
    { name: 'webhookId', type: 'bytes32' },
    { name: 'action', type: 'string' },
    ...webhookFields,
  ],
} as const

export type PrimaryType = keyof typeof signingTypes

/** The messages of owners. */
export const ownerPrimaryTypes = [
  'OwnAgent',
  'OfferOwnership',
  'AcceptOwnership',
  'SetSigner',
  'SetMandate',
  'StopBuying',
  'CloseAll',
  'CancelIntents',
] as const satisfies readonly PrimaryType[]
export type OwnerPrimaryType = (typeof ownerPrimaryTypes)[number]

export const isOwnerMessage = (primaryType: PrimaryType): primaryType is OwnerPrimaryType =>
  (ownerPrimaryTypes as readonly PrimaryType[]).includes(primaryType)

/** The messages about webhooks. They never reach the chain. */
export const webhookPrimaryTypes = [
  'CreateWebhook',
  'ListWebhooks',
  'ManageWebhook',
] as const satisfies readonly PrimaryType[]
export type WebhookPrimaryType = (typeof webhookPrimaryTypes)[number]

export const isWebhookMessage = (primaryType: PrimaryType): primaryType is WebhookPrimaryType =>
  (webhookPrimaryTypes as readonly PrimaryType[]).includes(primaryType)

/** An EIP-712 domain. */
export type Domain = { name: string; version: string; chainId: bigint; verifyingContract: Address }

/** The function by which a contract returns its domain (ERC-5267). */
export const domainAbi = [
  {
    type: 'function',
    name: 'eip712Domain',
    stateMutability: 'view',
    inputs: [],
    outputs: [
      { name: 'fields', type: 'bytes1' },
      { name: 'name', type: 'string' },
      { name: 'version', type: 'string' },
      { name: 'chainId', type: 'uint256' },
      { name: 'verifyingContract', type: 'address' },
      { name: 'salt', type: 'bytes32' },
      { name: 'extensions', type: 'uint256[]' },
    ],
  },
] as const

/** Returns the domain from the result of `eip712Domain()`. */
export const toDomain = ([, name, version, chainId, verifyingContract]: readonly [
  Hex,
  string,
  string,
  bigint,
  Address,
  ...unknown[],
]): Domain => ({ name, version, chainId, verifyingContract })

// Every intent is hashed at least twice. Concatenating the words here, without the ABI encoder and with cached type
// hashes, is ten times as fast as viem's hashTypedData.
const word = (value: bigint | number | boolean) => BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, '0')

/**
 * Returns the exitsHash of a ladder: keccak256(abi.encode(bytes32[] ruleHashes)), one hash per rule in order, each
 * keccak256(abi.encode(triggerType, triggerBps, exitBps)).
 */
export function hashExits(exits: readonly ExitRule[]): Hex {
  const ruleHashes = exits.map(({ triggerType, triggerBps, exitBps }) =>
    keccak256(`0x${word(triggerType)}${word(triggerBps)}${word(exitBps)}`).slice(2),
  )
  return keccak256(`0x${word(32)}${word(exits.length)}${ruleHashes.join('')}`)
}

type MessageValue = bigint | number | boolean | string
export type Message = Record<string, MessageValue | readonly MessageValue[]>

/** A message as the signer must sign it. `exits` are the rules behind its exitsHash. */
export type SignedMessage = {
  domain: Domain
  primaryType: PrimaryType
  message: Message
  exits?: readonly ExitRule[] | undefined
}

/** Returns the EIP-712 digest of a message. The signer signs it, and it identifies the intent. */
export function digestOf(domain: Domain, primaryType: PrimaryType, message: Message): Hex {
  const words = signingTypes[primaryType].map(({ name, type }) => encodeWord(type, message[name] as Message[string]))
  const struct = keccak256(`${typeHashOf(primaryType)}${words.join('')}`)
  return keccak256(`0x1901${separatorOf(domain).slice(2)}${struct.slice(2)}`)
}

function encodeWord(type: string, value: Message[string]): string {
  if (type.endsWith('[]')) {
    const words = (value as readonly MessageValue[]).map(item => encodeWord(type.slice(0, -2), item))
    return keccak256(`0x${words.join('')}`).slice(2)
  }
  if (type === 'string') return keccak256(stringToHex(value as string)).slice(2)
  if (type === 'address' || type === 'bytes32') return (value as string).slice(2).toLowerCase().padStart(64, '0')
  return word(value as bigint | number | boolean)
}

const typeHashes = new Map<PrimaryType, Hex>()
function typeHashOf(primaryType: PrimaryType): Hex {
  const known = typeHashes.get(primaryType)
  if (known) return known
  const fields = signingTypes[primaryType].map(({ name, type }) => `${type} ${name}`)
  const hash = keccak256(stringToBytes(`${primaryType}(${fields.join(',')})`))
  typeHashes.set(primaryType, hash)
  return hash
}

const separators = new WeakMap<Domain, Hex>()
function separatorOf(domain: Domain): Hex {
  const separator = separators.get(domain) ?? domainSeparator({ domain })
  separators.set(domain, separator)
  return separator
}
