import { decodeEvent } from '@agent-trading-service/protocol/decode-event'
import {
  digestOf,
  hashExits,
  type Message,
  type PrimaryType,
  signingTypes,
} from '@agent-trading-service/protocol/typed-data'
import fc from 'fast-check'
import {
  type Abi,
  type AbiEvent,
  type AbiParameter,
  decodeEventLog,
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionData,
  encodeFunctionResult,
  type Hex,
  hashTypedData,
  keccak256,
  multicall3Abi,
  parseAbi,
} from 'viem'
import { describe, expect, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { erc8004ReputationRegistryAbi } from '../../contracts-abi/erc8004-reputation-registry.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import {
  decodeBatch,
  decodeResult,
  encodeBatch,
  encodeCall,
  tryDecodeResult,
} from '../../src/chain/encode-and-decode-call.ts'

// Our encoders replace viem's for speed; their output must be identical.

const hexOf = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map(bytes => `0x${Buffer.from(bytes).toString('hex')}` as Hex)
const address = hexOf(20)
const uint = fc.bigInt(0n, 2n ** 256n - 1n)
const values: Record<string, fc.Arbitrary<unknown>> = {
  uint256: uint,
  uint8: fc.nat(255),
  uint16: fc.nat(65_535),
  address,
  'uint256[]': fc.array(uint, { maxLength: 5 }),
  'address[]': fc.array(address, { maxLength: 5 }),
  'string[]': fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 5 }),
  bytes32: hexOf(32),
  bool: fc.boolean(),
  string: fc.string({ unit: 'grapheme' }),
}
/** Returns values of an ABI type. */
function valuesOf(parameter: AbiParameter): fc.Arbitrary<unknown> {
  const { type } = parameter
  if (type.endsWith('[]')) return fc.array(valuesOf({ ...parameter, type: type.slice(0, -2) }), { maxLength: 3 })
  const bits = Number(/^u?int(\d+)$/.exec(type)?.[1])
  if (bits <= 48) return fc.nat(2 ** Math.min(bits - 1, 31) - 1)
  if (type.startsWith('uint')) return fc.bigInt(0n, 2n ** BigInt(bits) - 1n)
  if (type.startsWith('int')) return fc.bigInt(-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n)
  if (/^bytes\d+$/.test(type)) return hexOf(Number(type.slice('bytes'.length)))
  if (type === 'bytes') return hexOf(40)
  if (type === 'tuple' && 'components' in parameter) {
    const { components } = parameter as { components: readonly AbiParameter[] }
    return fc.record(Object.fromEntries(components.map(component => [component.name, valuesOf(component)])))
  }
  const known = values[type]
  if (known === undefined) throw new Error(`No values of the type ${type}`)
  return known
}

const domain = fc.record({ name: fc.string(), version: fc.string(), chainId: uint, verifyingContract: address })

describe('typed data', () => {
  const primaryTypes = Object.keys(signingTypes) as PrimaryType[]
  it.each(primaryTypes)('typed data of %s has the digest that a wallet signs', primaryType => {
    const fields = signingTypes[primaryType].map(({ name, type }) => [name, values[type] as fc.Arbitrary<unknown>])
    fc.assert(
      fc.property(domain, fc.record(Object.fromEntries(fields)), (domain, message) => {
        const signed = { domain, types: signingTypes, primaryType, message } as never
        expect(digestOf(domain, primaryType, message as Message)).toBe(hashTypedData(signed))
      }),
      { numRuns: 50 },
    )
  })

  it('typed data has the exits hash that the contracts compute', () => {
    const rule = fc.record({
      triggerType: fc.nat(1),
      triggerBps: fc.bigInt(-(2n ** 255n), 2n ** 255n - 1n),
      exitBps: fc.nat(65_535),
    })
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 5 }), rules => {
        const types = [{ type: 'uint8' }, { type: 'int256' }, { type: 'uint16' }] as const
        const hashes = rules.map(({ triggerType, triggerBps, exitBps }) =>
          keccak256(encodeAbiParameters(types, [triggerType, triggerBps, exitBps])),
        )
        expect(hashExits(rules)).toBe(keccak256(encodeAbiParameters([{ type: 'bytes32[]' }], [hashes])))
      }),
      { numRuns: 50 },
    )
  })
})

