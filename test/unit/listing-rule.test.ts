import { listingProblems } from '@agent-trading-service/protocol/listing-rule'
import { expect, it } from 'vitest'

const share = { symbol: 'NVDA', decimals: 18, price: 180_00000000n, isRebasing: false }

it('a token is listed if its balances change by transfers alone and its units are small', () => {
  expect(listingProblems(share)).toEqual([])
  expect(listingProblems({ ...share, decimals: 5 })).toEqual([])
  expect(listingProblems({ ...share, decimals: 4 })).toEqual([
    'NVDA: one unit is worth more than a cent; list a form with more than 4 decimals',
  ])
  expect(listingProblems({ ...share, isRebasing: true })).toEqual([
    'NVDA: its balances change without transfers; list a wrapped form of it',
  ])
})
