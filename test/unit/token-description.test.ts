import { impostorProblem } from '@agent-trading-service/protocol/token-description'
import type { Address, Hex } from 'viem'
import { describe, expect, it } from 'vitest'

const issuer: Address = '0xe10b6f6B275de231345c20D14Ab812db62151b00'
const other: Address = '0x00000000000000000000000000000000000000AA'
const token = { symbol: 'GME', address: '0x00000000000000000000000000000000000000bb' } as const
const slotOf = (beacon: Address): Hex => `0x${beacon.slice(2).padStart(64, '0')}`

describe('the beacon of a token', () => {
  it.each([
    ['is the issuer that is described', issuer, slotOf(issuer), undefined],
    ['is none, as none is described', undefined, slotOf('0x0000000000000000000000000000000000000000'), undefined],
    ['is none, as none is described and the slot is empty', undefined, undefined, undefined],
    ['is none, although an issuer is described', issuer, undefined, /has no beacon, not the issuer .* impostor$/],
    ['is another one', issuer, slotOf(other), /has the beacon 0x0+AA, not the issuer .* impostor$/],
    ['is one, although none is described', undefined, slotOf(issuer), /no issuer is described; name the beacon/],
  ])('%s', (_, described, slot, problem) => {
    const found = impostorProblem(token, described, slot)
    if (problem === undefined) expect(found).toBeUndefined()
    else expect(found).toMatch(problem)
  })
})