describe('an event', () => {
  const abis = {
    agentRegistryAbi,
    erc8004ReputationRegistryAbi,
    ownerControlsAbi,
    positionManagerAbi,
    priceOracleAbi,
    tradeRouterAbi,
  }
  const events = Object.values(abis).flatMap(abi =>
    abi.flatMap(item => (item.type === 'event' ? [{ abi: abi as Abi, event: item as AbiEvent }] : [])),
  )

  it.each(events.map(({ abi, event }) => [event.name, abi, event] as const))(
    'an event %s is decoded like viem decodes it',
    (_, abi, event) => {
      const indexed = event.inputs.filter(({ indexed }) => indexed)
      const inData = event.inputs.filter(({ indexed }) => !indexed)
      const argsOf = (inputs: readonly AbiParameter[]) => fc.tuple(...inputs.map(valuesOf))
      fc.assert(
        fc.property(argsOf(indexed), argsOf(inData), (topicArgs, dataArgs) => {
          const args = Object.fromEntries(indexed.map(({ name = '' }, index) => [name, topicArgs[index]]))
          const topics = encodeEventTopics({ abi: [event], args } as never) as [Hex]
          const log = { topics, data: encodeAbiParameters(inData, dataArgs) }
          expect(decodeEvent(abi, log)).toEqual(decodeEventLog({ abi, ...log }))
          if (indexed.length > 0) expect(() => decodeEvent(abi, { ...log, topics: topics.slice(0, -1) })).toThrow()
          if (inData.length > 0) expect(() => decodeEvent(abi, { ...log, data: '0x' })).toThrow()
        }),
        { numRuns: 10 },
      )
    },
  )

  it('an event that the ABI lacks is refused', () => {
    expect(() => decodeEvent(tradeRouterAbi, { topics: [`0x${'00'.repeat(32)}`], data: '0x' })).toThrow('no event')
    expect(() => decodeEvent(tradeRouterAbi, { topics: [], data: '0x' })).toThrow('no event')
  })
})

const callAbi = parseAbi([
  'function set(uint256 id, string name, address[] to) returns (uint256, string)',
  'function count() view returns (uint256)',
])

describe('a batch of calls', () => {
  const call = fc.record({
    address,
    args: fc.tuple(uint, fc.string(), fc.array(address, { maxLength: 3 })),
  })

  it('a batch of calls is encoded like the arguments of aggregate3', () => {
    fc.assert(
      fc.property(fc.array(call, { maxLength: 6 }), calls => {
        const batch = calls.map(({ address, args }) => ({ address, data: encodeCall(callAbi, 'set', args) }))
        const expected = calls.map(({ address, args }) => ({
          target: address,
          allowFailure: true,
          callData: encodeFunctionData({ abi: callAbi, functionName: 'set', args }),
        }))
        expect(encodeBatch(batch)).toBe(
          encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [expected] }),
        )
      }),
      { numRuns: 50 },
    )
  })

  it('a batch of calls has its results in order, whatever they contain', () => {
    const result = fc.record({
      success: fc.boolean(),
      returnData: fc.uint8Array({ maxLength: 100 }).map(bytes => `0x${Buffer.from(bytes).toString('hex')}` as Hex),
    })
    fc.assert(
      fc.property(fc.array(result, { maxLength: 6 }), results => {
        const data = encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: results })
        expect(decodeBatch(data)).toEqual(results.map(({ success, returnData }) => ({ success, data: returnData })))
      }),
      { numRuns: 50 },
    )
  })

  it.each(['0x', '0x01', `0x${'00'.repeat(31)}20`, `0x${'ff'.repeat(64)}`] as const)(
    'a batch of calls does not accept %s as results',
    data => {
      expect(() => decodeBatch(data)).toThrow()
    },
  )
})

describe('a call', () => {
  it('a call without arguments is its selector', () => {
    expect(encodeCall(callAbi, 'count', [])).toBe(encodeFunctionData({ abi: callAbi, functionName: 'count' }))
  })

  it('a call returns one value, or a tuple of several', () => {
    const one = encodeAbiParameters([{ type: 'uint256' }], [7n])
    expect(decodeResult(callAbi, 'count', { success: true, data: one })).toBe(7n)
    const two = encodeAbiParameters([{ type: 'uint256' }, { type: 'string' }], [7n, 'seven'])
    expect(decodeResult(callAbi, 'set', { success: true, data: two })).toEqual([7n, 'seven'])
  })

  it.each([
    ['returns nothing', true, '0x'],
    ['returns malformed data', true, '0x1234'],
    ['reverts', false, '0x08c379a0'],
  ] as const)('a call that %s fails with the returned data', (_, success, data) => {
    expect(() => decodeResult(callAbi, 'count', { success, data })).toThrow(expect.objectContaining({ data }))
    expect(tryDecodeResult(callAbi, 'count', { success, data })).toBeUndefined()
  })
})
