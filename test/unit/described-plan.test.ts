import { expect, test } from 'vitest'
import { describePlan } from '../../packages/cli/src/trading/plan.ts'

test('what a user confirms has no characters that change the order of letters or add lines', () => {
  const text = describePlan({
    title: 'Sign \u202eOpenPosition',
    signer: '0x1',
    terms: [{ name: 'name\u2066', value: 'mom\u202dentum\u2028\u200b7' }],
    checks: [{ rule: 'r', code: 'c', pass: false, limit: null, after: null, problem: 'no\u202e\nyes' }],
    warnings: ['\u061c\u200f\u2069 high'],
  } as never)
  expect(text).not.toMatch(/[\p{Cf}\u2028\u2029]/u)
  expect(text.split('\n')).toHaveLength(6)
})
