import { expect, it } from 'vitest'
import { eventText } from '../../packages/cli/src/output/event-text.ts'

it('an event about an old price says whether its market is closed', () => {
  const now = Math.floor(Date.now() / 1000)
  const text = (session: string, nextOpen: string | null) =>
    eventText('price-stale', { symbol: 'NVDA', updatedAt: `${now - 3_600}`, market: { session, nextOpen } })
  expect(text('regular', null)).toMatch(/^price-stale the price of NVDA is stale, posted [^;]+$/)
  expect(text('closed', `${now + 7_230}`)).toMatch(/; its market is closed, opens in 2 h/)
  expect(text('closed', null)).toMatch(/; its market is closed$/)
})

it('an event about a corporate action says what one token stands for from when on, whatever its issuer says', () => {
  const text = (effectiveAt: bigint, newMultiplier = '4') =>
    eventText('corporateAction', { symbol: 'CRWD', state: 'announced', newMultiplier, effectiveAt: `${effectiveAt}` })
  const soon = BigInt(Math.floor(Date.now() / 1000)) + 610n
  expect(text(soon)).toMatch(/^corporateAction one CRWD stands for 4 shares from in 10 min[^;]*: announced$/)
  expect(text(2n ** 256n - 1n, '0')).toMatch(/^corporateAction one CRWD stands for 0 shares from .*: announced$/)
})
