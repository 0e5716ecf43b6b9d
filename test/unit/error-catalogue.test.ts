import { codeOfError, contractAbis, type ErrorName } from '@agent-trading-service/protocol/decode-revert'
import { type Abi, type AbiParameter, encodeErrorResult, type Hex, zeroAddress, zeroHash } from 'viem'
import { describe, expect, it } from 'vitest'
import { contractCodes, refusalOfRevert } from '../../src/chain/contract-error-refusals.ts'
import { errorCodes } from '../../src/errors/catalogue.ts'
import { refuse } from '../../src/errors/refuse.ts'

const SCREAMING_SNAKE = /^[A-Z][A-Z0-9_]+$/

describe('the catalogue', () => {
  it('the catalogue gives every code a stable name, a status and a remedy', () => {
    for (const { code, status, remedy } of errorCodes) {
      expect(code).toMatch(SCREAMING_SNAKE)
      expect([400, 401, 402, 404, 405, 408, 409, 413, 415, 429, 500, 502, 503]).toContain(status)
      expect(remedy, code).toMatch(/\w.*\.$/)
    }
  })

  it('the catalogue sends bigint facts as digit strings and leaves undefined facts out', () => {
    expect(refuse('INVALID_NONCE', { given: 7n, expected: 8n }).body).toEqual({
      error: 'The nonce is 7; the next nonce is 8.',
      code: 'INVALID_NONCE',
      details: { given: '7', expected: '8' },
      remedy: expect.any(String),
    })
    const { body } = refuse('SUBMISSION_UNKNOWN', { digest: '0x00', transactionHash: undefined })
    expect(body.details).toEqual({ digest: '0x00' })
  })

  it('the catalogue rejects missing and misnamed facts at compile time', () => {
    // @ts-expect-error: `expected` is missing
    const missing = () => refuse('INVALID_NONCE', { given: 1n })
    // @ts-expect-error: the fact is called `given`
    const misnamed = () => refuse('INVALID_NONCE', { provided: 1n, expected: 2n })
    // @ts-expect-error: INVALID_NONCE needs facts
    const none = () => refuse('INVALID_NONCE')
    // @ts-expect-error: the facts are bigints
    const mistyped = () => refuse('INVALID_NONCE', { given: '1', expected: '2' })
    // @ts-expect-error: CHAIN_UNREACHABLE takes no facts
    const superfluous = () => refuse('CHAIN_UNREACHABLE', { url: 'http://localhost' })
    // @ts-expect-error: there is no such code
    const unknown = () => refuse('NO_SUCH_CODE')
    expect([missing, misnamed, none, mistyped, superfluous, unknown]).toHaveLength(6)
  })
})

/** An argument of an ABI type that is easy to recognize. */
function sample(parameter: AbiParameter): unknown {
  const { type } = parameter
  if ('components' in parameter) return Object.fromEntries(parameter.components.map(part => [part.name, sample(part)]))
  if (type === 'address') return zeroAddress
  if (type === 'bytes32') return zeroHash
  if (type === 'string') return 'text'
  if (type === 'bytes') return '0x'
  return /^u?int(8|16|24|32|40|48)$/.test(type) ? 7 : 7n
}

describe('the contract error', () => {
  const errors = new Map(
    contractAbis.flatMap(abi => (abi as Abi).filter(item => item.type === 'error')).map(item => [item.name, item]),
  )

  it.each([...errors.values()].map(item => [item.name, item] as const))(
    'the contract error %s maps onto its code',
    (name, item) => {
      const data = encodeErrorResult({ abi: [item], errorName: name, args: item.inputs.map(sample) })
      const { status, body } = refusalOfRevert(data, { transactionHash: zeroHash })
      expect(body.code).toBe(codeOfError(name as ErrorName))
      expect(errorCodes).toContainEqual({ code: body.code, status, remedy: body.remedy })
      expect(body.error).toMatch(/^\S.*\.$/)
      expect(body.error).not.toMatch(/undefined|\[object/)
      expect(body.details).toMatchObject({ transactionHash: zeroHash })
      for (const value of Object.values(body.details ?? {})) expect(typeof value).toBe('string')
    },
  )

  it('the contract error is INTENT_REFUSED if the revert data is unknown', () => {
    const unknown: (Hex | undefined)[] = [undefined, '0x', '0xdeadbeef']
    expect(unknown.map(data => refusalOfRevert(data).body.code)).toEqual(Array(3).fill('INTENT_REFUSED'))
  })

  it('the contract error is listed once', () => {
    expect([...contractCodes].sort()).toEqual([...new Set(contractCodes)].sort())
    expect(contractCodes).toHaveLength(errors.size)
  })
})
