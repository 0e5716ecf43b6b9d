import {
  type Domain,
  digestOf,
  type Message,
  type PrimaryType,
  signingTypes,
} from '@agent-trading-service/protocol/typed-data'
import { z } from 'zod'
import { addressOut, bps, deadlineOut, digits, usdc } from './primitives.ts'

export const primaryTypes = Object.keys(signingTypes) as [PrimaryType, ...PrimaryType[]]

const fieldList = z.array(z.object({ name: z.string(), type: z.string() }))

export const eip712DomainFields = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
]

/** Marks an object that clients pass on as it is, so that lists of tools do not spell it out. */
const passedOn = { 'x-passed-on': true }

export const eip712Info = z
  .object({
    domainName: z.string(),
    domainVersion: z.string(),
    chainId: z.int(),
    verifyingContract: addressOut,
    primaryType: z.enum(primaryTypes),
    types: z.record(z.string(), fieldList).describe('The EIP-712 type of the primary type, fields in signing order'),
  })
  .meta({ id: 'Eip712Info', ...passedOn })

export const presentEip712 = <P extends PrimaryType>(domain: Domain, primaryType: P) => ({
  domainName: domain.name,
  domainVersion: domain.version,
  chainId: Number(domain.chainId),
  verifyingContract: domain.verifyingContract,
  primaryType,
  types: { [primaryType]: [...signingTypes[primaryType]] },
})

/** Schemas of presented values by Solidity type. */
const valueSchemas: Record<string, z.ZodType<PresentedValue>> = {
  address: addressOut,
  bool: z.boolean(),
  bytes32: z.string().regex(/^0x[0-9a-f]{64}$/),
  string: z.string(),
  uint8: z.int(),
  uint16: z.int(),
  uint256: digits('An integer'),
  'string[]': z.array(z.string()),
  'address[]': z.array(addressOut),
  'uint256[]': z.array(digits('An integer')),
}

function valueSchema({ name, type }: { name: string; type: string }): z.ZodType<PresentedValue> {
  if (name === 'deadline') return deadlineOut('Valid until')
  if (/usdc/i.test(name)) return usdc('Amount')
  return name.endsWith('Bps') ? bps('Share') : (valueSchemas[type] ?? z.never())
}

const typedDataSchema = <P extends PrimaryType>(primaryType: P) =>
  z
    .object({
      types: z
        .object({ EIP712Domain: fieldList, [primaryType]: fieldList })
        .meta({ example: { EIP712Domain: eip712DomainFields, [primaryType]: signingTypes[primaryType] } }),
      domain: z.object({ name: z.string(), version: z.string(), chainId: z.int(), verifyingContract: addressOut }),
      primaryType: z.literal(primaryType),
      message: z.object(Object.fromEntries(signingTypes[primaryType].map(field => [field.name, valueSchema(field)]))),
    })
    .meta({
      id: `${primaryType}TypedData`,
      description: 'EIP-712 typed data, ready for eth_signTypedData_v4',
      ...passedOn,
    })

type TypedDataSchema = ReturnType<typeof typedDataSchema<PrimaryType>>

/** The schema of typed data by primary type. */
export const typedDataSchemas = Object.fromEntries(primaryTypes.map(type => [type, typedDataSchema(type)])) as {
  [P in PrimaryType]: ReturnType<typeof typedDataSchema<P>>
}

/** What a payment signs: EIP-3009. */
export const paymentAuthorization = z.object({
  from: addressOut,
  to: addressOut,
  value: digits('Amount in base units of the asset'),
  validAfter: digits('Unix seconds'),
  validBefore: digits('Unix seconds'),
  nonce: z.string().describe('32 bytes in hex'),
})

/** Typed data of a payment. */
export const paymentTypedData = z
  .object({
    types: z.object({ EIP712Domain: fieldList, TransferWithAuthorization: fieldList }),
    domain: z.object({ name: z.string(), version: z.string(), chainId: z.int(), verifyingContract: addressOut }),
    primaryType: z.literal('TransferWithAuthorization'),
    message: paymentAuthorization,
  })
  .meta({ id: 'PaymentTypedData', description: 'EIP-712 typed data, ready for eth_signTypedData_v4', ...passedOn })

/** Typed data of any primary type. */
export const typedData = z
  .discriminatedUnion('primaryType', Object.values(typedDataSchemas) as [TypedDataSchema, ...TypedDataSchema[]])
  .meta({ id: 'TypedData' })

type UnsignedBody<S> = {
  [K in Exclude<keyof S, 'signature' | 'ownerSignature'>]: S[K] extends z.ZodDefault<infer Inner> ? Inner : S[K]
}

/**
 * Returns the fields that a quote adds once the caller has named every value of the message: what to sign, its digest,
 * and what to post, which is the body of the submission with every default and without signatures.
 */
export function signableFields<T extends z.ZodType, S extends z.core.$ZodLooseShape>(
  typedData: T,
  { id, submission }: { id: string; submission: z.ZodObject<S> },
) {
  const { signature: _, ownerSignature: __, ...fields } = submission.shape
  const withDefaults = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, field instanceof z.ZodDefault ? field.unwrap() : field]),
  )
  return {
    typedData: typedData.optional(),
    digest: z.string().optional().describe('EIP-712 digest of typedData'),
    body: z
      .object(withDefaults as UnsignedBody<S>)
      .meta({
        id,
        description: 'The body to post, once the signature of typedData is added as `signature`',
        ...passedOn,
      })
      .optional(),
  }
}

/** Returns typed data for `eth_signTypedData_v4` and its digest. Integers of more than 16 bits are digit strings. */
export function presentTypedData<P extends PrimaryType>(domain: Domain, primaryType: P, message: Message) {
  return {
    typedData: {
      types: { EIP712Domain: [...eip712DomainFields], [primaryType]: [...signingTypes[primaryType]] },
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

type PresentedValue = string | number | boolean | string[]

const presentValue = (value: Message[string]): PresentedValue => {
  if (typeof value === 'object') return value.map(String)
  return typeof value === 'bigint' ? `${value}` : value
}
