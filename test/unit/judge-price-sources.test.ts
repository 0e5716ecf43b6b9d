import { expect, it } from 'vitest'
import { judgePriceSources, type PriceSourceFact } from '../../src/doctor/judge-price-sources.ts'

const usd = (price: number) => BigInt(price * 1e8)
const judge = (fact: Partial<PriceSourceFact>) => {
  const [finding] = judgePriceSources([
    { symbol: 'NVDA', kind: 'reports', price: usd(180), poolPrice: usd(180), ...fact },
  ])
  return finding
}

it('the doctor names a source of prices that says nothing, that the oracle refuses, or that drifts from its pool', () => {
  expect(judge({})).toMatchObject({ verdict: 'ok', subject: 'NVDA' })
  expect(judge({ poolPrice: undefined })).toMatchObject({ verdict: 'ok' })
  expect(judge({ problem: 'it refuses the credentials' })).toMatchObject({
    verdict: 'wrong',
    sentence: 'There is no signed report of NVDA: it refuses the credentials. It cannot be traded.',
    fix: expect.stringContaining('DATA_STREAMS_KEY'),
  })
  expect(judge({ refusal: 'ReportExpired' })).toMatchObject({
    verdict: 'wrong',
    sentence: 'The oracle refuses the newest signed report of NVDA: ReportExpired.',
  })
  expect(judge({ poolPrice: usd(185) })).toMatchObject({ verdict: 'ok' })
  expect(judge({ kind: 'feed', poolPrice: usd(200) })).toMatchObject({
    verdict: 'warning',
    sentence: 'The push feed of NVDA says $180 and its pool $200: they are 1000 basis points apart.',
  })
})
