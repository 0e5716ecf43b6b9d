import fc from 'fast-check'
import {
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
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { decodeBatch, encodeBatch, encodeCall, outcomeOf } from '../../src/chain/multicall.ts'
import { decodeEvent } from '../../src/protocol/decode-event.ts'
import { digestOf, hashExits, type Message, type PrimaryType, signingTypes } from '../../src/protocol/typed-data.ts'

// What is encoded without viem's coders must be what they make of it, to the bit.

const hexOf = (length: number) =>
  fc.uint8Array({ minLength: length, maxLength: length }).map(bytes => `0x${Buffer.from(bytes).toString('hex')}` as Hex)
const address = hexOf(20)
const uint = fc.bigInt(0n, 2n ** 256n - 1n)
const values: Record<string, fc.Arbitrary<unknown>> = {
  uint256: uint,
  uint16: fc.nat(65_535),
  address,
  bytes32: hexOf(32),
  bool: fc.boolean(),
  string: fc.string({ unit: 'grapheme' }),
}
const domain = fc.record({ name: fc.string(), version: fc.string(), chainId: uint, verifyingContract: address })

describe('typed data', () => {
  const primaryTypes = Object.keys(signingTypes) as PrimaryType[]
  it.each(primaryTypes)('of %s has the digest that a wallet signs', primaryType => {
    const fields = signingTypes[primaryType].map(({ name, type }) => [name, values[type] as fc.Arbitrary<unknown>])
    fc.assert(
      fc.property(domain, fc.record(Object.fromEntries(fields)), (domain, message) => {
        const signed = { domain, types: signingTypes, primaryType, message } as never
        expect(digestOf(domain, primaryType, message as Message)).toBe(hashTypedData(signed))
      }),
      { numRuns: 50 },
    )
  })

  it('hashes a ladder as the contracts do', () => {
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

it('reads an event as its ABI says', () => {
  const topics = encodeEventTopics({
    abi: tradeRouterAbi,
    eventName: 'PositionOpenedFromIntent',
    args: { positionId: 7n, agentId: 2n, vault: `0x${'aa'.repeat(20)}` },
  }) as [Hex]
  const types = [{ type: 'address' }, { type: 'uint256' }] as const
  const log = { topics, data: encodeAbiParameters(types, [`0x${'bb'.repeat(20)}`, 5n]) }
  expect(decodeEvent(tradeRouterAbi, log)).toEqual(decodeEventLog({ abi: tradeRouterAbi, ...log }))
  expect(() => decodeEvent(tradeRouterAbi, { topics: [`0x${'00'.repeat(32)}`], data: '0x' })).toThrow('no event')
})

describe('a batch of calls', () => {
  const abi = parseAbi([
    'function set(uint256 id, string name, address[] to) returns (uint256, string)',
    'function count() view returns (uint256)',
  ])
  const call = fc.record({ address, args: fc.tuple(uint, fc.string(), fc.array(address, { maxLength: 3 })) })

  it('is that of aggregate3', () => {
    fc.assert(
      fc.property(fc.array(call, { maxLength: 6 }), calls => {
        const batch = [...calls.map(one => ({ ...one, abi, functionName: 'set' })), { ...counter, abi }]
        const target = (address: Hex, callData: Hex) => ({ target: address, allowFailure: true, callData })
        const wanted = [
          ...calls.map(({ address, args }) =>
            target(address, encodeFunctionData({ abi, functionName: 'set', args } as never)),
          ),
          target(counter.address, encodeFunctionData({ abi, functionName: 'count' })),
        ]
        expect(encodeBatch(batch)).toBe(
          encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [wanted] }),
        )
      }),
      { numRuns: 50 },
    )
  })
  const counter = { address: `0x${'c0'.repeat(20)}`, functionName: 'count' } as const

  it('is answered in its order, whatever the answers hold', () => {
    const answer = fc.record({
      success: fc.boolean(),
      returnData: fc.uint8Array({ maxLength: 100 }).map(bytes => `0x${Buffer.from(bytes).toString('hex')}` as Hex),
    })
    fc.assert(
      fc.property(fc.array(answer, { maxLength: 6 }), answers => {
        const data = encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: answers })
        expect(decodeBatch(data)).toEqual(answers.map(({ success, returnData }) => ({ success, data: returnData })))
      }),
      { numRuns: 50 },
    )
  })

  it.each(['0x', '0x01', `0x${'00'.repeat(31)}20`, `0x${'ff'.repeat(64)}`] as const)('is not answered by %s', data => {
    expect(() => decodeBatch(data)).toThrow()
  })

  it('has the values of what each function returns, and keeps what failed', () => {
    const result = (data: Hex, success = true) => outcomeOf(abi, 'count', { success, data })
    expect(result(encodeAbiParameters([{ type: 'uint256' }], [7n]))).toEqual({ status: 'success', result: 7n })
    expect(result('0x')).toMatchObject({ status: 'failure', error: { data: '0x' } })
    expect(result('0x1234')).toMatchObject({ status: 'failure', error: { data: '0x1234' } })
    expect(result('0x08c379a0', false)).toMatchObject({ status: 'failure', error: { data: '0x08c379a0' } })
    expect(encodeCall(abi, 'count', [])).toBe(encodeFunctionData({ abi, functionName: 'count' }))
  })
})
