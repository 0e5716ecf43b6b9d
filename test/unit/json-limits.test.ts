import { expect, test } from 'vitest'
import { unitsOfBody } from '../../src/limits/prices.ts'
import { isTooComplex, MAX_JSON_DEPTH, MAX_JSON_VALUES } from '../../src/requests/request-body.ts'

test('JSON within the limits is accepted whatever its strings contain', () => {
  const tricky = { text: '[{,:"\\\\"[[[', keys: { '[': ',,,,', '\\"': [] } }
  expect(isTooComplex(JSON.stringify(Array(100).fill(tricky)))).toBe(false)
  expect(isTooComplex(JSON.stringify('[,'.repeat(100_000)))).toBe(false)
  expect(isTooComplex(`"${'\\\\'.repeat(50_000)}"`)).toBe(false)
  expect(isTooComplex('')).toBe(false)
})

test('JSON with too many values or levels is refused', () => {
  expect(isTooComplex('['.repeat(MAX_JSON_DEPTH) + ']'.repeat(MAX_JSON_DEPTH))).toBe(false)
  expect(isTooComplex('['.repeat(MAX_JSON_DEPTH + 1) + ']'.repeat(MAX_JSON_DEPTH + 1))).toBe(true)
  expect(isTooComplex(JSON.stringify(Array(MAX_JSON_VALUES).fill(1)))).toBe(false)
  expect(isTooComplex(JSON.stringify(Array(MAX_JSON_VALUES + 1).fill(1)))).toBe(true)
  expect(isTooComplex(JSON.stringify(Array(MAX_JSON_VALUES).fill({})))).toBe(true)
  expect(isTooComplex(`{"a":"${'\\"'}",${'"b":1,'.repeat(MAX_JSON_VALUES)}}`)).toBe(true)
})

test('a string that does not end, and a run of quotes after backslashes, cost no more than their length', () => {
  const startedAt = performance.now()
  for (const text of [
    `"${'\\'.repeat(250_000)}`,
    `"${'\\"'.repeat(125_000)}`,
    '"'.repeat(250_001),
    ' '.repeat(250_000),
  ])
    isTooComplex(text)
  expect(performance.now() - startedAt).toBeLessThan(5_000) // the square of their length takes minutes
})

test('each 16 KiB of a body beyond the first cost a unit, and one of undeclared length costs as much as the largest', () => {
  const unitsOf = (headers: Record<string, string>, body: BodyInit | null = 'x') =>
    unitsOfBody(new Request('http://localhost/', { method: 'POST', headers, body }), 64 * 1024)
  expect(unitsOf({ 'content-length': '100' })).toBe(0)
  expect(unitsOf({ 'content-length': '40000' })).toBe(2)
  expect(unitsOf({ 'content-length': '999999999' })).toBe(4)
  expect(unitsOf({})).toBe(4)
  expect(unitsOf({}, null)).toBe(0)
})
