import {
  DOMAIN_VERSION,
  type Domain,
  domainNames,
  type Pins,
  type PrimaryType,
  rebuildTypedData,
  serviceDomainName,
  signingTypes,
  type TypedData,
} from '@agent-trading-service/client'
import { type Hex, hashTypedData, isHex, type TypedDataDefinition } from 'viem'
import { Failure } from '../failure.ts'

/** Typed data of one of the service's messages, in the service's own spelling. */
export type Signable = {
  domain: Domain
  primaryType: PrimaryType
  message: TypedData['message']
  definition: TypedDataDefinition
  digest: Hex
}

const REGISTRY_TYPES: readonly PrimaryType[] = ['SelfRegister', 'LinkERC8004']
/** Messages about webhooks are for the service itself, whose domain names the registry and the service's host. */
const SERVICE_TYPES: readonly PrimaryType[] = ['CreateWebhook', 'ListWebhooks', 'ManageWebhook']
export const ROUTER_TYPES: readonly PrimaryType[] = [
  'OpenPosition',
  'AddToPosition',
  'ReducePosition',
  'UpdateExitLadder',
]

const ORDER_TYPES: readonly PrimaryType[] = ['PlaceOrder', 'CancelOrder']
/** The messages of an agent's signer, which share its nonces. */
export const AGENT_TYPES: readonly PrimaryType[] = [...ROUTER_TYPES, ...ORDER_TYPES]

/** Returns the name and the contract of the domain of a message. The contract is undefined if it is not pinned. */
function domainOf(type: PrimaryType, pins: Pins, url: string): { name: string; contract: Hex | undefined } {
  if (SERVICE_TYPES.includes(type))
    return { name: serviceDomainName(new URL(url).hostname), contract: pins.agentRegistry }
  if (REGISTRY_TYPES.includes(type)) return { name: domainNames.agentRegistry, contract: pins.agentRegistry }
  if (ROUTER_TYPES.includes(type)) return { name: domainNames.tradeRouter, contract: pins.tradeRouter }
  if (ORDER_TYPES.includes(type)) return { name: domainNames.orderBook, contract: pins.orderBook }
  return { name: domainNames.ownerControls, contract: pins.ownerControls }
}

/**
 * Reads typed data and builds it again from what the service at a URL may have signed: one of its messages, for the
 * pinned chain and contract, in one spelling. Throws `UNKNOWN_MESSAGE`, `TYPES_MISMATCH`, `CONTRACT_MISMATCH` or
 * `MESSAGE_MISMATCH`; so nothing else gets a signature, such as a token permit.
 */
export function parseSignable(given: unknown, pins: Pins, url: string): Signable {
  const { domain: givenDomain, primaryType, message, types } = asRecord(given)
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
  if (JSON.stringify(asRecord(types)[type]) !== JSON.stringify(signingTypes[type]))
    throw mismatch('TYPES_MISMATCH', `The fields of ${type} differ from those of the service's messages.`)
  const { chainId, verifyingContract } = asRecord(givenDomain)
  const { name, contract } = domainOf(type, pins, url)
  if (pins.chainId === undefined || chainId !== pins.chainId)
    throw mismatch('CONTRACT_MISMATCH', `The typed data is for chain ${show(chainId)}; expected ${pins.chainId}.`)
  if (contract === undefined || !isHex(verifyingContract) || verifyingContract.toLowerCase() !== contract.toLowerCase())
    throw mismatch(
      'CONTRACT_MISMATCH',
      `The typed data is for the contract ${show(verifyingContract)}; expected ${contract ?? 'one that is known'}.`,
    )
  const expected = { name, version: DOMAIN_VERSION, chainId: pins.chainId, verifyingContract: contract }
  const rebuilt = rebuildTypedData({ domain: givenDomain, message }, expected, type)
  if ('mismatches' in rebuilt) {
    const [first] = rebuilt.mismatches
    throw mismatch(
      'MESSAGE_MISMATCH',
      `${first?.field} of the typed data is ${show(first?.given)}; expected ${first?.expected ?? 'no such field'}.`,
    )
  }
  const { typedData } = rebuilt
  const definition = {
    domain: typedData.domain,
    types: { [type]: [...signingTypes[type]] },
    primaryType: type,
    message: typedData.message,
  } as unknown as TypedDataDefinition
  return {
    domain: typedData.domain,
    primaryType: type,
    message: typedData.message,
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
