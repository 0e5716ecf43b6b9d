import { type PrimaryType, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { getAddress } from 'viem'
import type { QuoteMismatch } from './errors.ts'
import { type Domain, type Message, type TypedData, typedDataOf } from './typed-data.ts'

/**
 * Rebuilds typed data that somebody else wrote, for the domain that is known to be right, in the only spelling that the
 * service uses: so that one message has one digest and one nonce. Returns what differs from that: other fields,
 * integers that are not decimal, hex that is not complete.
 */
export function rebuildTypedData(
  given: { domain?: unknown; message?: unknown },
  domain: Domain,
  primaryType: PrimaryType,
): { typedData: TypedData } | { mismatches: QuoteMismatch[] } {
  const mismatches: QuoteMismatch[] = []
  const givenDomain = asRecord(given.domain)
  for (const [name, expected] of Object.entries(domain))
    if (!isSame(expected, givenDomain[name]))
      mismatches.push({ field: `domain.${name}`, expected, given: givenDomain[name] })
  mismatches.push(...extraFields('domain', givenDomain, Object.keys(domain)))

  const givenMessage = asRecord(given.message)
  const message: Message = {}
  for (const { name, type } of signingTypes[primaryType]) {
    const value = rebuildValue(type, givenMessage[name])
    if (value === undefined)
      mismatches.push({ field: `message.${name}`, expected: spellings[type], given: givenMessage[name] })
    else message[name] = value
  }
  const names = signingTypes[primaryType].map(({ name }) => name)
  mismatches.push(...extraFields('message', givenMessage, names))
  return mismatches.length > 0 ? { mismatches } : { typedData: typedDataOf(domain, primaryType, message) }
}

type FieldType = (typeof signingTypes)[PrimaryType][number]['type']

/** How typed data of the service spells the values of each type. */
const spellings: Record<FieldType, string> = {
  uint8: 'a number',
  uint16: 'a number',
  uint256: 'decimal digits without leading zeros',
  address: '0x and 40 hex digits',
  bytes32: '0x and 64 hex digits',
  bool: 'true or false',
  string: 'a string',
  'uint256[]': 'a list of decimal digits without leading zeros',
  'address[]': 'a list of 0x and 40 hex digits',
  'string[]': 'a list of strings',
}

/** Returns a value as the service spells it; undefined for every other spelling. */
function rebuildValue(type: FieldType, given: unknown): Message[string] | undefined {
  switch (type) {
    case 'uint8':
      return isIntegerBelow(2 ** 8, given) ? given : undefined
    case 'uint16':
      return isIntegerBelow(2 ** 16, given) ? given : undefined
    case 'bool':
      return typeof given === 'boolean' ? given : undefined
    case 'uint256[]':
      return rebuildList(given, digitsOf)
    case 'address[]':
      return rebuildList(given, addressOf)
    case 'string[]':
      return rebuildList(given, textOf)
    case 'uint256':
      return digitsOf(given)
    case 'address':
      return addressOf(given)
    case 'bytes32':
      return typeof given === 'string' && /^0x[0-9a-fA-F]{64}$/.test(given) ? given.toLowerCase() : undefined
    case 'string':
      return textOf(given)
  }
}

const isIntegerBelow = (limit: number, given: unknown): given is number =>
  typeof given === 'number' && Number.isInteger(given) && given >= 0 && given < limit

const textOf = (given: unknown) => (typeof given === 'string' ? given : undefined)

const addressOf = (given: unknown) =>
  typeof given === 'string' && /^0x[0-9a-fA-F]{40}$/.test(given) ? getAddress(given.toLowerCase()) : undefined

/** Returns decimal digits of a number below 2^256. */
function digitsOf(given: unknown): string | undefined {
  if (typeof given !== 'string' || !/^(0|[1-9]\d{0,77})$/.test(given)) return undefined
  return BigInt(given) < 1n << 256n ? given : undefined
}

function rebuildList(given: unknown, rebuild: (value: unknown) => string | undefined): string[] | undefined {
  if (!Array.isArray(given)) return undefined
  const values = given.map(rebuild)
  return values.every(value => value !== undefined) ? values : undefined
}

const isSame = (expected: string | number, given: unknown): boolean =>
  typeof expected === 'string' && expected.startsWith('0x') && typeof given === 'string'
    ? expected.toLowerCase() === given.toLowerCase()
    : expected === given

const extraFields = (of: string, given: Record<string, unknown>, known: readonly string[]): QuoteMismatch[] =>
  Object.keys(given)
    .filter(name => !known.includes(name))
    .map(name => ({ field: `${of}.${name}`, expected: undefined, given: given[name] }))

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
