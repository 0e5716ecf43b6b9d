import { describe, expect, it } from 'vitest'
import { type Figures, judge, parseRequirement } from '../../rehearsal/requirement.ts'

const figures: Figures = {
  return: 12_345n,
  excess: -1n,
  drawdown: 50_000n,
  winrate: null,
  pnl: 12_345_678n,
  cost: 1_000_000n,
  trades: 4_000_000n,
  refusals: 0n,
  score: 71_000_000n,
  sharpe: null,
}
const verdicts = (text: string) => judge(parseRequirement(text), figures).map(({ pass }) => pass)

describe('the bar of a rehearsal', () => {
  it('the bar of a rehearsal is met if every condition holds', () => {
    expect(verdicts('return>0 and drawdown<=5%')).toEqual([true, true])
    expect(verdicts('return >= 1.2345% AND trades=4 and pnl>12.345677')).toEqual([true, true, true])
  })

  it('the bar of a rehearsal compares exactly, so an equal value is neither above nor below', () => {
    expect(verdicts('drawdown<5% and drawdown<5.0001%')).toEqual([false, true])
    expect(verdicts('excess>-0.0002% and excess>=0')).toEqual([true, false])
  })

  it('the bar of a rehearsal is not met by a figure that is not defined', () => {
    expect(judge(parseRequirement('sharpe>-100'), figures)).toEqual([
      { text: 'sharpe>-100', pass: false, actual: null },
    ])
  })

  it.each([
    ['', /is not a condition/],
    ['return', /is not a condition/],
    ['return>0 and ', /is not a condition/],
    ['profit>0', /no figure "profit".*return/],
    ['return>5', /is a percentage. Write return>5%/],
    ['trades>5%', /not a percentage/],
    ['drawdown<0.00001%', /finer/],
    ['return>0 or score>70', /joined by "and"/],
  ])('the bar of a rehearsal refuses "%s" and says what to write', (text, message) => {
    expect(() => parseRequirement(text)).toThrow(message)
  })
})
