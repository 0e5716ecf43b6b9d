import { explainCheck, figureUnits } from '@agent-trading-service/protocol/check-figures'
import { toContractRules } from '@agent-trading-service/protocol/exit-rule'
import { stopPercentToBps } from '@agent-trading-service/protocol/percent'
import { lossAtStopUsdc } from '@agent-trading-service/protocol/stop-loss'
import { describe, expect, test } from 'vitest'
import { type Ladder, ladderOf, parseExits } from '../../packages/client/src/agent.ts'
import { parseToken, toDigits, toUsdcUnits } from '../../packages/client/src/amounts.ts'
import vectors from './unit-vectors.json' with { type: 'json' }

// packages/python/tests/test_units.py reads the same vectors: both clients accept and refuse the same spellings.

const parsers = {
  usdc: toUsdcUnits,
  price: (text: string) => parseToken(text, 8),
  percent: (text: string) => stopPercentToBps(text) ?? refuse(),
  integer: (text: string) => toDigits(text, 'deadline'),
}

function refuse(): never {
  throw new Error('refused')
}

describe.each(Object.entries(parsers))('the spelling of %s', (name, parse: (text: string) => unknown) => {
  const { accepted, refused } = vectors[name as keyof typeof parsers]
  test.each(Object.entries(accepted))('%j is %s', (text, value) => expect(`${parse(text)}`).toBe(`${value}`))
  test.each(refused)('%j is refused', text => expect(() => parse(text)).toThrow())
})

test.each(Object.entries(vectors.exits.accepted))('the ladder %s has its rules', (text, exits) =>
  expect(parseExits(text)).toEqual(exits),
)

test.each(vectors.exits.refused)('a ladder with a rule that no contract takes is refused', (...exits) =>
  expect(() => ladderOf({ exits } as unknown as Ladder)).toThrow(),
)

test.each(vectors.lossAtStop)('$usdcCostBasis with $exits loses $lossUsdc at its stops', vector => {
  const position = { usdcCostBasis: BigInt(vector.usdcCostBasis), exits: toContractRules(parseExits(vector.exits)) }
  expect(lossAtStopUsdc(position, 0n)?.toString() ?? null).toBe(vector.lossUsdc)
})

test('the figures of the same rules have units', () => expect(figureUnits).toEqual(vectors.figureUnits))

test.each(vectors.checks)('a failed $rule is explained', ({ sentence, ...check }) =>
  expect(explainCheck(check)).toBe(sentence),
)
