import { z } from 'zod'
import { type Domain, digestOf, type Message, type PrimaryType, signingTypes } from '../protocol/typed-data.ts'
import { addressOut } from './primitives.ts'

export const primaryTypes = Object.keys(signingTypes) as [PrimaryType, ...PrimaryType[]]

const structFields = z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() })))

export const eip712Info = z
  .object({
    domainName: z.string(),
    domainVersion: z.string(),
    chainId: z.int(),
    verifyingContract: addressOut,
    primaryType: z.enum(primaryTypes),
    types: structFields.meta({ description: 'The EIP-712 type of the primary type, fields in signing order' }),
  })
  .meta({ id: 'Eip712Info' })

export const presentEip712 = <P extends PrimaryType>(domain: Domain, primaryType: P) => ({
  domainName: domain.name,
  domainVersion: domain.version,
  chainId: Number(domain.chainId),
  verifyingContract: domain.verifyingContract,
  primaryType,
  types: { [primaryType]: [...signingTypes[primaryType]] },
})

const eip712DomainFields = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
]

export const typedData = z
  .object({
    types: structFields,
    domain: z.object({ name: z.string(), version: z.string(), chainId: z.int(), verifyingContract: addressOut }),
    primaryType: z.string(),
    message: z.record(z.string(), z.union([z.string(), z.int(), z.boolean(), z.array(z.string())])),
  })
  .meta({ id: 'TypedData', description: 'EIP-712 typed data, ready for eth_signTypedData_v4' })

/**
 * The fields that a quote adds once the caller has named every value of the message: what to sign, its digest, and what
 * to post.
 */
export const signableFields = {
  typedData: typedData.optional(),
  digest: z.string().optional().meta({ description: 'EIP-712 digest of typedData' }),
  body: z.record(z.string(), z.unknown()).optional().meta({
    description: 'The body to post, once the signature of typedData is added as `signature`',
  }),
}

/** Returns typed data for `eth_signTypedData_v4` and its digest. Integers of more than 16 bits are digit strings. */
export function presentTypedData(domain: Domain, primaryType: PrimaryType, message: Message) {
  return {
    typedData: {
      types: { EIP712Domain: eip712DomainFields, [primaryType]: [...signingTypes[primaryType]] },
      domain: {
        name: domain.name,
        version: domain.version,
        chainId: Number(domain.chainId),
        verifyingContract: domain.verifyingContract,
      },
      primaryType,
      message: Object.fromEntries(Object.entries(message).map(([name, value]) => [name, presentValue(value)])),
    },
    digest: digestOf(domain, primaryType, message),
  }
}

const presentValue = (value: Message[string]) => {
  if (typeof value === 'object') return value.map(String)
  return typeof value === 'bigint' ? `${value}` : value
}
