import { durationText } from '@agent-trading-service/protocol/duration'
import { expect, it } from 'vitest'

it.each([
  [0, '0 s'],
  [45, '45 s'],
  [3_724, '1 h 2 min'],
  [3_600, '1 h'],
  [518_400n, '6 d'],
  [90_061, '1 d 1 h'],
])('%s seconds are %s', (seconds, text) => expect(durationText(seconds)).toBe(text))
