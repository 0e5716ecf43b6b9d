import { clearSigningDescriptor, encodedType, signingSentence } from '@agent-trading-service/protocol/clear-signing'
import { MandateMode } from '@agent-trading-service/protocol/enums'
import { namedFields } from '@agent-trading-service/protocol/message-terms'
import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { type PrimaryType, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { describe, expect, it } from 'vitest'

const primaryTypes = Object.keys(signingTypes) as PrimaryType[]
const domain = { name: 'Router', version: '1', chainId: 31337n, verifyingContract: `0x${'a1'.repeat(20)}` } as const
const usdc = `0x${'b2'.repeat(20)}` as const
const descriptor = clearSigningDescriptor(domain, usdc, primaryTypes)

/** The Solidity types that a format of ERC-7730 takes. */
const typesOf: Record<string, RegExp> = {
  raw: /./,
  addressName: /^address$/,
  tokenTicker: /^address(\[\])?$/,
  tokenAmount: /^uint256$/,
  date: /^uint256$/,
  duration: /^uint256$/,
  unit: /^uint(16|256)$/,
  enum: /^uint8$/,
}

describe.each(primaryTypes)('the descriptor of %s', primaryType => {
  const format = descriptor.display.formats[encodedType(primaryType)]
  const signed = new Map<string, string>(signingTypes[primaryType].map(({ name, type }) => [name, type]))

  it('shows every field of the message once, by a format that takes its type, in the order and the words of the terms', () => {
    const shown = format?.fields.map(({ path }) => path.replace(/\.\[\]$/, '')) ?? []
    expect(shown).toEqual(namedFields(primaryType).map(([field]) => field))
    expect(shown.toSorted()).toEqual([...signed.keys()].toSorted())
    for (const { path, format: name, label } of format?.fields ?? []) {
      const [field = '', isEach] = [path.replace(/\.\[\]$/, ''), path.endsWith('.[]')]
      expect(signed.get(field)?.endsWith('[]'), path).toBe(isEach)
      expect(signed.get(field), `${path} as ${name}`).toMatch(typesOf[name] ?? /^$/)
      expect(label.length, label).toBeLessThanOrEqual(20)
    }
  })

  it('has an intent that a device shows whole, and names only fields of the message in its line', () => {
    expect(format?.intent.length).toBeLessThanOrEqual(30)
    for (const [, field = ''] of `${format?.interpolatedIntent ?? ''}`.matchAll(/\{(\w+)\}/g))
      expect(signed.has(field), field).toBe(true)
  })
})

it('the descriptors name every value of an enumeration, and USDC as the asset of amounts', () => {
  const { enums, constants } = descriptor.metadata
  const values = (given: Record<string, number>) => Object.values(given).map(String)
  expect(Object.keys(enums.sides ?? {})).toEqual(values(OrderSide))
  expect(Object.keys(enums.conditions ?? {})).toEqual(values(OrderCondition))
  expect(Object.keys(enums.modes ?? {})).toEqual(values(MandateMode))
  expect(constants.usdc).toBe(usdc)
})

it('the sentence of a message is the line of its descriptor, with the values as a wallet formats them', () => {
  const signer = `0x${'c3'.repeat(20)}`
  const message = { token: usdc, usdcAmount: '250500000', positionId: '12', exitBps: 2_550, agentId: '7', signer }
  const sentenceOf = (primaryType: PrimaryType, symbol?: string) =>
    signingSentence({ primaryType, message }, () => symbol)
  expect(sentenceOf('OpenPosition', 'NVDA')).toBe('Buy NVDA for at most 250.50 USDC')
  expect(sentenceOf('OpenPosition', 'all you own')).toBe(`Buy ${usdc} for at most 250.50 USDC`)
  expect(sentenceOf('AddToPosition')).toBe('Add at most 250.50 USDC to position 12')
  expect(sentenceOf('ReducePosition')).toBe('Sell 25.5 % of position 12')
  expect(sentenceOf('SetSigner')).toBe(`Let ${signer} trade for agent 7`)
  for (const primaryType of primaryTypes) {
    const { intent = '', interpolatedIntent = intent } = descriptor.display.formats[encodedType(primaryType)] ?? {}
    const words = interpolatedIntent.split(/\{\w+\}/)
    expect(
      words.every(part => sentenceOf(primaryType).includes(part)),
      primaryType,
    ).toBe(true)
  }
})
