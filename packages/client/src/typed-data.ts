import { type Address, type Hex, hashTypedData, keccak256 } from 'viem'

const ownerFields = [
  { name: 'nonce', type: 'uint256' },
  { name: 'deadline', type: 'uint256' },
] as const

const webhookFields = [
  { name: 'salt', type: 'bytes32' },
  { name: 'deadline', type: 'uint256' },
] as const

/** The EIP-712 types of every message, fields in signing order. The client signs no other type. */
export const signingTypes = {
  SelfRegister: [
    { name: 'vault', type: 'address' },
    { name: 'name', type: 'string' },
    { name: 'metadataURI', type: 'string' },
    { name: 'signer', type: 'address' },
    { name: 'linkERC8004', type: 'bool' },
    { name: 'erc8004AgentId', type: 'uint256' },
    ...ownerFields,
  ],
  LinkERC8004: [{ name: 'agentId', type: 'uint256' }, { name: 'erc8004AgentId', type: 'uint256' }, ...ownerFields],
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

/** The contracts that verify signatures. */
export type SigningContract = 'tradeRouter' | 'agentRegistry' | 'ownerControls'

/** Returns the contract whose domain a message is signed for. Messages about webhooks are for the service's own domain. */
export function contractOf(primaryType: PrimaryType): SigningContract {
  if (primaryType === 'SelfRegister' || primaryType === 'LinkERC8004') return 'agentRegistry'
  const isIntent = ['OpenPosition', 'AddToPosition', 'ReducePosition', 'UpdateExitLadder'].includes(primaryType)
  return isIntent ? 'tradeRouter' : 'ownerControls'
}

export type MessageValue = string | number | boolean | readonly string[]
export type Message = Record<string, MessageValue>

/** An EIP-712 domain. */
export type Domain = { name: string; version: string; chainId: number; verifyingContract: Address }

/** EIP-712 typed data as JSON, ready for `eth_signTypedData_v4` and for viem. Integers above 16 bits are digits. */
export type TypedData = {
  domain: Domain
  types: Record<string, { name: string; type: string }[]>
  primaryType: PrimaryType
  message: Message
}

const EIP712_DOMAIN = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
]

/** Returns typed data of one of the types above. */
export function typedDataOf(domain: Domain, primaryType: PrimaryType, message: Message): TypedData {
  return {
    domain,
    types: { EIP712Domain: EIP712_DOMAIN, [primaryType]: [...signingTypes[primaryType]] },
    primaryType,
    message,
  }
}

/** Returns the EIP-712 digest, by which the service identifies a signed message. */
export const digestOf = (typedData: TypedData): Hex => hashTypedData(typedData)

/** A rule of an exit ladder: at `triggerBps` from the entry price (negative: stop-loss), sell `exitBps` of what remains. */
export type ExitRule = { triggerBps: number; exitBps: number }

/** Returns the ladder as a body has it. */
export const exitRulesOf = (exits: readonly ExitRule[]) =>
  exits.map(({ triggerBps, exitBps }) => ({
    triggerType: triggerBps < 0 ? ('StopLoss' as const) : ('TakeProfit' as const),
    triggerBps,
    exitBps,
  }))

const word = (value: bigint | number) => BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, '0')

/** Returns the `exitsHash` of a ladder: keccak256(abi.encode(bytes32[])), one hash of type, trigger and share per rule. */
export function hashExits(exits: readonly ExitRule[]): Hex {
  const hashes = exits.map(({ triggerBps, exitBps }) =>
    keccak256(`0x${word(triggerBps < 0 ? 0 : 1)}${word(triggerBps)}${word(exitBps)}`).slice(2),
  )
  return keccak256(`0x${word(32)}${word(exits.length)}${hashes.join('')}`)
}
