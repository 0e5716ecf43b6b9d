import { domainSeparator, type Hex, keccak256, stringToBytes, stringToHex } from 'viem'

/** The primary types of the protocol, fields in signing order (protocol.md, "Typed data"). */
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
} as const

export type PrimaryType = keyof typeof signingTypes

/** An exit rule as the contracts take it: triggerType 0 StopLoss (negative trigger), 1 TakeProfit (positive). */
export type ExitRule = { triggerType: number; triggerBps: bigint; exitBps: number }

/** A signing domain as read from the contract by ERC-5267 `eip712Domain()`. */
export type Domain = { name: string; version: string; chainId: bigint; verifyingContract: `0x${string}` }

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

export const toDomain = ([, name, version, chainId, verifyingContract]: readonly [
  Hex,
  string,
  string,
  bigint,
  `0x${string}`,
  ...unknown[],
]): Domain => ({ name, version, chainId, verifyingContract })

// Every intent is hashed at least twice: the words are put together here, without the ABI coder and without hashing the
// types again, which is what makes viem's hashTypedData ten times as dear.
const word = (value: bigint | number | boolean) => BigInt.asUintN(256, BigInt(value)).toString(16).padStart(64, '0')

/** keccak256(abi.encode(bytes32[] ruleHashes)), each keccak256(abi.encode(triggerType, triggerBps, exitBps)), in order. */
export function hashExits(exits: readonly ExitRule[]): Hex {
  const ruleHashes = exits.map(({ triggerType, triggerBps, exitBps }) =>
    keccak256(`0x${word(triggerType)}${word(triggerBps)}${word(exitBps)}`).slice(2),
  )
  return keccak256(`0x${word(32)}${word(exits.length)}${ruleHashes.join('')}`)
}

export type Message = Record<string, bigint | number | boolean | string>

/** The EIP-712 digest of a message: what is signed, and the key under which an intent is known. */
export function digestOf(domain: Domain, primaryType: PrimaryType, message: Message): Hex {
  const words = signingTypes[primaryType].map(({ name, type }) => encoded(type, message[name] as Message[string]))
  const struct = keccak256(`${typeHashOf(primaryType)}${words.join('')}`)
  return keccak256(`0x1901${separatorOf(domain).slice(2)}${struct.slice(2)}`)
}

function encoded(type: string, value: Message[string]): string {
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
