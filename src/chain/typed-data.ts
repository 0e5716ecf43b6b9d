import { encodeAbiParameters, type Hex, hashTypedData, keccak256, type TypedDataDomain } from 'viem'

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

/** keccak256(abi.encode(bytes32[] ruleHashes)), each keccak256(abi.encode(triggerType, triggerBps, exitBps)), in order. */
export function hashExits(exits: readonly ExitRule[]): Hex {
  const ruleHashes = exits.map(({ triggerType, triggerBps, exitBps }) =>
    keccak256(
      encodeAbiParameters(
        [{ type: 'uint8' }, { type: 'int256' }, { type: 'uint16' }],
        [triggerType, triggerBps, exitBps],
      ),
    ),
  )
  return keccak256(encodeAbiParameters([{ type: 'bytes32[]' }], [ruleHashes]))
}

export type Message = Record<string, bigint | number | boolean | string>

/** The EIP-712 digest of a message: what is signed, and the key under which an intent is known. */
export const digestOf = (domain: Domain, primaryType: PrimaryType, message: Message): Hex =>
  hashTypedData({ domain: domain as TypedDataDomain, types: signingTypes, primaryType, message } as never)
