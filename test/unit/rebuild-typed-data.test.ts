import { expect, test } from 'vitest'
import { type PrimaryType, rebuildTypedData, signingTypes } from '../../packages/client/src/index.ts'

const domain = {
  name: 'Service TradeRouter',
  version: '1',
  chainId: 421614,
  verifyingContract: '0x1fA02b2d6A771842690194Cf62D91bdd92BfE28d',
} as const
const values = {
  uint8: 1,
  uint16: 100,
  uint256: '7',
  address: '0x1fA02b2d6A771842690194Cf62D91bdd92BfE28d',
  bytes32: `0x${'ab'.repeat(32)}`,
  bool: false,
  string: 'text',
  'uint256[]': ['1', '2'],
  'address[]': ['0x1fA02b2d6A771842690194Cf62D91bdd92BfE28d'],
  'string[]': ['trade'],
}
const messageOf = (type: PrimaryType): Record<string, unknown> =>
  Object.fromEntries(signingTypes[type].map(({ name, type }) => [name, values[type]]))
const fieldsOf = (given: Parameters<typeof rebuildTypedData>[0], type: PrimaryType = 'OpenPosition') => {
  const rebuilt = rebuildTypedData(given, domain, type)
  return 'mismatches' in rebuilt ? rebuilt.mismatches.map(({ field }) => field) : []
}

test.each(Object.keys(signingTypes) as PrimaryType[])('%s as the service spells it is rebuilt as it is', type => {
  const message = messageOf(type)
  const rebuilt = rebuildTypedData({ domain, message }, domain, type)
  expect(rebuilt).toMatchObject({ typedData: { domain, primaryType: type, message } })
})

test.each([
  ['agentId', ['07', '0x7', ' 7', '7 ', '+7', '7.0', '7n', '', 7, null, undefined, `${1n << 256n}`, ['7']]],
  ['maxSlippageBps', ['100', 65_536, -1, 1.5, Number.NaN]],
  ['token', ['0x1f', '1fA02b2d6A771842690194Cf62D91bdd92BfE28d', 7]],
  ['exitsHash', ['0xab', `0x${'zz'.repeat(32)}`, 0]],
])('any other spelling of %s is refused', (field, spellings) => {
  for (const spelling of spellings)
    expect(fieldsOf({ domain, message: { ...messageOf('OpenPosition'), [field]: spelling } })).toEqual([
      `message.${field}`,
    ])
})

test('an address is rebuilt with its checksum, whatever its case, and a hash in lower case', () => {
  const message = messageOf('OpenPosition')
  const upper = { ...message, token: `0x${values.address.slice(2).toUpperCase()}`, exitsHash: `0x${'AB'.repeat(32)}` }
  expect(rebuildTypedData({ domain, message: upper }, domain, 'OpenPosition')).toMatchObject({ typedData: { message } })
})

test('fields of the domain and of the message that the service does not sign are refused', () => {
  const message = messageOf('OpenPosition')
  expect(fieldsOf({ domain: { ...domain, salt: '0x00' }, message })).toEqual(['domain.salt'])
  expect(fieldsOf({ domain: { ...domain, chainId: '421614' }, message })).toEqual(['domain.chainId'])
  expect(fieldsOf({ domain: { name: domain.name }, message })).toEqual([
    'domain.version',
    'domain.chainId',
    'domain.verifyingContract',
  ])
  expect(fieldsOf({ domain, message: { ...message, constructor: 1 } })).toEqual(['message.constructor'])
  expect(fieldsOf({ domain: null, message: 'text' })).toHaveLength(4 + signingTypes.OpenPosition.length)
})

test('a list is rebuilt only if each of its values is spelled as the service does', () => {
  const message = messageOf('StopBuying')
  expect(fieldsOf({ domain, message: { ...message, agentIds: ['1', '02'] } }, 'StopBuying')).toEqual([
    'message.agentIds',
  ])
  expect(fieldsOf({ domain, message: { ...message, agentIds: '1' } }, 'StopBuying')).toEqual(['message.agentIds'])
})
