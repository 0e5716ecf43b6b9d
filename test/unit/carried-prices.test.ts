import { carriedPricesProblem, encodeWithPrices } from '@agent-trading-service/protocol/carried-prices'
import { decodeFunctionData, type Hex } from 'viem'
import { expect, it } from 'vitest'
import { priceCarrierAbi } from '../../contracts-abi/price-carrier.ts'
import { encodeReport, OPEN_STATUS, reportOf, signReport } from '../../devnet/price-reports.ts'

const NOW = 1_790_000_000
const ORACLE = '0x00000000000000000000000000000000000000aa'
const signed = (name: number, observedAt: number): Promise<Hex> => {
  const feedId: Hex = `0x000b${name.toString(16).padStart(60, '0')}`
  const state = { price: 180n * 10n ** 18n, observedAt, marketStatus: OPEN_STATUS }
  return signReport(encodeReport(reportOf(feedId, state)), { configDigest: `0x0006${'cd'.repeat(30)}` })
}

it('prices that somebody else chose are refused if they are old, doubled, many, large or no reports', async () => {
  const [report, other, old] = await Promise.all([signed(1, NOW), signed(2, NOW - 60), signed(3, NOW - 61)])
  const problemOf = (reports: Hex[], feeds: Hex[] = []) => carriedPricesProblem({ reports, feeds }, NOW)
  expect(problemOf([])).toBe(undefined)
  expect(problemOf([report, other], [ORACLE])).toBe(undefined)
  expect(problemOf([report, old])).toMatch(/is 61 seconds old$/)
  expect(problemOf([report, other, report])).toMatch(/^there are two reports of stream 0x000b0*1$/)
  expect(
    problemOf(
      [],
      Array.from({ length: 65 }, () => ORACLE),
    ),
  ).toBe('it brings 65 prices')
  expect(problemOf([`0x${'00'.repeat(4_097)}`])).toBe('a report has 4097 bytes')
  expect(problemOf(['0x'])).toBe('a report cannot be decoded')
})

it('a call that brings prices along is inside unchanged, and is itself without any', async () => {
  const call = '0x6e553f65aabb'
  const prices = { reports: [await signed(1, NOW)], feeds: [ORACLE] } as const
  const { args } = decodeFunctionData({ abi: priceCarrierAbi, data: encodeWithPrices(ORACLE, prices, call) })
  expect(args.map(argument => `${argument}`.toLowerCase())).toEqual([...prices.reports, ORACLE, ORACLE, call])
  expect(encodeWithPrices(ORACLE, { reports: [], feeds: [] }, call)).toBe(call)
})
