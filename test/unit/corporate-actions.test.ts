import { corporateActionsOf } from '@agent-trading-service/protocol/corporate-actions'
import { describe, expect, it } from 'vitest'

const event = (announcedAt: number, from: number, to: number, effectiveAt: number) => ({
  name: 'UIMultiplierUpdated',
  contract: '0x0000000000000000000000000000000000000001' as const,
  args: { oldMultiplier: `${from}`, newMultiplier: `${to}`, effectiveAtTimestamp: `${effectiveAt}` },
  timestamp: announcedAt,
  block: announcedAt,
  logIndex: 0,
  transactionHash: '0x01' as const,
})
const cancellation = (at: number): ReturnType<typeof event> => ({
  ...event(at, 0, 0, 0),
  name: 'UIMultiplierUpdateCancelled',
})
const shown = (...events: ReturnType<typeof event>[]) =>
  corporateActionsOf(events).map(({ newMultiplier, effectiveAt, replaced }) => [
    Number(newMultiplier),
    Number(effectiveAt),
    replaced,
  ])

describe('the corporate actions of a token', () => {
  it.each([
    ['a schedule that is emitted twice is one action', [event(1, 1, 4, 600), event(2, 1, 4, 600)], [[4, 600, false]]],
    ['a change at once is effective when it is announced', [event(5, 1, 4, 5)], [[4, 5, false]]],
    [
      'a schedule before the last one took effect replaces it',
      [event(1, 1, 4, 600), event(599, 1, 3, 900)],
      [
        [4, 600, true],
        [3, 900, false],
      ],
    ],
    [
      'a schedule from the second at which the last one took effect follows it',
      [event(1, 1, 4, 600), event(600, 4, 8, 900)],
      [
        [4, 600, false],
        [8, 900, false],
      ],
    ],
    [
      'a schedule of the present multiplier cancels, and is no action',
      [event(1, 1, 4, 600), event(9, 1, 1, 9)],
      [[4, 600, true]],
    ],
    [
      'a cancellation before it takes effect replaces it, and the same schedule after that is another action',
      [event(1, 1, 4, 600), cancellation(9), event(20, 1, 4, 600)],
      [
        [4, 600, true],
        [4, 600, false],
      ],
    ],
    [
      'a cancellation of what has taken effect changes nothing',
      [event(1, 1, 4, 600), cancellation(600)],
      [[4, 600, false]],
    ],
    [
      'a schedule with a past time is effective, and the next one does not replace it',
      [event(100, 1, 4, 50), event(101, 4, 2, 0), event(102, 2, 3, 900)],
      [
        [4, 50, false],
        [2, 0, false],
        [3, 900, false],
      ],
    ],
    [
      'a multiplier may fall, be 0 or be too large to mean anything',
      [event(1, 4, 0, 1), event(2, 0, 2 ** 60, 2)],
      [
        [0, 1, false],
        [2 ** 60, 2, false],
      ],
    ],
  ])('%s', (_, events, expected) => {
    expect(shown(...events)).toEqual(expected)
  })
})
