import { type Pins, type PrimaryType, signingTypes } from '@agent-trading-service/client'
import { type Hex, hashTypedData, isHex, type TypedDataDefinition } from 'viem'
import { Failure } from '../failure.ts'

/** Typed data of one of the service's messages, as a quote carries it. */
export type Signable = {
  domain: { name: string; version: string; chainId: number; verifyingContract: Hex }
  primaryType: PrimaryType
  message: Record<string, unknown>
  definition: TypedDataDefinition
  digest: Hex
}

/** Messages about webhooks are for the service itself, whose domain names the registry. */
const REGISTRY_TYPES: readonly PrimaryType[] = [
  'SelfRegister',
  'LinkERC8004',
  'CreateWebhook',
  'ListWebhooks',
  'ManageWebhook',
]
export const ROUTER_TYPES: readonly PrimaryType[] = [
  'OpenPosition',
  'AddToPosition',
  'ReducePosition',
  'UpdateExitLadder',
]

/**
 * Reads typed data and compares it with what this service may have signed: one of its messages, for the pinned chain and
 * contract. Throws `UNKNOWN_MESSAGE`, or `CONTRACT_MISMATCH`; so nothing else gets a signature, such as a token permit.
 */
export function parseSignable(given: unknown, pins: Pins): Signable {
  const { domain, primaryType, message, types } = asRecord(given)
  if (typeof primaryType !== 'string' || !Object.hasOwn(signingTypes, primaryType))
    throw new Failure(
      'mismatch',
      `The typed data has the type ${show(primaryType)}, which is no message of this service.`,
      {
        code: 'UNKNOWN_MESSAGE',
        remedy: 'Pass a whole quote with typedData.',
      },
    )
  const type = primaryType as PrimaryType
  const fields = signingTypes[type]
  const givenFields = asRecord(types)[type]
  if (JSON.stringify(givenFields) !== JSON.stringify(fields))
    throw mismatch('TYPES_MISMATCH', `The fields of ${type} differ from those of the service's messages.`)
  const { chainId, verifyingContract } = asRecord(domain)
  const contract = REGISTRY_TYPES.includes(type)
    ? pins.agentRegistry
    : ROUTER_TYPES.includes(type)
      ? pins.tradeRouter
      : pins.ownerControls
  if (Number(chainId) !== pins.chainId)
    throw mismatch('CONTRACT_MISMATCH', `The typed data is for chain ${show(chainId)}; expected ${pins.chainId}.`)
  if (!isHex(verifyingContract) || verifyingContract.toLowerCase() !== contract?.toLowerCase())
    throw mismatch(
      'CONTRACT_MISMATCH',
      `The typed data is for the contract ${show(verifyingContract)}; expected ${contract ?? 'one that is known'}.`,
    )
  const definition = {
    domain: domain as TypedDataDefinition['domain'],
    types: { [type]: [...fields] },
    primaryType: type,
    message: asRecord(message),
  } as unknown as TypedDataDefinition
  return {
    domain: domain as Signable['domain'],
    primaryType: type,
    message: asRecord(message),
    definition,
    digest: hashTypedData(definition),
  }
}

const mismatch = (code: string, message: string) =>
  new Failure('mismatch', `${message} Nothing was signed.`, {
    code,
    remedy: 'Check --url. If the deployment has moved, delete its entry in deployments.json.',
  })

const show = (value: unknown) => (value === undefined ? 'missing' : JSON.stringify(value))

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
