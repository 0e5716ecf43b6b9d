import { type LadderRule, toContractRules } from '@agent-trading-service/protocol/exit-rule'
import {
  hashExits as hashLadder,
  isOrderMessage,
  type PrimaryType,
  signingTypes,
} from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, hashTypedData } from 'viem'

/** The contracts that verify signatures. */
export type SigningContract = 'tradeRouter' | 'agentRegistry' | 'ownerControls' | 'orderBook'

/**
 * Returns the contract whose domain a message is signed for. Messages about webhooks are for the service's own domain.
 */
export function contractOf(primaryType: PrimaryType): SigningContract {
  if (primaryType === 'SelfRegister' || primaryType === 'LinkERC8004') return 'agentRegistry'
  if (isOrderMessage(primaryType)) return 'orderBook'
  const isIntent = ['OpenPosition', 'AddToPosition', 'ReducePosition', 'UpdateExitLadder'].includes(primaryType)
  return isIntent ? 'tradeRouter' : 'ownerControls'
}

/** Returns the contract that counts the nonces of a message. Orders take the nonces of the agent's trades. */
export function nonceContractOf(primaryType: PrimaryType): SigningContract {
  return isOrderMessage(primaryType) ? 'tradeRouter' : contractOf(primaryType)
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

/**
 * A rule of an exit ladder: at `triggerBps` from the entry price (negative: stop-loss), sell `exitBps` of what remains.
 */
export type ExitRule = LadderRule

/** Returns the ladder as a body has it. */
export const exitRulesOf = (exits: readonly ExitRule[]) =>
  exits.map(({ triggerBps, exitBps }) => ({
    triggerType: triggerBps < 0 ? ('StopLoss' as const) : ('TakeProfit' as const),
    triggerBps,
    exitBps,
  }))

/**
 * Returns the `exitsHash` of a ladder: keccak256(abi.encode(bytes32[])), one hash of type, trigger and share per rule.
 * @example
 * hashExits([{ triggerBps: -800, exitBps: 10_000 }]) // '0x…'
 */
export const hashExits = (exits: readonly ExitRule[]): Hex => hashLadder(toContractRules(exits))
